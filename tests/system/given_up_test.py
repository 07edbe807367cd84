#!/usr/bin/env python3
"""A checkpoint that ends when some ranks have begun to do together what comes before a save, and one has not.

    given_up_test.py cancelled|daemon_killed|rank_stopped openmpi|mpich     (rank_stopped mpich: by hand only)

Rank 0 sees five seconds late that all have met (tests/programs/late_meeting.c); one second after the others did, the
checkpoint is given up (one rank has been stopped by SIGSTOP and cannot go on: a line says so after a minute), or the node
daemon dies. The job goes on and its result is right.
"""
import os
import signal
import subprocess
import sys
import time

import harness
from harness import FERMATA, PATIENCE, PROGRAMS, Job, Scratch, check
from protocol_test import Request

RANKS = 3


def run(case, mpi):
    with Scratch(f"given-up-{case}-{mpi}") as cwd:
        program = [PROGRAMS / f"steady.{mpi}", 100, 1]
        wanted = harness.native(program, RANKS, mpi, cwd)
        env = dict(os.environ, FERMATA_LOWER_PRELOAD=str(PROGRAMS / f"liblate_meeting.{mpi}.so"), STEADY_PAUSE="2000", FERMATA_LOG="info")
        with Job.run(program, RANKS, cwd, mpi=mpi, env=env) as job:
            job.wait_until(lambda: len(job.lines()) > 10, "ten steps")
            pids = job.rank_pids()
            request = Request(job)
            job.wait_until(lambda: "checkpoint 1: suspend" in job.errors(), "the save")
            # Seconds pass before it gives those up who are in the library.
            status = subprocess.Popen([str(FERMATA), "status", "--job", job.name, "--waits"], stdout=subprocess.PIPE, text=True)
            time.sleep(1)
            before = len(job.lines())
            if case == "daemon_killed":
                for pid in job.daemon_pids():
                    os.kill(pid, signal.SIGKILL)
                code, said = request.end()
                check(code != 0 and "daemon" in said, f"the checkpoint said {code}, {said}")
                status.communicate(timeout=PATIENCE)
                if harness.WITHOUT_DAEMON:
                    code = job.end()
                    return check(code == harness.WITHOUT_DAEMON and "the node daemon of" in job.errors(), f"{code}: {job.errors()}")
            else:
                if case == "rank_stopped":
                    os.kill(pids[2], signal.SIGSTOP)
                code, said = request.give_up()
                if case == "rank_stopped":
                    # All have begun to meet, so they wait for that one.
                    check("; 3 of 3 ranks have not gone on yet" in said, said)
                    os.kill(pids[2], signal.SIGCONT)
                check(code != 0 and "cancelled" in said, f"the checkpoint said {code}, {said}")
                waits = status.communicate(timeout=PATIENCE)[0]
                check(case == "rank_stopped" or "rank 0" in waits and "stands until every rank has been told to save" in waits, waits)
                job.wait_until(lambda: len(job.lines()) > before + 1, "further steps")
                job.checkpoint()
            lines = job.finish()
        check(lines == wanted, f"{len(lines)} lines for {len(wanted)}; the last: {lines[-1:]}")
        left = sorted(path.name for path in (cwd / "ckpt").glob("gen-*"))
        check(left == [] if case == "daemon_killed" else len(left) == 1, f"generations: {left}")


if __name__ == "__main__":
    sys.exit(harness.main(run, ["cancelled", "daemon_killed", "rank_stopped"]))
