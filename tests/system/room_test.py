#!/usr/bin/env python3
"""A program that raises RLIMIT_STACK and recurses, one that closes all descriptors, one with large thread-locals, one with guard pages: as natively, also checkpointed and continued on both.

    room_test.py stack|close|thread_locals|guards openmpi|mpich
"""
import os
import sys

import harness
from harness import PROGRAMS, Job, Scratch, check


def life(cwd, mpi, program, same):
    """`same`: what has the same result natively."""
    want = harness.native([program[0], *same], 2, mpi, cwd)
    hold = cwd / "go"
    with Job.run(program, 2, cwd, mpi=mpi, env=dict(os.environ, HOLD_FILE=str(hold))) as job:
        job.wait_line("READY")
        job.checkpoint()
        hold.touch()
        job.wait_until(lambda: job.lines()[-1:] == want, "the native line")
        check(job.finish()[-1:] == want, job.output())
    for other in ("openmpi", "mpich"):
        with Job.restart(cwd, mpi=other) as job:
            check(job.finish()[-1:] == want, f"on {other}: {job.output()}{job.errors()}")
    hold.unlink()


def stack(cwd, mpi):
    life(cwd, mpi, [PROGRAMS / f"room.{mpi}", "grows"], ["grows"])
    life(cwd, mpi, [PROGRAMS / f"room.{mpi}", "stack"], ["stack"])
    # What is mapped when it is touched ends where it ended.
    with Job.restart(cwd, mpi=mpi, extra=["--mapped"], env=dict(os.environ, HOLD_FILE=str(cwd / "go"))) as job:
        (cwd / "go").touch()
        check("right" in job.finish()[-1], job.output())


def close(cwd, mpi):
    for way in ("range", "unshare", "from", "loop", "listed", "raw"):
        life(cwd, mpi, [PROGRAMS / f"room.{mpi}", "close", way], ["close", "nothing"])


def thread_locals(cwd, mpi):
    """Preloaded; with tunables of the user's own and without."""
    for tunables in ("", "glibc.malloc.arena_max=3:glibc.rtld.optional_static_tls=1000"):
        os.environ.pop("GLIBC_TUNABLES", None)
        os.environ["LD_PRELOAD"] = str(PROGRAMS / "libthread_locals.so")
        if tunables:
            os.environ["GLIBC_TUNABLES"] = tunables
        life(cwd, mpi, [PROGRAMS / f"thread_locals.{mpi}"], [])


def guards(cwd, mpi):
    """Also where pages are followed, where a copy of the process writes, and where memory is mapped when it is touched."""
    program = [PROGRAMS / f"guards.{mpi}"]
    life(cwd, mpi, program, [])
    hold = cwd / "go"
    with Job.run(program, 2, cwd, mpi=mpi, ckpt="followed", extra=["--save-options", "incremental,forked"],
                 env=dict(os.environ, HOLD_FILE=str(hold))) as job:
        job.wait_line("READY")
        job.checkpoint()
        job.checkpoint()
        hold.touch()
        want = job.finish()[-1:]
    with Job.restart(cwd, mpi=mpi, ckpt="followed", extra=["--mapped"], env=dict(os.environ, HOLD_FILE=str(hold))) as job:
        check(job.finish()[-1:] == want and "right" in want[0], f"{job.output()}{job.errors()}, wanted {want}")


CASES = {"stack": stack, "close": close, "thread_locals": thread_locals, "guards": guards}


def run(name, mpi):
    with Scratch("room") as cwd:
        CASES[name](cwd, mpi)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
