#!/usr/bin/env python3
"""Messages in the short forms of their own, checkpointed many times in one run, and continued on both libraries.

    exchanging_test.py openmpi|mpich [CHECKPOINTS [SEED]]
"""
import random
import sys
import time

import harness
from harness import PROGRAMS, Job, Scratch, check

RANKS = 4
ROUNDS = 200  # of the program, for each checkpoint


def run(built_for, checkpoints="8", seed="1"):
    draw = random.Random(f"{built_for}{seed}")
    with Scratch(f"exchanging-{built_for}") as cwd:
        program = [PROGRAMS / f"exchanging.{built_for}", str(ROUNDS * int(checkpoints))]
        native = [line for line in harness.native(program, RANKS, built_for, cwd) if "right" in line]
        check(len(native) == 1, f"the native run says {native}")
        made = 0
        with Job.run(program, RANKS, cwd, mpi=built_for) as job:
            job.wait_line("READY")
            while made < int(checkpoints) and job.process.poll() is None:
                time.sleep(draw.uniform(0, 0.05))
                job.checkpoint()
                made += 1
            lines = job.finish()
            check([line for line in lines if "right" in line] == native, f"after {made} checkpoints: {lines}")
        check(made == int(checkpoints), f"only {made} checkpoints")
        for mpi in ("openmpi", "mpich"):
            generation = draw.randint(1, made)
            with Job.restart(cwd, mpi=mpi, generation=generation) as job:
                lines = job.finish()
                got = [line for line in lines if "right" in line]
                check(got == native, f"{generation} on {mpi}: {lines}, wanted {native}")
        return f"{native[0]}; the same after {made} checkpoints, and from two of them on both libraries"


if __name__ == "__main__":
    sys.exit(harness.main(run, ["openmpi", "mpich"]))
