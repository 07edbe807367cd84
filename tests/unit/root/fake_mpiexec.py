#!/usr/bin/python3
"""Stands in for mpiexec: starts N ranks, ends all when one fails or on SIGTERM, and exits like the first that failed.

FAKE_KEEPS=1: leaves the others alone when one ends. FAKE_MPIEXEC_IS_GLAD=1: exits with 0 whatever has happened.
FAKE_NODES=K spreads the ranks over K "nodes" (FERMATA_NODE). FAKE_SLOW_MPIEXEC=FILE: starts none before that exists.
"""
import os
import signal
import subprocess
import sys
import time

if "--version" in sys.argv:
    print("mpiexec (Open MPI) fake")
    sys.exit(0)
words = sys.argv[1:]
size = 1
while words and words[0].startswith("-"):
    option = words.pop(0)
    if option in ("-n", "-np"):
        size = int(words.pop(0))
    elif option == "-x":
        assert words.pop(0) in os.environ
nodes = int(os.environ.get("FAKE_NODES", "1"))
stopping = False


def stop(*_):
    global stopping
    stopping = True


signal.signal(signal.SIGTERM, stop)
while "FAKE_SLOW_MPIEXEC" in os.environ and not os.path.exists(os.environ["FAKE_SLOW_MPIEXEC"]):
    time.sleep(0.005)
ranks = []
for rank in range(size):
    env = dict(os.environ, FAKE_RANK=str(rank), FAKE_SIZE=str(size), FERMATA_NODE=f"fake{rank % nodes}",
               OMPI_COMM_WORLD_LOCAL_RANK=str(rank // nodes))
    ranks.append(subprocess.Popen(words, env=env))
if "FAKE_MPIEXEC_FAILS" in os.environ:
    stop()
code = 0
while any(rank.poll() is None for rank in ranks):
    failed = [rank.returncode for rank in ranks if rank.poll() not in (None, 0)]
    if failed and not code:
        code = failed[0] if failed[0] > 0 else 128 - failed[0]
    if failed and "FAKE_KEEPS" not in os.environ or stopping:
        if not stopping:
            time.sleep(0.3)  # so that everybody sees who was first
        for rank in ranks:
            rank.kill()
    time.sleep(0.005)
for rank in ranks:
    if rank.returncode and not code:
        code = rank.returncode if rank.returncode > 0 else 128 - rank.returncode
if "FAKE_MPIEXEC_IS_GLAD" in os.environ:
    sys.exit(0)
sys.exit(code if not stopping else 143)
