"""Helper commands that have ended are asked for a moment later: how each has ended is heard, whatever comes between.

    python3 reaping.py STEPS
"""
import os
import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
for step in range(int(sys.argv[1])):
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", f"exit {step % 7}"], os.environ)
    time.sleep(0.03)
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    heard = world.gather(ended, 0)
    time.sleep(0.06)
    if world.rank == 0:
        print("step", step, heard, flush=True)
