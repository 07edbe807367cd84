#!/usr/bin/env python3
"""`cmake --install` gives all that is needed to run, wherever the tree is moved to afterwards: a job is checkpointed,
stopped and continued on the other library with nothing from the build tree.

    installed_test.py [PROGRAM ARGS…]      the program: default a short one of the tests; its ABI is Open MPI's
"""
import os
import subprocess
import sys

import harness
from harness import BUILD, PROGRAMS, Job, Scratch, check


def run(program):
    with Scratch("installed") as cwd:
        reference = harness.native(program, 2, "openmpi", cwd)
        done = subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(cwd / "first")], capture_output=True,
                              text=True)
        check(done.returncode == 0, done.stderr)
        os.rename(cwd / "first", cwd / "moved")
        harness.FERMATA = cwd / "moved" / "bin" / "fermata"
        strays = [line for folder in ("bin", "lib", "libexec") for file in (cwd / "moved" / folder).rglob("*")
                  if file.is_file() for line in subprocess.run(["readelf", "-d", str(file)], capture_output=True,
                                                               text=True).stdout.splitlines()
                  if "PATH" in line and str(BUILD) in line]
        check(not strays, f"the installed tree names the build tree: {strays}")
        named = [str(file.relative_to(cwd)) for file in (cwd / "moved").rglob("*")
                 if file.is_file() and str(BUILD.parent).encode() + b"/" in file.read_bytes()]
        check(not named, f"these name the source tree: {named}")
        check(sorted(file.name for file in (cwd / "moved").iterdir()) == ["bin", "include", "lib", "libexec", "share"] and
              [file.name for file in (cwd / "moved" / "bin").iterdir()] == ["fermata"],
              "more is installed than fermata, or less")
        with Job.run(program, 2, cwd, mpi="openmpi") as job:
            job.wait_until(lambda: len(job.lines()) >= max(1, len(reference) // 4), "a quarter of the lines")
            job.checkpoint("--stop")
            before = job.finish(expected=85)
        with Job.restart(cwd, mpi="mpich") as job:
            after = job.finish()
        check(before + after == reference or len(sys.argv) > 1,  # others print times
              f"{len(before)} + {len(after)} lines are not the native {len(reference)}")
        print(f"installed: {len(before)} lines, then {len(after)} after the restart on the other library")


if __name__ == "__main__":
    program = sys.argv[1:] or [str(PROGRAMS / "mix.openmpi"), "30", "10000"]
    sys.exit(harness.verdict("installed", lambda: run(program)))
