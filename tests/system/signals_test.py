#!/usr/bin/env python3
"""Signals that come to ranks while checkpoints are taken (tests/programs/signalled.c): each is heard once.

    signals_test.py openmpi|mpich [CHECKPOINTS]
"""
import os
import signal
import sys
import threading
import time

import harness
from harness import PROGRAMS, Job, Scratch, check


def main(mpi, checkpoints="4"):
    sent, over = 0, threading.Event()
    with Scratch("signals") as cwd:
        go = cwd / "go"
        with Job.run([PROGRAMS / f"signalled.{mpi}"], 2, cwd, mpi=mpi, env=dict(os.environ, HOLD_FILE=str(go))) as job:
            job.wait_line("READY")
            pids = job.rank_pids()

            def send():
                nonlocal sent
                while not over.wait(0.001):
                    for pid in pids:
                        os.kill(pid, signal.SIGRTMIN + 3)
                    sent += 1
            sender = threading.Thread(target=send)
            sender.start()
            try:
                for _ in range(int(checkpoints)):
                    job.checkpoint()
            finally:
                over.set()
                sender.join()
            time.sleep(0.1)  # the last ones are handled
            go.touch()
            lines = job.finish()
        wanted = ["READY"] + [f"rank {rank} heard {sent}" for rank in range(2)]
        check(lines == wanted, f"{lines}, wanted {wanted}")
    return f"{sent} signals a rank"


if __name__ == "__main__":
    sys.exit(harness.verdict("signals", lambda: main(*sys.argv[1:])))
