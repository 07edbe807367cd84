"""Compares what a front exports with what the real library exports.

    exports.py openmpi|mpich FRONT DIRECTORY...
    exports.py standard FRONT

For the standard ABI, of which no library is installed, the list is the table's.

Every MPI_ and PMPI_ function must be there, except those below, each with its reason; data symbols of Open MPI
must have the same size, because executables copy-relocate them.
"""

import re
import subprocess
import sys
from pathlib import Path

SONAME = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}
REASONS = {
    r"P?MPI_.*_F90$": "Fortran entry point: in the Fortran front",
    r"MPI_(COMM_|TYPE_|WIN_)?(DUP_FN|NULL_COPY_FN|NULL_DELETE_FN)$": "Fortran entry point: in the Fortran front",
    r"MPI_CONVERSION_FN_NULL$": "Fortran entry point: in the Fortran front",
}


def symbols(path):
    out = subprocess.run(["nm", "-D", "-S", "--defined-only", path], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in out.splitlines():
        f = line.split()
        if len(f) == 4:
            found[f[3].split("@")[0]] = (f[2], int(f[1], 16))
        elif len(f) == 3:
            found[f[2].split("@")[0]] = (f[1], 0)
    return found


def check_table(front):
    from fmgen import table

    ours = symbols(front)
    missing = [p + f.name for f in table.functions() for p in ("", "P") if p + f.name not in ours]
    if missing:
        sys.exit("missing: " + " ".join(missing))


def main(abi, front, *directories):
    if abi == "standard":
        return check_table(front)
    real = next((p for d in directories for p in [Path(d) / SONAME[abi]] if p.exists()), None)
    if real is None:
        print(f"no {SONAME[abi]}: skipped")
        sys.exit(77)
    theirs, ours = symbols(real), symbols(front)
    bad = 0
    for name in sorted(theirs):
        if not re.match(r"P?MPIX?_[A-Z]", name):
            continue
        if name not in ours and not any(re.match(r, name) for r in REASONS):
            print("missing:", name)
            bad += 1
    if abi == "openmpi":
        for name, (kind, size) in sorted(theirs.items()):
            if kind in "BDR" and re.match(r"ompi_|mpi_fortran", name) and ours.get(name, ("", -1))[1] != size:
                print(f"size of {name}: {size} there, {ours.get(name, ('', -1))[1]} here")
                bad += 1
    if bad:
        sys.exit(1)


main(*sys.argv[1:])
