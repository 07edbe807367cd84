#!/usr/bin/env python3
"""Objects made and freed, few times and many times: neither memory (the program's own check) nor image nor restart time grows.

    cycles_test.py openmpi|mpich [FEW MANY]
"""
import os
import pathlib
import sys
import time

import harness
from harness import PROGRAMS, Job, Scratch, check

RANKS = 2


def measured(cwd, mpi, cycles):
    """Bytes of the images and seconds of the quickest of three restarts, after so many cycles."""
    cwd = cwd / str(cycles)
    cwd.mkdir()
    hold = cwd / "go"
    # Before its hold the trap makes three fifths of CYCLES.
    env = dict(os.environ, HOLD_FILE=str(hold), CYCLES=str(int(cycles / 0.6)), AFTER="20")
    with Job.run([PROGRAMS / f"trap.{mpi}", "cycles"], RANKS, cwd, mpi=mpi, env=env) as job:
        job.wait_line("READY")
        said = job.checkpoint()
        job.kill_ranks()
    size = sum(image.stat().st_size for image in (pathlib.Path(said["directory"]) / said["generation"]).glob("*"))
    hold.touch()
    quickest = None
    for _ in range(3):
        before = time.monotonic()
        with Job.restart(cwd, mpi=mpi, generation=1) as job:
            lines = job.finish()
        took = time.monotonic() - before
        quickest = min(took, quickest or took)
        check(any("right" in line for line in lines), f"after {cycles} cycles and a restart: {lines}")
    return size, quickest


def run(mpi, few="100", many="1000"):
    with Scratch(f"cycles-{mpi}") as cwd:
        small, soon = measured(cwd, mpi, int(few))
        large, late = measured(cwd, mpi, int(many))
        said = (f"after {few} cycles {small / 1024:.0f} KiB, restart {soon:.2f} s; after {many} "
                f"{large / 1024:.0f} KiB, {late:.2f} s")
        # A leak of 16 bytes a cycle and rank would be seen; of what the library below leaks nothing is in an image.
        check(large - small <= (int(many) - int(few)) * RANKS * 16 + 64 * 1024, said)
        # Twice is generous, and an object left by each cycle would be made again at a restart: tens of seconds.
        check(late <= 2 * soon + 1, said)
        return said


if __name__ == "__main__":
    sys.exit(harness.main(run, ["openmpi", "mpich"]))
