#!/usr/bin/env python3
"""Moments at which it is not obvious that a checkpoint can come (tests/programs/waits.c): each ends in a checkpoint, or waits
with a diagnosis until the program makes its next MPI call, and never disturbs the run.

    liveness_test.py CASE [openmpi|mpich]
"""
import random
import sys
import time
import types

import harness
from harness import PROGRAMS, Job, Scratch, check
from protocol_test import Request, waits
from scenario_test import Moments

RANKS = 4
BUSY = 6  # seconds of computing, against milliseconds that a checkpoint takes
OTHER = {"openmpi": "mpich", "mpich": "openmpi"}
# Loops: how many repeats, and random moments in them.
LOOPS = {"creation": 60, "poll_test": 200, "poll_iprobe": 200, "poll_collective": 200, "server": 1500, "locks": 400}


class Waits:
    """One case as Moments wants a program."""

    prefix = "waits:"
    ranks = RANKS

    def __init__(self, name, cwd):
        self.name, self.cwd, self.known = name, cwd, {}

    def threaded(self):
        return False

    def program(self, mpi, repeats, _seed=0, seconds=0):
        return [PROGRAMS / f"waits.{mpi}", self.name, repeats, seconds]

    def result(self, repeats):
        """Of the undisturbed run; Open MPI yields where ranks share cores, so it is the quicker one."""
        if repeats not in self.known:
            lines = harness.native(self.program("openmpi", repeats), RANKS, "openmpi", self.cwd)
            self.known[repeats] = next(line for line in lines if line.startswith(self.prefix))
        return self.known[repeats]


def loop_case(name, mpi, cwd):
    options = types.SimpleNamespace(repeats=LOOPS[name], seconds=0, gap=0.05, restarts=0.25, protocol="cc-d", verbose=False,
                                    hold=False)
    Moments(Waits(name, cwd), mpi, random.Random(f"{name} {mpi}"), options, cwd).take(6)


def start(case, mpi, cwd):
    return Job.run(case.program(mpi, 1, seconds=BUSY), RANKS, cwd, mpi=mpi)


def finish(job, result):
    lines = job.finish()
    check(result in lines, f"{lines}, not {result}")


def continued(cwd, mpi, want):
    with Job.restart(cwd, mpi=mpi, generation=1) as job:
        lines = [line for line in job.finish() if line.startswith("waits:")]
        check(lines == want, f"on {mpi}: {lines}, not {want}")


def at_once(name, mpi, cwd):
    """Nobody owes anything: the checkpoint interrupts the computation, which goes on afterwards, here and from the image."""
    case = Waits(name, cwd)
    result = case.result(1)
    with start(case, mpi, cwd) as job:
        job.wait_line("READY")
        before = time.monotonic()
        job.checkpoint()
        took = time.monotonic() - before
        check(job.process.poll() is None, f"the program had ended: the checkpoint took {took:.1f} s")
        job.kill_ranks()
    for library in (mpi, OTHER[mpi]):
        continued(cwd, library, [] if name == "late_finalize" else [result])


def waits_for(name, facts, mpi, cwd):
    """The checkpoint waits for the computation and says so; the run ends as if nothing had been asked."""
    case = Waits(name, cwd)
    result = case.result(1)
    with start(case, mpi, cwd) as job:
        job.wait_line("READY")
        # Until everybody is where the case wants it: inside the collective, in the receive, computing.
        job.wait_until(lambda: all(fact in waits(job) for rank_facts in facts[0] for fact in rank_facts), "the others to wait")
        request = Request(job)
        seen = {}

        def said_all():
            text = waits(job)
            for rank, fact in facts[1]:
                if any(line.startswith(f"rank {rank} on") and fact in line for line in text.splitlines()):
                    seen[rank, fact] = True
            return request.done() or len(seen) == len(facts[1])

        job.wait_until(said_all, f"the diagnosis (seen: {list(seen)})", 60)
        check(len(seen) == len(facts[1]), f"only {list(seen)} was said of {facts[1]}")
        print("\n".join(f"rank {rank}: {fact}" for rank, fact in seen))
        code, said = request.end()
        check(code == 0, f"{code}: {said}")
        finish(job, result)
    continued(cwd, OTHER[mpi], [result])


WAITING = {
    "computing": ([["thread 0 in MPI_Allreduce"]],
                  [(1, "outside MPI for"), (1, "must still begin collective"), (0, "thread 0 in MPI_Allreduce (in the library)"),
                   (0, "inside collective")]),
    "owed_message": ([["thread 0 in MPI_Recv", "thread 0 in MPI_Allreduce"]],
                     [(0, "outside MPI for"), (0, "must still send message"), (1, "thread 0 in MPI_Recv, peer rank 0"),
                      (1, "must still begin collective"), (1, "has asked rank 0 for message"), (2, "inside collective")]),
    "held_lock": ([["thread 0 in MPI_Win_lock"]],
                  [(1, "outside MPI for"), (2, "thread 0 in MPI_Win_lock"), (2, "is in a one-sided call"),
                   (3, "has asked all who hold a lock to go on")]),
}
AT_ONCE = ("late_message", "late_finalize")
CASES = [*LOOPS, *WAITING, *AT_ONCE]


def run(name, mpi="openmpi"):
    with Scratch(f"liveness-{name}") as cwd:
        if name in LOOPS:
            loop_case(name, mpi, cwd)
        elif name in WAITING:
            waits_for(name, WAITING[name], mpi, cwd)
        else:
            at_once(name, mpi, cwd)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
