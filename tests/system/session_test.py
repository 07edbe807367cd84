#!/usr/bin/env python3
"""Directories of Open MPI's launchers in $TMPDIR.

    session_test.py numbers   another launcher of Open MPI 5 has left its own: this one gets the number of a process
                              for which there is none
    session_test.py shared    other launchers of Open MPI 4 remove the one that all share whenever it is empty
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
STARTS = 6


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


def numbers(cwd):
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


REMOVER = """
import os, sys
while os.getppid() == int(sys.argv[2]):
    try: os.rmdir(sys.argv[1])
    except OSError: pass
"""


def shared(cwd):
    place = cwd / "tmp"
    place.mkdir()
    env = dict(os.environ, TMPDIR=str(place))
    directory = place / f"ompi.{os.uname().nodename.split('.')[0]}.{os.getuid()}"
    program = [PROGRAMS / "mix.openmpi", "3", "10"]
    with subprocess.Popen([sys.executable, "-c", REMOVER, directory, str(os.getpid())]) as remover:
        try:
            native = [subprocess.run(["mpiexec.openmpi", "--oversubscribe", "-n", "2", *program], env=env, cwd=cwd,
                                     capture_output=True, text=True, timeout=harness.PATIENCE) for _ in range(STARTS)]
            lost = sum(done.returncode != 0 for done in native)
            print(f"   natively {lost} of {STARTS} did not start")
            for turn in range(STARTS):
                with Job.run(program, 2, cwd, mpi="openmpi", ckpt=f"ckpt-{turn}", env=env) as job:
                    job.finish()
        finally:
            remover.kill()
    check(not directory.exists(), f"left behind: {list(directory.iterdir()) if directory.exists() else ''}")
    # Open MPI 5 has no such directory.
    version = subprocess.run(["mpiexec.openmpi", "--version"], capture_output=True, text=True, check=True).stdout
    check(lost or ") 4." not in version, "this test finds nothing")


CASES = {function.__name__: function for function in (numbers, shared)}


def run(name):
    with Scratch(f"session.{name}") as cwd:
        CASES[name](cwd)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
