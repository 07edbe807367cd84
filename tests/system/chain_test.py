#!/usr/bin/env python3
"""The same line again and again, each time for as long as it is given, ends with the undisturbed result.

    chain_test.py openmpi|mpich [SECONDS LIMIT]

The program takes SECONDS (3) of which each turn has LIMIT (4): `fermata run --continue --walltime LIMIT` until it says 0.
At length: `chain_test.py openmpi 60 20`.
"""
import json
import os
import sys
import time

import harness
from harness import PROGRAMS, Job, Scratch, check

RANKS = 2
PAUSE = 10000  # us a step


def run(mpi, seconds="3", limit="4"):
    seconds, limit = float(seconds), float(limit)
    steps = int(seconds * 1e6 / PAUSE)
    program = [PROGRAMS / f"steady.{mpi}", steps, 1]
    env = dict(os.environ, STEADY_PAUSE=str(PAUSE))
    with Scratch(f"chain-{mpi}") as cwd:
        reference = harness.native(program, RANKS, mpi, cwd, env=dict(env, STEADY_PAUSE="0"))
        lines, turns, longest = [], 0, 0.0
        while True:
            turns += 1
            check(turns <= 40, f"{turns} turns and no end: {lines[-1:]}")
            start = time.monotonic()
            with Job.run(program, RANKS, cwd, mpi=mpi, extra=["--continue", "--walltime", f"{limit}s"], env=env) as job:
                code = job.end()
                took = time.monotonic() - start
                lines += job.lines()
                check(code in (0, 85), f"turn {turns} ended with {code}: {job.errors()[-2000:]}")
                check(lines == reference[:len(lines)], f"turn {turns}: a wrong line, or one twice: {lines[-3:]}")
            if code == 0:
                break
            longest = max(longest, took)
        check(lines == reference, f"{len(lines)} lines of {len(reference)}")
        check(turns > 1, "the first turn was long enough for all")
        # In time: what is not is ended by a scheduler. A crowded machine may need longer for its start.
        check(longest <= limit + harness.PATIENCE / 60, f"a turn of {limit} s took {longest:.1f}")
        done = Job.run(program, RANKS, cwd, mpi=mpi, extra=["--continue"], env=env)
        done.finish()
        check("nothing is left to be done" in done.errors(), done.errors())
        events = [json.loads(line) for line in (cwd / "ckpt" / "journal.jsonl").read_text().splitlines()]
        check(sum(e["event"] == "start" for e in events) == turns, f"{turns} turns: {events}")
        return f"{turns} turns, the longest {longest:.1f} s of {limit:.0f} s"


if __name__ == "__main__":
    sys.exit(harness.main(run, ["openmpi", "mpich"]))
