"""Writes VALUE(name, value) and HANDLE(kind, name, std) lines: mpi/constants.json against a real mpi.h."""

import sys

from fmgen import table

# Not in the header of the library version we build against, or not constants there.
ABSENT = {"openmpi": {"MPI_SESSION_NULL", "MPI_ERRORS_ABORT", "MPI_REAL2", "MPI_INTEGER16", "MPI_COMPLEX4",
                      # Open MPI 5
                      "MPI_ERR_PROC_ABORTED", "MPI_ERR_SESSION", "MPI_ERR_VALUE_TOO_LARGE", "MPIX_ERR_PROC_FAILED",
                      "MPIX_ERR_PROC_FAILED_PENDING", "MPIX_ERR_REVOKED"},
          # later than 4.0
          "mpich": {"MPI_ERR_ERRHANDLER", "MPI_ERR_ABI", "MPI_T_ERR_NOT_ACCESSIBLE"}}
# There, or of this value, from a version on: MPICH 4.2 gave the neighbourhood's number to the standard's new type.
SINCE = {"openmpi": dict.fromkeys(["MPI_COMM_TYPE_HW_UNGUIDED", "MPI_COMM_TYPE_HW_GUIDED"], "OMPI_MAJOR_VERSION >= 5"),
         "mpich": dict.fromkeys(["MPI_COMM_TYPE_RESOURCE_GUIDED", "MPIX_COMM_TYPE_NEIGHBORHOOD"], "MPICH_NUMVERSION >= 40200000")}


def main(abi, path):
    lines = []
    for c in table.constants():
        value = c.mpich if abi == "mpich" else c.openmpi
        if value is None or c.name in ABSENT[abi]:
            continue
        if c.cls.startswith("handle:"):
            lines.append(f"HANDLE({c.cls[7:]}, {c.name}, {c.std})")
        elif c.cls in ("buffer", "weights", "status_ignore", "errcodes_ignore", "argv"):
            lines.append(f"VALUE(reinterpret_cast<long>({c.name}), {value})")
        else:
            line = f"VALUE(static_cast<long>({c.name}), {value})"
            since = SINCE[abi].get(c.name)
            lines += [f"#if {since}", line, "#endif"] if since else [line]
    with open(path, "w") as out:
        out.write("\n".join(lines) + "\n")


main(*sys.argv[1:])
