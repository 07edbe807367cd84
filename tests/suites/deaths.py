#!/usr/bin/env python3
"""Deaths at moments of every kind, singly and in pairs, in jobs whose ranks have copies and that keep generations: the native lines, each
once but for what a rollback prints again.

    tests/suites/deaths.py [--mpi openmpi|mpich] [--nodes 1|2] [--ranks 2] [--steps 300] [--runs 20] [--seed 1] [--bare]

A run draws a moment (while the ranks compute, as copies are made, in a checkpoint, in a recovery, near MPI_Finalize), who dies then (a
rank, a copy, a node daemon), and perhaps who dies up to a second later (the same rank's copy, another one's, another rank, a daemon).
--bare: no generations: a death that nobody masks ends the job with a line. Nothing else may end it, and nothing may stand still. --nodes
2: copies are on the other node (tests/system/nodes_test.py), and with a daemon dies all of its node.
"""
import argparse
import collections
import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import harness  # noqa: E402
from harness import PROGRAMS, Job, Scratch, check  # noqa: E402
from nodes_test import Cluster  # noqa: E402

MOMENTS = ["computes", "copies", "checkpoint", "recovery", "end"]
FIRST = ["rank", "rank", "rank", "copy", "copy", "daemon"]
SECOND = ["none", "its copy", "another copy", "another rank", "another rank", "daemon"]
DELAYS = [0.0, 0.02, 0.1, 0.3, 1.0]
SAID = re.compile(r"was killed by signal 9|is lost|the node daemon of \S+ is gone|has no copy")
NOTHING_YET = re.compile(r"no checkpoint was taken before it failed")
STRANGE = re.compile(r"by signal (?!9\b)\d+.*|internal error.*|its output goes to.*")


class Victims:
    """Who is who, as the job says at one moment."""

    def __init__(self, job):
        status = job.status()
        self.ranks = {one["rank"]: one["pid"] for one in status["ranks"] if one.get("pid")}
        self.copies = {one["rank"]: one["pid"] for one in status["replicas"]["ranks"] if one.get("copy") == "follows" and one.get("pid")}
        self.daemons = job.daemon_pids()

    def of(self, role, rank, draw):
        others = [one for one in self.ranks if one != rank]
        if role == "rank":
            return self.ranks.get(rank)
        if role in ("copy", "its copy"):
            return self.copies.get(rank)
        if role == "another rank":
            return self.ranks.get(draw.choice(others)) if others else None
        if role == "another copy":
            return self.copies.get(draw.choice(others)) if others else None
        return draw.choice(self.daemons) if role == "daemon" and self.daemons else None


def kill(pid):
    """False: it has ended already."""
    try:
        os.kill(pid, signal.SIGKILL)
        return True
    except (ProcessLookupError, TypeError):
        return False


def wait_for(job, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and job.process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)


def has_copies(job, ranks):
    try:
        return job.status()["replicas"]["had"] == ranks
    except (harness.Failure, KeyError, ValueError):
        return False


def has_saved(cwd):
    try:
        return '"event":"checkpoint"' in (cwd / "ckpt" / "journal.jsonl").read_text()
    except OSError:
        return False


def come_to(moment, job, cwd, draw, options):
    """Waits for the moment; what has to be waited for afterwards."""
    if moment == "copies":
        wait_for(job, job.lines)
        time.sleep(draw.uniform(0, 1.0))
        return None
    wait_for(job, lambda: has_copies(job, options.ranks) and (options.bare or has_saved(cwd)))
    if moment == "end":
        wait_for(job, lambda: len(job.lines()) >= options.steps - draw.randrange(0, 30))
        return None
    time.sleep(draw.uniform(0, 1.0))
    if moment == "checkpoint":
        command = [harness.FERMATA, "checkpoint" if not options.bare else "renew", "--job", job.name]
        asked = subprocess.Popen([*job.on, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(0, 0.4))
        return asked
    if moment == "recovery" and job.process.poll() is None:
        kill(draw.choice(list(Victims(job).ranks.values()) or [None]))
        time.sleep(draw.uniform(0, 0.5))
    return None


def strike(job, cwd, draw, options):
    """What was done, in words."""
    moment, first, second = draw.choice(MOMENTS), draw.choice(FIRST), draw.choice(SECOND)
    delay, rank = draw.choice(DELAYS) * draw.uniform(0.5, 1), draw.randrange(options.ranks)
    asked, done = come_to(moment, job, cwd, draw, options), [moment]
    try:
        victims = Victims(job)
        done.append(first if kill(victims.of(first, rank, draw)) else f"no {first}")
        if second != "none":
            time.sleep(delay)
            if second == "daemon":
                victims.daemons = job.daemon_pids()
            done.append(f"{second} after {delay:.2f} s" if kill(victims.of(second, rank, draw)) else f"no {second}")
    except (harness.Failure, KeyError, ValueError):
        done.append("no job any more")
    if asked:
        asked.wait()
    return ", ".join(done)


@contextlib.contextmanager
def nodes(cwd, options):
    """(words of `run`, environment, prefix of the command, a look whether all processes are gone)."""
    if options.nodes < 2:
        yield ["--launcher", "own"], None, (), lambda: None
        return
    with Cluster(cwd, options.nodes) as cluster:
        yield *cluster.own_job(options.ranks), lambda: [node.empty() for node in cluster.nodes]


def one(number, mpi, wanted, options):
    draw = random.Random(f"{options.seed} {mpi} {number}")
    words = [PROGRAMS / f"mix.{mpi}", options.steps, 1000]
    extra = ["--replicas", "all", *([] if options.bare else ["--interval", "1s", "--max-restarts", "20"])]
    with Scratch(f"deaths-{mpi}") as cwd, nodes(cwd, options) as (more, env, on, look):
        begin = time.monotonic()
        with Job.run(words, options.ranks, cwd, mpi=mpi, extra=[*extra, *more], env=env, on=on) as job:
            done = strike(job, cwd, draw, options)
            while job.process.poll() is None:
                check(time.monotonic() - begin < options.patience,
                      f"run {number} stands still ({done}):\n{job.ask('status').stdout}\n{job.errors()[-3000:]}")
                time.sleep(0.05)
            code, errors, lines = job.process.returncode, job.errors(), job.lines()
        look()
    strange = STRANGE.findall(errors)
    check(not strange, f"run {number} ({done}): {strange}\n{errors[-3000:]}")
    took = time.monotonic() - begin
    again = len(lines) - len(set(lines))
    if code == 0:
        back = "went back" in errors or "goes on from" in errors or "restart" in errors
        check(list(dict.fromkeys(lines)) == wanted and (back or again == 0),
              f"run {number} ({done}): {len(lines)} lines, {again} twice, natively {len(wanted)}\n{errors[-3000:]}")
    else:
        check(code == 137 and (SAID if options.bare else NOTHING_YET).search(errors), f"run {number} ({done}): exit code {code}:\n{errors[-3000:]}")
    how = "masked" if code == 0 and again == 0 else "rolled back" if code == 0 else f"ended with {code}"
    last = "" if code == 0 else f": {errors.strip().splitlines()[-1]}"
    print(f"run {number}: {done}: {how}, {took:.0f} s{last}", flush=True)
    return how


def all_of_them(mpi, options):
    with Scratch("deaths-native") as cwd:
        wanted = harness.native([PROGRAMS / f"mix.{mpi}", options.steps, 1000], options.ranks, mpi, cwd)
    how, wrong = collections.Counter(), []
    for number in range(options.begin, options.begin + options.runs):
        try:
            how[one(number, mpi, wanted, options)] += 1
        except harness.Failure as failure:
            print(f"FAILED {failure}", flush=True)
            wrong.append(number)
    check(not wrong, f"runs {wrong} of {options.runs}; the others: {dict(how)}")
    return str(dict(how))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", choices=["openmpi", "mpich"])
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--patience", type=float, default=240)
    parser.add_argument("--bare", action="store_true")
    options = parser.parse_args()
    bad = 0
    for mpi in [options.mpi] if options.mpi else ["openmpi", "mpich"]:
        bad += harness.verdict(f"deaths.{mpi}", lambda: all_of_them(mpi, options))
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
