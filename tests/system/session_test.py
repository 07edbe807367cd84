#!/usr/bin/env python3
"""Directories of Open MPI 5's mpiexec that another one has left: the launcher gets the number of a process for which there is none.

    session_test.py
"""
import os
import pathlib
import shutil
import subprocess
import sys

import harness
from harness import PROGRAMS, Job, Scratch, check

TAKEN = 3000
FREE = 8  # each so many-th is


def launcher_of(job):
    """Its pid: the one child of `fermata run` in a process group of its own, once it has become the launcher."""
    children = pathlib.Path(f"/proc/{job.process.pid}/task/{job.process.pid}/children").read_text().split()
    for pid in children:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        if os.getpgid(int(pid)) == int(pid) and b"fermata" not in words.split(b"\0")[0]:
            return int(pid)
    return None


def newest_number():
    with subprocess.Popen(["true"]) as child:
        return child.pid


def run():
    with Scratch("session") as cwd:
        place = cwd / "tmp"
        for turn in range(3):  # luck alone would have all three right in one of 512
            place.mkdir()
            first = newest_number() + 1
            for pid in range(first, first + TAKEN):
                if pid % FREE:
                    name = f"prterun.{os.uname().nodename}.{pid}.{os.getuid()}" if pid % 2 else f"ompi.{pid}"
                    (place / name).mkdir()
            with Job.run([PROGRAMS / "mix.openmpi", "1000000", "1000"], 2, cwd, mpi="openmpi", ckpt=f"ckpt-{turn}",
                         env=dict(os.environ, TMPDIR=str(place))) as job:
                job.wait_until(job.lines, "a line")
                launcher = launcher_of(job)
                check(launcher and first <= launcher < first + TAKEN, f"this test finds nothing: {launcher}, from {first} on")
                check(launcher % FREE == 0, f"the launcher's number is {launcher}")
                job.ask("cancel")
                job.end()
            shutil.rmtree(place)


if __name__ == "__main__":
    sys.exit(harness.verdict("session", run))
