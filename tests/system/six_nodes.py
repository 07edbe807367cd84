"""Moments at which nodes of six are lost with their memory: as many as the level bears, or one more. buddies_test.py and
parity_test.py call it (`moments … --nodes 6`).

After losses that are borne the job goes on from nothing older than what buddies or parity had. After one more it says what is
lost, and goes on from the newest generation in files; without one it is refused, and what is left in memory stays.
"""
import collections
import dataclasses
import time

import harness
from harness import Failure, check

SIZE = 6
WAYS = {
    "back": "the nodes are there again at once, with nothing in memory",
    "spares": "they do not answer any more, and two others were kept free (--spares 2)",
    "fewer": "they do not answer any more, and their ranks go to the others",
    "hand": "everything is killed; `fermata restart` on the nodes that are left",
}


@dataclasses.dataclass
class Plan:
    ranks: int  # one on each of the first nodes
    levels: str
    save: str   # options
    losses: int  # that are borne
    way: str
    turns: int  # losses, one after the other
    more: bool  # the last time one more than is borne
    files: bool  # then there is a generation in files


class Over(Exception):
    """The job has come to its end, and well, before what was waited for."""


def drawn(bench, rng):
    parity, own = bench.level == "parity", harness.LAUNCHER == "own"
    wide = parity and rng.random() < 0.5
    ranks = SIZE if wide else 4
    losses = 1 if not parity else 2 if wide else rng.randint(1, 2)
    way = rng.choice(("back", "hand", *(("fewer", "fewer") if wide else ("spares", "spares")) * own))
    more = rng.random() < 0.35
    levels = f"memory 0.15s, rs:{ranks - losses}+{losses} 0.15s" if parity else rng.choice(
        ("memory 0.1s, buddy", "memory 0.1s, buddy 0.3s"))
    if not more and rng.random() < 0.4:
        levels += ", files 0.6s"
    return Plan(ranks, levels, bench.fresh(rng), losses, way, 1 if way == "hand" else rng.randint(1, 2), more, rng.random() < 0.7)


def who(bench, plan, hosts, more, rng):
    """Of the nodes that have ranks, but for the first one, which has the root. A node's buddy is the next one."""
    if bench.level == "parity":
        return rng.sample(hosts[1:], min(len(hosts) - 1, plan.losses + 1 if more else rng.randint(1, plan.losses)))
    if more:
        first = rng.randrange(1, len(hosts) - 1)
        return hosts[first:first + 2]
    return [hosts[1], hosts[3]] if len(hosts) == 4 and rng.random() < 0.3 else [rng.choice(hosts[1:])]


def unless_over(job, action):
    try:
        return action()
    except Failure:
        try:
            ended = job.process.wait(5) == 0  # it may be about to
        except harness.subprocess.TimeoutExpired:
            ended = False
        if ended:
            raise Over from None
        raise


def safe(bench, job, plan, more, rng):
    """What is in files, and what outlives a node."""
    files = ""
    running(job)
    if more and plan.files:
        job.checkpoint()
        files = bench.newest("files")
    known = bench.buddied(job, max(files, job.status().get("restored") or "", bench.past_files(job, plan.levels, rng)))
    time.sleep(rng.random() * 0.4)
    check(job.process.poll() is None, "the job has ended")
    return files, max(known, bench.held(job))


def went_on(job, restored, known, files, more):
    said = job.errors()
    if not more:
        return check(restored >= known, f"from {restored}, and {known} was {files}: {said}")
    check(restored == files, f"from {restored}, and {files} was the newest in files: {said}")
    check("lost: " in said and f"going on from {files}, in files" in said, f"not said that {known} is lost: {said}")


def refused(bench, job, known):
    """In one line, and what the first node has stays. (Ranks that lose a node may speak, too, and the supervisor of lives.)"""
    check(job.end() == 6 and "nothing to restart from: " in job.errors() and "is not there any more" in job.errors(),
          f"{job.process.returncode}, {known} was lost: {job.errors()}")
    check(any(bench.images(bench.cluster.nodes[0], "gen-*", 0)), f"nothing is left in memory: {job.errors()}")


def cleared(bench):
    """For the next moment."""
    for node in bench.cluster.nodes:
        node.empty()
    bench.wipe(*bench.cluster.nodes)


def hosts_of(bench, job):
    names = {node["host"] for node in job.status()["nodes"]}
    return [node for node in bench.cluster.nodes if node.name in names]


def running(job):
    job.wait_until(lambda: job.ask("status").returncode == 0 and job.status()["state"] == "running", "running")


def in_its_place(bench, job, plan, gone):
    """The job runs on none of the lost nodes, and on as many as before while there are spares."""
    hosts = hosts_of(bench, job)
    left = SIZE - len(gone)
    check(not set(hosts) & set(gone) and len(hosts) == min(plan.ranks, left), f"on {[node.name for node in hosts]}: {job.errors()}")


def one(bench, plan, seen, rng):
    gone = []
    words = ["--max-restarts", 8] + (["--save-options", plan.save] if plan.save else [])
    words += {"spares": ["--spares", 2, "--oversubscribe"], "fewer": ["--oversubscribe"]}.get(plan.way, [])
    nodes = range(SIZE if plan.way == "spares" else plan.ranks)
    with bench.run(plan.levels, *words, nodes=nodes) as job:
        try:
            for turn in range(plan.turns):
                more = plan.more and turn == plan.turns - 1
                files, known = unless_over(job, lambda: safe(bench, job, plan, more, rng))
                lost = who(bench, plan, unless_over(job, lambda: hosts_of(bench, job)), more, rng)
                seen[f"{plan.way}, {len(lost)} lost" + (", too many" if more else "")] += 1
                if plan.way == "hand":
                    bench.kill_all(job)
                    bench.wipe(*lost)
                    return by_hand(bench, plan, lost, known, files, seen)
                if plan.way != "back":
                    gone += lost
                    for node in lost:
                        node.answer(False)
                before = job.errors().count("restarting from")
                unless_over(job, lambda: bench.lose(*lost))
                if more and not files:
                    refused(bench, job, known)
                    seen["refused"] += 1
                    return cleared(bench)
                unless_over(job, lambda: job.wait_until(lambda: job.errors().count("restarting from") > before, "a restart"))
                unless_over(job, lambda: running(job))
                went_on(job, unless_over(job, job.status)["restored"], known, files, more)
                if gone:
                    unless_over(job, lambda: in_its_place(bench, job, plan, gone))
            end(bench, job)
        except Over:
            seen["had ended"] += 1
            bench.ends_as_wanted(job.lines())
        tally(job, seen)


def by_hand(bench, plan, lost, known, files, seen):
    left = [i for i, node in enumerate(bench.cluster.nodes) if node not in lost][:plan.ranks]
    in_turn = [] if bench.mpi == "mpich" and harness.LAUNCHER != "own" else ["--map-by", "node"]
    with bench.restart(*in_turn, nodes=left) as job:
        if plan.more and not files:
            refused(bench, job, known)
            seen["refused"] += 1
            return cleared(bench)
        try:
            unless_over(job, lambda: running(job))
            went_on(job, unless_over(job, job.status)["restored"], known, files, plan.more)
            end(bench, job)
        except Over:
            seen["had ended"] += 1
            bench.ends_as_wanted(job.lines())
        tally(job, seen)


def end(bench, job):
    try:
        bench.end(job)
    except Failure:
        # MPICH's is stopped by a checkpoint, for which it may be too late.
        if job.process.poll() != 0:
            raise
        raise Over from None


def tally(job, seen):
    said = job.errors()
    seen["rebuilt"] += said.count("rebuilt from parity")
    seen["from a buddy"] += said.count(" buddy")
    seen["lost"] += said.count("lost: ")


def moments(bench, count):
    seen = collections.Counter()
    for moment in range(count):
        plan = drawn(bench, bench.rng)
        bench.of_ranks(plan.ranks)
        try:
            one(bench, plan, seen, bench.rng)
        except Failure as failure:
            raise Failure(f"moment {moment}, {plan}, encrypted {bool(bench.key)}: {failure}") from None
        for node in bench.cluster.nodes:
            node.answer(True)
        bench.nothing_left()
    return f"{count} moments; " + "; ".join(f"{name} {number}" for name, number in sorted(seen.items()))
