#!/usr/bin/env python3
"""Programs that are hard to stop or large in numbers (tests/programs/stubborn.c, goroutines.go, descriptors.c): natively,
checkpointed and resumed, checkpointed again and restarted on both libraries.

    stopping_test.py stubborn|goroutines|descriptors|other_go openmpi|mpich
"""
import os
import sys

import harness
from harness import PROGRAMS, Job, Scratch, check

# Descriptors of a rank, if its limit allows so many; once in full.
MOST = {"openmpi": "50000", "mpich": "2000"}
OTHER = {"openmpi": "mpich", "mpich": "openmpi"}


def said(job):
    return job.finish()[-1:]


def run(name, mpi):
    program = [PROGRAMS / f"{name}.{mpi}"]
    if name == "descriptors":
        program.append(MOST[mpi])
    with Scratch(name) as cwd:
        want = harness.native(program, 2, mpi, cwd)[-1:]
        check(want and "right" in want[0], f"native: {want}")
        hold = cwd / "go"
        env = dict(os.environ, HOLD_FILE=str(hold))
        Job.stopped_at_ready(program, 2, cwd, mpi, env)
        # The second generation is of a program that went on after the first, which is of one that was never stopped.
        for to, generation in ((mpi, "latest"), (OTHER[mpi], "1")):
            with Job.restart(cwd, mpi=to, env=env, extra=["--generation", generation]) as job:
                hold.touch()
                check(said(job) == want, f"restarted on {to}: {job.output()}{job.errors()}")
            hold.unlink()
        if name != "stubborn":
            return
        with Job.run(program, 2, cwd, mpi=mpi, ckpt="resumed", env=env) as job:
            job.wait_line("READY")
            job.checkpoint()
            hold.touch()
            check(said(job) == want, f"resumed: {job.output()}{job.errors()}")


def other_go(mpi):
    """Calls of a Go that is not known are said at the restart."""
    with Scratch("other-go") as cwd:
        program = [PROGRAMS / f"other_go.{mpi}", 200, 1]
        want = harness.native(program, 2, mpi, cwd)
        env = dict(os.environ, STEADY_PAUSE="5000")
        with Job.run(program, 2, cwd, mpi=mpi, env=env) as job:
            job.wait_until(lambda: len(job.lines()) > 30, "30 lines")
            job.checkpoint("--stop")
            lines = job.finish(expected=85)
        with Job.restart(cwd, mpi=mpi, env=env) as job:
            lines += job.finish()
            check(lines == want, "the lines of two lives differ")
            check("of a program in Go" in job.errors(), f"not warned: {job.errors()}")


if __name__ == "__main__":
    if sys.argv[1] == "goroutines" and not (PROGRAMS / f"goroutines.{sys.argv[2]}").exists():
        print("skipped: there was no `go` when this was built")
        sys.exit(77)
    sys.exit(harness.verdict("stopping", lambda: other_go(sys.argv[2]) if sys.argv[1] == "other_go" else run(*sys.argv[1:])))
