#!/usr/bin/env python3
"""`fermata run --check`: what of MPI a program imports, and whether all of it is supported. `fermata doctor`: what a library lacks.

    check_test.py
"""
import json
import subprocess
import sys

from harness import FERMATA, PROGRAMS, Scratch, check


def asked(program, *words):
    return subprocess.run([str(FERMATA), "run", "--check", *words, "--", str(program)], capture_output=True, text=True, timeout=60)


def imported(program):
    """As nm says it: functions, not the variables, which have no small letter."""
    lines = subprocess.run(["nm", "-D", "--undefined-only", str(program)], capture_output=True, text=True, check=True).stdout.split("\n")
    names = [line.split()[1] for line in lines if line.split()[:1] == ["U"]]
    return sorted(n for n in names if n.startswith(("mpi_", "pmpi_")) or n.startswith(("MPI_", "PMPI_")) and n.upper() != n)


def supported():
    for name in ("mix.openmpi", "mix.mpich", "trap.mpich", "heat.openmpi", "heat.mpich"):
        program = PROGRAMS / name
        want = imported(program)
        check(len(want) > 5, f"{name} imports {want}")
        said = asked(program)
        check(said.returncode == 0, f"{name}: {said.stderr}")
        facts = json.loads(asked(program, "--json").stdout)
        check(facts["ok"] and facts["absent"] == [] and facts["refused"] == [], f"{name}: {facts}")
        # Also what its libraries import (libmpichfort, for one).
        check(set(want) <= set(facts["functions"]), f"{name}: {set(want) - set(facts['functions'])}")
        check(f"imports {len(facts['functions'])} MPI functions, all supported" in said.stdout, said.stdout)


def not_supported(cwd, function, why):
    """A program that was linked with an MPI library of its own which has that function."""
    (cwd / "stub.c").write_text(f"int MPI_Init(int* c, char*** v) {{ return 0; }}\nint {function}(void) {{ return 0; }}\n")
    (cwd / "one.c").write_text(f"int MPI_Init(int*, char***);\nint {function}(void);\n"
                               f"int main(int c, char** v) {{ MPI_Init(&c, &v); return {function}(); }}\n")
    for soname in ("libmpi.so.40", "libmpich.so.12"):
        library, program = cwd / soname, cwd / f"one.{soname}"
        subprocess.run(["gcc", "-shared", "-fPIC", f"-Wl,-soname,{soname}", cwd / "stub.c", "-o", library], check=True)
        subprocess.run(["gcc", cwd / "one.c", library, "-o", program], check=True)
        said = asked(program)
        check(said.returncode != 0 and len(said.stderr.splitlines()) == 1, f"{said.returncode}: {said.stderr}")
        check(f"{program} {why}: {function}" in said.stderr, said.stderr)


def doctor():
    """What each library lacks, against nm."""
    facts = json.loads(subprocess.run([str(FERMATA), "doctor", "--json"], capture_output=True, text=True, timeout=60).stdout)
    lacks = {fact["what"]: fact.get("lacks", []) for fact in facts}
    for mpi, soname in (("openmpi", "libmpi.so.40"), ("mpich", "libmpich.so.12")):
        lines = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout.split("\n")
        path = next(line.split("=> ")[1] for line in lines if line.split()[:1] == [soname])
        has = {line.split()[-1] for line in subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True,
                                                           check=True).stdout.splitlines()}
        check(lacks[mpi] and not set(lacks[mpi]) & has, f"{mpi}: {set(lacks[mpi]) & has}")
        for function in ("MPI_Psend_init", "MPI_Send_c", "MPI_Session_init", "MPI_Send", "MPI_Win_flush"):
            check((function in lacks[mpi]) == (function not in has), f"{mpi}: {function}")


def main():
    supported()
    doctor()
    with Scratch("check") as cwd:
        not_supported(cwd, "MPI_Nobody_has_this", "calls what no MPI here has")
        # MPI-4.1, which the fronts know and do not have.
        not_supported(cwd, "MPI_Buffer_flush", "calls what Fermata answers with MPI_ERR_UNSUPPORTED_OPERATION")
    return 0


if __name__ == "__main__":
    sys.exit(main())
