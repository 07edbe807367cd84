"""Helper commands that have ended are asked for a moment later, others after some steps: how each has ended is heard, whatever
comes between.

    python3 reaping.py STEPS
"""
import os
import sys
import time

from mpi4py import MPI

LATER = 12  # steps
world = MPI.COMM_WORLD
left = []


def started(code):
    return os.posix_spawn("/bin/sh", ["sh", "-c", f"exit {code}"], os.environ)


def heard(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


for step in range(int(sys.argv[1])):
    left.append(started(step % 5))
    pid = started(step % 7)
    time.sleep(0.03)
    said = [heard(pid)] + ([heard(left.pop(0))] if len(left) > LATER else [])
    said = world.gather(said, 0)
    time.sleep(0.06)
    if world.rank == 0:
        print("step", step, said, flush=True)
while left:
    said = world.gather(heard(left.pop()), 0)
    if world.rank == 0:
        print("left", said, flush=True)
