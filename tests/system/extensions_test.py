#!/usr/bin/env python3
"""What libraries have beyond the standard, in programs that are stopped in the middle and continued on the other library.

    extensions_test.py failures|fortran|cxx|splits
"""
import os
import pathlib
import subprocess
import sys

import harness
from harness import FERMATA, Job, Scratch, check, version

SOURCES = pathlib.Path(__file__).resolve().parents[1] / "programs"


def verdicts(lines):
    return [line for line in lines if "right" in line]


def over(program, built_for, other, want, cwd, env):
    """Checkpoint in the middle; undisturbed after it, and the same from the image."""
    hold = cwd / f"go.{program.name}"
    with Job.run([program], 4, cwd, mpi=built_for, env=dict(env, HOLD_FILE=str(hold))) as job:
        job.wait_line("READY")
        generation = job.checkpoint()["generation"]
        hold.touch()
        lines = job.finish()
        want = want or verdicts(lines)
        check(len(want) == 1 and verdicts(lines) == want, f"{program.name} on {built_for}: {lines}, wanted {want}")
    with Job.restart(cwd, mpi=other, generation=int(generation.split("-")[1]), env=env) as job:
        lines = job.finish()
        check(verdicts(lines) == want, f"{generation} of {program.name} on {other}: {lines}, wanted {want}")
    return want


MORE = {"openmpi": ["-lmpi_cxx"], "mpich": []}  # Debian's mpicxx.openmpi leaves it out
# All symbols are looked for when the program starts, as those of an extension of Python are.
NOW = ["-O1", "-w", "-Wl,-z,now"]


def build_failures(mpi, cwd, compiler="mpicc", source="failures.c"):
    """In a library, which may be linked although nobody here has its functions, and a program of it."""
    library, program = cwd / f"lib{source}.{mpi}.so", cwd / f"{source}.{mpi}"
    subprocess.run([f"{compiler}.{mpi}", *NOW, "-shared", "-fPIC", "-Dmain=failures", SOURCES / source, "-o", library], check=True)
    (cwd / "main.c").write_text("int failures(int, char**);\nint main(int c, char** v) { return failures(c, v); }\n")
    subprocess.run([f"mpicc.{mpi}", *NOW, cwd / "main.c", library, "-Wl,--allow-shlib-undefined", "-o", program], check=True)
    return program


def failures(cwd):
    programs = {mpi: build_failures(mpi, cwd) for mpi in ("mpich", "openmpi")}
    said = subprocess.run([FERMATA, "run", "--check", "--", programs["openmpi"]], capture_output=True, text=True, timeout=60)
    check(said.returncode != 0 and said.stderr.rstrip().endswith("MPIX_Comm_revoke"), said.stdout + said.stderr)
    # Neither library does it natively: the two have to say the same.
    want = None
    for mpi, other in (("openmpi", "mpich"), ("mpich", "openmpi")):
        want = over(programs[mpi], mpi, other, want, cwd, dict(os.environ, UNDER_FERMATA="1"))
    return want[0]


def fortran(cwd):
    program = build_failures("openmpi", cwd, "mpif90", "failures.f90")
    for mpi in ("openmpi", "mpich"):
        with Job.run([program], 4, cwd, mpi=mpi) as job:
            lines = job.finish()
            check(verdicts(lines) == ["failures: right in Fortran"], f"on {mpi}: {lines}")
    return "right on both"


def cxx(cwd):
    for mpi, other in (("openmpi", "mpich"), ("mpich", "openmpi")):
        if mpi == "openmpi" and version(mpi) >= (5, 0):  # they are gone
            continue
        program = cwd / f"cxx_bindings.{mpi}"
        subprocess.run([f"mpicxx.{mpi}", *NOW, SOURCES / "cxx_bindings.cpp", "-o", program, *MORE[mpi]], check=True)
        want = verdicts(harness.native([program], 4, mpi, cwd))
        check(len(want) == 1, f"the native run says {want}")
        over(program, mpi, other, want, cwd, dict(os.environ))
    return want[0]


SHARED, NEARBY = "mpi_hw_resource_type=mpi_shared_memory", "nbhd_common_dirname=/tmp"
# Types by number, as MPICH 3, 4.0 and 4.2 have them; as Open MPI 4 and 5. What natively comes of those that the library knows:
SPLITS = {"mpich": ["1", f"2:{SHARED}", "3:", "2", "4", "4:"], "openmpi": ["0", "9"]}
# What comes of the others on a library of the same family. Where a library has no MPI_COMM_TYPE_RESOURCE_GUIDED (None) nobody is
# in such a communicator.
MEANT = {"mpich": {f"2:{NEARBY}": "2", f"4:{NEARBY}": "2", f"5:{NEARBY}": "2", "5": "null", f"4:{SHARED}": None},
         "openmpi": {"13": "null", f"13:{SHARED}": None}}
UNGUIDED = {"mpich": [], "openmpi": ["12:"]}  # what says in the info, which is empty before, by what it has split
SINCE = {"mpich": (4, 2), "openmpi": (5, 0)}


def splits(cwd):
    for mpi, other in (("openmpi", "mpich"), ("mpich", "openmpi")):
        program = cwd / f"splits.{mpi}"
        subprocess.run([f"mpicc.{mpi}", "-O1", SOURCES / "splits.c", "-o", program], check=True)
        guided = "2" if version(mpi) >= SINCE[mpi] else "null"
        words = SPLITS[mpi] + UNGUIDED[mpi] * (version(mpi) >= SINCE[mpi])
        want = harness.native([program, *words], 2, mpi, cwd)
        now = [line for line in want if " -> " in line]
        now += [f"{word} -> {result or guided}" + f", by {word.partition('=')[2]}" * (SHARED in word) for word, result in MEANT[mpi].items()]
        later = [line.partition(" -> ")[0] + " still" + line.partition(",")[2] for line in now if ", by " in line]
        check([line for line in want if " still " in line] == later[:len(want) - len(words)], f"natively: {want}")
        bound = ["--mpiexec-args=--bind-to none"] if mpi == "openmpi" and not harness.LAUNCHER else []  # as natively
        hold = cwd / f"go.{mpi}"
        with Job.run([program, *words, *MEANT[mpi]], 2, cwd, mpi=mpi, extra=bound, env=dict(os.environ, HOLD_FILE=str(hold))) as job:
            job.wait_line("READY")
            generation = job.checkpoint()["generation"]
            hold.touch()
            lines = job.finish()
            check(lines == [*now, "READY", *later], f"{program.name}: {lines}, wanted {now}, then {later}")
        for library in (mpi, other):
            with Job.restart(cwd, mpi=library, generation=int(generation.split("-")[1])) as job:
                lines = job.finish()
                check(lines == later, f"{program.name} continued on {library}: {lines}, wanted {later}")
        # Its own types on the other library: an error, and one line in each rank.
        word = {"mpich": f"4:{NEARBY}", "openmpi": "9"}[mpi]
        with Job.run([program, word], 2, cwd, mpi=other) as job:
            check(job.finish() == [f"{word} -> error"], job.output())
            said = [line for line in job.errors().splitlines() if "another library's own" in line]
            check(len(said) == 2, job.errors())
    return "each number is what it was"


def run(case):
    with Scratch(f"extensions-{case}") as cwd:
        return {"failures": failures, "fortran": fortran, "cxx": cxx, "splits": splits}[case](cwd)


if __name__ == "__main__":
    sys.exit(harness.verdict(f"extensions {sys.argv[1]}", lambda: run(sys.argv[1])))
