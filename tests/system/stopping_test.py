#!/usr/bin/env python3
"""Programs that are hard to stop or large in numbers (tests/programs/stubborn.c, goroutines.go, descriptors.c): natively,
checkpointed and resumed, checkpointed again and restarted on both libraries.

    stopping_test.py stubborn|goroutines|descriptors openmpi|mpich
"""
import os
import sys

import harness
from harness import PROGRAMS, Job, Scratch, check

OTHER = {"openmpi": "mpich", "mpich": "openmpi"}


def said(job):
    return job.finish()[-1:]


def run(name, mpi):
    program = PROGRAMS / f"{name}.{mpi}"
    if name == "goroutines" and not program.exists():
        print("skipped: there was no `go` when this was built")
        return
    with Scratch(name) as cwd:
        want = harness.native([program], 2, mpi, cwd)[-1:]
        check(want and "right" in want[0], f"native: {want}")
        hold = cwd / "go"
        env = dict(os.environ, HOLD_FILE=str(hold))
        with Job.run([program], 2, cwd, mpi=mpi, env=env) as job:
            job.wait_line("READY")
            job.checkpoint()
            job.checkpoint("--stop")
            job.finish(expected=85)
        # The first generation is of a program that has not been stopped before, the second of one that went on.
        for to, generation in ((mpi, "latest"), (OTHER[mpi], "1")):
            with Job.restart(cwd, mpi=to, env=env, extra=["--generation", generation]) as job:
                hold.touch()
                check(said(job) == want, f"restarted on {to}: {job.output()}{job.errors()}")
            hold.unlink()
        with Job.run([program], 2, cwd, mpi=mpi, ckpt="resumed", env=env) as job:
            job.wait_line("READY")
            job.checkpoint()
            hold.touch()
            check(said(job) == want, f"resumed: {job.output()}{job.errors()}")


if __name__ == "__main__":
    sys.exit(harness.verdict("stopping", lambda: run(*sys.argv[1:])))
