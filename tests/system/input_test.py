#!/usr/bin/env python3
"""Standard input of rank 0, read bit by bit over a checkpoint and a restart.

    input_test.py CASE

file: `fermata run … < FILE` goes on reading where it was, on both libraries. pipe: all of it arrives; a checkpoint says how
much of it has not been read and is not in the image.
"""
import random
import subprocess
import sys

import harness
from harness import PROGRAMS, Job, Scratch, check

LINES = 20000  # much more than any buffer on the way holds: 64 KiB
SECONDS = 3


def write_input(cwd):
    rng = random.Random(1)
    path = cwd / "input.txt"
    path.write_text("".join(f"{rng.randrange(10**9):<40}\n" for _ in range(LINES)))
    return path


def start(cwd, mpi, stdin, shell=False):
    command = [PROGRAMS / f"reader.{mpi}", SECONDS]
    if shell:
        command = ["sh", "-c", f"{command[0]} {SECONDS}; exit $?"]
    return Job.run(command, 2, cwd, mpi=mpi, ckpt=f"ckpt.{mpi}", stdin=stdin)


def reference_run(cwd, path):
    """On Open MPI: MPICH 4.0.2's launcher ends a job that reads slowly ("can't keep up")."""
    with open(path) as stdin:
        lines = harness.native([PROGRAMS / "reader.openmpi", 0], 2, "openmpi", cwd, stdin=stdin)
    check(lines[-1].startswith(f"reader end {LINES} "), f"the native run ended with {lines[-1:]}")
    return lines


def from_file(cwd):
    path = write_input(cwd)
    reference = reference_run(cwd, path)
    for mpi, other, shell in (("openmpi", "mpich", False), ("mpich", "openmpi", False), ("openmpi", "openmpi", True)):
        with open(path) as stdin, start(cwd, mpi, stdin, shell) as job:
            job.wait_until(lambda: len(job.lines()) >= 5, "five lines of results")
            check(not job.checkpoint()["warnings"], job.errors())
            job.kill_ranks()
            printed = len(job.lines())
        with Job.restart(cwd, mpi=other, ckpt=f"ckpt.{mpi}") as job:
            got = job.finish()
        check(len(got) >= len(reference) - printed and got == reference[len(reference) - len(got):],
              f"{mpi}, continued on {other}: {len(got)} lines after {printed}, the last {got[-1:]}, not {reference[-1:]}")
        print(f"  {mpi}: killed after {printed} of {len(reference)} lines, continued on {other}: identical", flush=True)


def from_pipe(cwd):
    path = write_input(cwd)
    reference = reference_run(cwd, path)
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat, start(cwd, "openmpi", cat.stdout) as job:
        cat.stdout.close()
        job.wait_until(lambda: len(job.lines()) >= 5, "five lines of results")
        job.checkpoint()
        got = job.finish()
        check(got == reference, f"{len(got)} lines, the last {got[-1:]}, not {reference[-1:]}")
        check("bytes of standard input that the program has not read yet" in job.errors(),
              f"no warning of input that is lost: {job.errors()}")


CASES = {"file": from_file, "pipe": from_pipe}


def main():
    def run():
        with Scratch(f"input-{sys.argv[1]}") as cwd:
            CASES[sys.argv[1]](cwd)

    return harness.verdict(f"input.{sys.argv[1]}", run)


if __name__ == "__main__":
    sys.exit(main())
