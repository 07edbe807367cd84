#!/usr/bin/env python3
"""Process and thread ids over checkpoints (tests/programs/identity.c, asyncio_ring.py): natively, resumed, restarted twice
on the library named and once on the other one.

    identity_test.py program|asyncio|container openmpi|mpich

container: program in a pid namespace whose session is outside, as what `docker exec` starts; its number is 0 there.
"""
import json
import os
import pathlib
import sys

import harness
from harness import PROGRAMS, Job, Scratch, check

OTHER = {"openmpi": "mpich", "mpich": "openmpi"}
SOURCES = pathlib.Path(__file__).resolve().parents[1] / "programs"


def said(lines):
    return [line for line in lines if line != "READY"]


def runs(job):
    done = job.ask("status", "--json")
    return done.returncode == 0 and json.loads(done.stdout)["phase"] == "running"


def run(words, ranks, mpi, cwd, hold_in_words):
    hold = cwd / "go"
    env = dict(os.environ) if hold_in_words else dict(os.environ, HOLD_FILE=str(hold))
    words = [hold if word == "HOLD" else word for word in words]
    hold.touch()
    want = said(harness.native(words, ranks, mpi, cwd, env=env))
    check(want and all("not true" not in line for line in want), f"native: {want}")
    hold.unlink()
    with Job.run(words, ranks, cwd, mpi=mpi, ckpt="resumed", env=env) as job:
        job.wait_line("READY")
        job.checkpoint()
        hold.touch()
        check(said(job.finish()) == want, f"resumed: {job.output()}{job.errors()}")
    hold.unlink()
    with Job.run(words, ranks, cwd, mpi=mpi, env=env) as job:
        job.wait_line("READY")
        job.checkpoint("--stop")
        job.finish(expected=85)
    # A second checkpoint of a restarted process: what it was shown as it stays.
    with Job.restart(cwd, mpi=mpi, env=env) as job:
        job.wait_until(lambda: runs(job), "the restart")
        job.checkpoint("--stop")
        job.finish(expected=85)
    for to in (mpi, OTHER[mpi]):
        with Job.restart(cwd, mpi=to, env=env) as job:
            job.wait_until(lambda: runs(job), "the restart")
            hold.touch()
            check(said(job.finish()) == want, f"restarted on {to}: {job.output()}{job.errors()}")
        hold.unlink()


def main(what, mpi):
    if what == "container" and os.getsid(0) != 0:
        words = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--pid", "--fork", "--mount-proc"]
        os.execvp(words[0], [*words, sys.executable, *sys.argv])
    with Scratch("identity") as cwd:
        if what != "asyncio":
            run([PROGRAMS / f"identity.{mpi}", cwd], 3, mpi, cwd, False)
        else:
            run(["/usr/bin/python3", SOURCES / "asyncio_ring.py", "HOLD"], 2, mpi, cwd, True)


if __name__ == "__main__":
    sys.exit(harness.verdict("identity", lambda: main(*sys.argv[1:])))
