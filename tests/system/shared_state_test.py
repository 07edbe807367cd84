#!/usr/bin/env python3
"""What ranks of one node share by other means than MPI (tests/programs/shared_state.c): the lines of a run without
Fermata, of one that is checkpointed and goes on, of one that is stopped and restarted, and of one that is killed
after it went on.

    shared_state_test.py CASE openmpi|mpich [RANKS]
    shared_state_test.py apart|foreign openmpi|mpich
"""
import os
import re
import subprocess
import sys

import harness
from harness import PROGRAMS, Job, Scratch, check

# By the case: System V objects that are left when a job is killed after its checkpoint.
LEFT = {"segment_kept": "-m", "semaphores": "-s", "messages": "-q"}


def program(mpi, case, cwd, way):
    (cwd / way).mkdir()
    return [PROGRAMS / f"shared_state.{mpi}", case, cwd / way]


def left_of(kind):
    if not kind:
        return set()
    lines = subprocess.run(["ipcs", kind], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[1] for line in lines if re.match("0x", line)}


def same(found, wanted, what):
    found = [line for line in found if line != "READY"]
    check(found == wanted, f"{what}:\n" + "\n".join(found) + "\ninstead of\n" + "\n".join(wanted))


def case(name, mpi, ranks="2"):
    ranks = int(ranks)
    with Scratch(f"shared-{name}") as cwd:
        wanted = harness.native(program(mpi, name, cwd, "native"), ranks, mpi, cwd)
        check(wanted, "the native run says nothing")
        warned = []
        before = left_of(LEFT.get(name))
        for way, options in (("resumed", ()), ("stopped", ("--stop",)), ("killed", ())):
            hold = cwd / f"go-{way}"
            env = dict(os.environ, HOLD_FILE=str(hold))
            with Job.run(program(mpi, name, cwd, way), ranks, cwd, mpi=mpi, ckpt=way + "-ckpt", env=env) as job:
                job.wait_line("READY")
                warned += job.checkpoint(*options)["warnings"]
                hold.touch()
                if way == "resumed":
                    same(job.finish(), wanted, way)
                    continue
                if way == "stopped":
                    job.finish(expected=85)
                else:
                    # Somewhere after the checkpoint: what it did since is to be undone.
                    job.wait_until(lambda: len(job.lines()) > 1 + ranks, "a line after the checkpoint")
                    job.kill_ranks()
            for other in (mpi,) if way == "killed" else ("mpich", "openmpi"):
                with Job.restart(cwd, mpi=other, ckpt=way + "-ckpt", env=env) as job:
                    same(job.finish(), wanted, f"{way}, restarted on {other}")
                    check("warning" not in job.errors() and "cannot" not in job.errors(), job.errors())
        left = left_of(LEFT.get(name)) - before
        check(not left, f"left behind: {LEFT.get(name)} {left}")
        return "; ".join(warned)


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(harness.verdict(f"shared_state {words[0]}", lambda: case(*words)))
