#!/usr/bin/env python3
"""A launcher that binds each rank to one core: the program stays there, what Fermata starts beside it may use all processors of
the launcher (else the node daemon waits for a rank that spins).

    binding_test.py openmpi|mpich
"""
import json
import os
import pathlib
import sys

import harness
from harness import Job, Scratch, check

BIND = {"openmpi": "--bind-to core", "mpich": "-bind-to core"}
RANKS = 2


def allowed(thread):
    lines = (thread / "status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("Cpus_allowed_list:"))


def threads(pid):
    """Name and processors of each."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return {(int(task.name), (task / "comm").read_text().strip(), allowed(task)) for task in tasks}


def running(job):
    done = harness.call("status", "--job", job.name, "--json")  # fails as long as the job has no name yet
    return done.returncode == 0 and json.loads(done.stdout)["state"] == "running"


def run(mpi):
    everything = allowed(pathlib.Path("/proc/self"))
    if len(os.sched_getaffinity(0)) < 2:
        print("one processor: bound or not is the same here")
    with Scratch("binding") as cwd, \
            Job.run([harness.PROGRAMS / f"mix.{mpi}", 1000000, 20000], RANKS, cwd, mpi=mpi, extra=["--mpiexec-args", BIND[mpi]]) as job:
        job.wait_until(lambda: running(job), "the start")
        pids = job.rank_pids()
        check(len(pids) == RANKS, f"{pids}")
        for pid in pids:
            cores = {where for thread, _, where in threads(pid) if thread == pid}
            check(len(os.sched_getaffinity(0)) < 2 or not cores & {everything}, f"the program is not bound: {threads(pid)}")
            check(any(where == everything for thread, _, where in threads(pid) if thread != pid),
                  f"rank {pid}: no thread of ours may leave the core: {threads(pid)}")
        found = job.daemon_pids()
        check(found, "no node daemon")
        check(all(allowed(pathlib.Path(f"/proc/{pid}")) == everything for pid in found), "the node daemon is bound")
        done = harness.call("cancel", "--job", job.name)
        check(done.returncode == 0, done.stderr)
        job.end()


if __name__ == "__main__":
    sys.exit(harness.verdict("binding", lambda: run(sys.argv[1])))
