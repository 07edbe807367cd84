#!/usr/bin/env python3
"""Copies of ranks on other nodes (`run --replicas` over several): a rank is killed, or all of a node, and the job ends
with the native lines, each once. Nodes are those of nodes_test.py.

    node_death_test.py CASE openmpi|mpich
"""
import os
import pathlib
import re
import signal
import sys
import time

import harness
from harness import PROGRAMS, Job, Scratch, check
from nodes_test import Cluster, run

STEPS, WORK = 160, 1000
MASKED = re.compile(r"rank \d+ on (\S+) was killed by signal 9: its copy on (\S+) goes on in its place")
LOST = re.compile(r"node (\S+) is lost \(its daemon, process \d+, is gone\): ")


def program(mpi, steps=STEPS):
    return [PROGRAMS / f"mix.{mpi}", str(steps), str(WORK)]


class Copied:
    """A job over nodes whose ranks have copies on other ones."""

    def __init__(self, cwd, mpi, nodes, ranks, env=(), steps=STEPS, words=None):
        self.cwd, self.mpi, self.ranks = cwd, mpi, ranks
        self.program = words or program(mpi, steps)
        self.native = harness.native(self.program, ranks, mpi, cwd)
        self.cluster = Cluster(cwd, nodes)
        self.env = dict(env)

    def __enter__(self):
        self.cluster.__enter__()
        self.words, env, on = self.cluster.own_job(-(-self.ranks // len(self.cluster.nodes)))
        self.env = {**env, **self.env}
        self.job = Job.run(self.program, self.ranks, self.cwd, mpi=self.mpi, extra=[*self.words, "--replicas", "all"],
                           env=self.env, on=on)
        self.job.__enter__()
        return self

    def __exit__(self, *what):
        self.job.__exit__(*what)
        self.cluster.__exit__(*what)

    def replicas(self):
        return self.job.status()["replicas"]

    def wait_for_copies(self, number=None):
        """Each on another node than its rank."""
        self.job.wait_until(self.job.lines, "its first line")
        self.job.wait_until(lambda: self.replicas()["had"] == (self.ranks if number is None else number), "the copies")
        ranks = {rank["rank"]: rank["host"] for rank in self.job.status()["ranks"]}
        for copy in self.replicas()["ranks"]:
            check(copy["copy"] != "follows" or copy["host"] != ranks.get(copy["rank"]), f"{copy} {ranks}")

    def further(self, lines=20):
        begun = len(self.job.lines())
        self.job.wait_until(lambda: len(self.job.lines()) >= begun + lines, f"{lines} more lines")

    def finish(self):
        lines = self.job.finish()
        wrong = [pair for pair in zip(lines, self.native) if pair[0] != pair[1]][:2]
        check(lines == self.native, f"{len(lines)} lines, natively {len(self.native)}; {wrong}\n{self.job.errors()}")
        for node in self.cluster.nodes:
            node.empty()
        return self.job.errors()

    def rank_pids_on(self, node):
        def is_rank(pid):
            try:
                return pathlib.Path(f"/proc/{pid}/comm").read_text().startswith(self.program[0].name[:4])
            except OSError:
                return False
        return [pid for pid in self.job.rank_pids() if pid in node.pids() and is_rank(pid)]


def rank(mpi):
    """One rank of the second node is killed: its copy on the first takes its place."""
    with Scratch(f"node-death-{mpi}") as cwd, Copied(cwd, mpi, 2, 2) as job:
        job.wait_for_copies()
        job.further()
        os.kill(job.rank_pids_on(job.cluster.nodes[1])[0], signal.SIGKILL)
        errors = job.finish()
        check(MASKED.findall(errors) == [("fermata-b", "fermata-a")], errors)


def dies(mpi, nodes, ranks, more=lambda job: None, env=()):
    with Scratch(f"node-death-{mpi}") as cwd, Copied(cwd, mpi, nodes, ranks, env) as job:
        job.wait_for_copies()
        job.further()
        begin = time.monotonic()
        check(job.cluster.nodes[1].kill() > 0, "nothing was on the second node")
        job.job.wait_until(lambda: job.replicas()["masked"] == ranks // nodes, "the ranks to be played by their copies")
        took = time.monotonic() - begin
        more(job)
        errors = job.finish()
        check(LOST.findall(errors) == ["fermata-b"], errors)
    return f"{took:.1f} s"


def node(mpi):
    """All of one of two nodes: everybody is on the other one then, and nobody has a copy."""
    return dies(mpi, 2, 2)


def both(mpi):
    """Two ranks a node."""
    return dies(mpi, 2, 4)


def believe(mpi):
    """Ranks die that others meet in a reduction, or wait for a long message of: the library may give that back as if all
    were well."""
    words = [PROGRAMS / f"believe.{mpi}", str(20 * STEPS)]
    with Scratch(f"node-death-{mpi}") as cwd, Copied(cwd, mpi, 2, 4, words=words) as job:
        job.wait_for_copies()
        job.further()
        for masked in (1, 2):
            os.kill(job.rank_pids_on(job.cluster.nodes[1])[0], signal.SIGKILL)
            job.job.wait_until(lambda: job.replicas()["masked"] == masked, "its copy in its place")
        job.finish()


def third(mpi):
    """All of one of three: copies are made again on the two that are left."""
    return dies(mpi, 3, 3, lambda job: job.wait_for_copies())


def cut(mpi):
    """The cable of the second node: nobody there computes on, and only then its ranks are played elsewhere."""
    silent = 2
    with Scratch(f"node-death-{mpi}") as cwd, Copied(cwd, mpi, 2, 2, {"FERMATA_TREE_SILENT": str(1000 * silent)}) as job:
        job.wait_for_copies()
        job.further()
        second = job.cluster.nodes[1]
        run(*second.on, "ip", "link", "set", "cable", "down")
        job.job.wait_until(lambda: "is lost (its daemon" in job.job.errors(), "the loss", timeout=10 * silent)
        job.job.wait_until(lambda: job.replicas()["masked"] == 1, "its rank to be played by its copy")
        check(not second.pids(), f"they compute on: {second.pids()}")
        job.finish()


def saved(mpi):
    """Stopped by a checkpoint while the copies are on other nodes, continued on the same nodes, where they come again;
    then the second node dies."""
    with Scratch(f"node-death-{mpi}") as cwd, Copied(cwd, mpi, 2, 2, steps=4 * STEPS) as job:
        job.wait_for_copies()
        job.further()
        job.job.checkpoint("--stop")
        lines = job.job.finish(expected=85)
        with Job.restart(cwd, mpi=mpi, extra=job.words, env=job.env, on=job.cluster.nodes[0].on) as again:
            job.job = again
            job.wait_for_copies()
            job.further()
            job.cluster.nodes[1].kill()
            lines += again.finish()
        check(lines == job.native, f"{len(lines)} lines, natively {len(job.native)}")


def unmasked(mpi):
    """The copy of the second node's rank has ended before: the job ends, and says so."""
    with Scratch(f"node-death-{mpi}") as cwd, Copied(cwd, mpi, 2, 2) as job:
        job.wait_for_copies()
        copy = next(one for one in job.replicas()["ranks"] if one["rank"] == 1)
        os.kill(copy["pid"], signal.SIGKILL)
        job.cluster.nodes[1].kill()
        check(job.job.end() == 128 + signal.SIGKILL, f"{job.job.process.returncode}: {job.job.errors()}")
        # The end of the copy is heard before the end of its rank's node, or behind it.
        check(" no copy " in job.job.errors(), job.job.errors())
        for place in job.cluster.nodes:
            place.empty()


CASES = {f.__name__: f for f in (rank, node, both, believe, third, cut, saved, unmasked)}

if __name__ == "__main__":
    sys.exit(harness.main(lambda name, mpi: CASES[name](mpi), CASES))
