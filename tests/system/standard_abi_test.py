#!/usr/bin/env python3
"""A program of the MPI-5.0 standard ABI: runs on both libraries, is stopped in the middle, and continued on both.

    standard_abi_test.py
"""
import os
import pathlib
import re
import subprocess
import sys

import harness
from harness import FERMATA, Job, Scratch, check

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "programs" / "standard_abi.c"


def build(cwd):
    """Linked with a library that has the name and the functions, and nothing else: the front is found by name."""
    functions = sorted(set(re.findall(r"\b(MPI_[A-Z][a-z_]+)\(", SOURCE.read_text())))
    (cwd / "stub.c").write_text("".join(f"int {name}(void) {{ return 16; }}\n" for name in functions))
    library, program = cwd / "libmpi_abi.so.1", cwd / "standard_abi"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libmpi_abi.so.1", cwd / "stub.c", "-o", library], check=True)
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", SOURCE, library, "-o", program], check=True)
    library.unlink()
    return program, len(functions)


def expected(ranks, steps):
    """What the program adds up: each rank's third number from its left neighbour, summed over its half, over all ranks."""
    got = [sum(1000 * ((r - 1) % ranks) + 10 * step + 2 for step in range(steps)) for r in range(ranks)]
    return sum(got[other] for r in range(ranks) for other in range(ranks) if other % 2 == r % 2)


def run():
    ranks = 4
    with Scratch("standard-abi") as cwd:
        program, functions = build(cwd)
        said = subprocess.run([FERMATA, "run", "--check", "--", program], capture_output=True, text=True, timeout=60)
        check(f"built for standard (libmpi_abi.so.1); imports {functions} MPI functions, all supported" in said.stdout,
              said.stdout + said.stderr)
        want = f"sum {expected(ranks, 100)}"
        for mpi in ("openmpi", "mpich"):
            hold = cwd / f"go.{mpi}"
            with Job.run([program], ranks, cwd, mpi=mpi, env=dict(os.environ, HOLD_FILE=str(hold))) as job:
                job.wait_line("READY")
                generation = job.checkpoint()["generation"]
                hold.touch()
                lines = job.finish()
                check(lines[-1] == want, f"on {mpi}: {lines}, wanted {want}")
            for other in ("openmpi", "mpich"):
                with Job.restart(cwd, mpi=other, generation=int(generation.split("-")[1])) as job:
                    lines = job.finish()
                    check(lines[-1] == want, f"{generation} of {mpi} on {other}: {lines}, wanted {want}")
        return want


if __name__ == "__main__":
    sys.exit(harness.verdict("standard_abi", run))
