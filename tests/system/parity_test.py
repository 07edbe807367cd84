#!/usr/bin/env python3
"""Erasure code between nodes (--levels "memory T, rs:K+M T"): what up to M lost nodes had is rebuilt out of what the others
have; with more lost, the next level. Nodes are namespaces (nodes_test.py).

    parity_test.py CASE openmpi|mpich [--seed S]
    parity_test.py moments openmpi|mpich COUNT [--nodes 6] [--launcher own] [--seed S]

--nodes 6: what six_nodes.py does, rs:4+2 over all of them, or on four with two spares.
"""
import collections
import os
import pathlib
import shutil
import time

import buddies_test
import harness
import six_nodes
from harness import Failure, check

NAMES = ("fermata-a", "fermata-b", "fermata-c", "fermata-d")
ALL = tuple(range(len(NAMES)))


class Bench(buddies_test.Bench):
    level, ranks = "parity", len(NAMES)

    def run(self, levels, *extra, nodes=ALL):
        return super().run(levels, *extra, nodes=nodes)

    def restart(self, *extra, nodes=ALL):
        return super().restart(*extra, nodes=nodes)

    def with_parity(self, job, after=""):
        return self.buddied(job, after)

    def runs_again(self, job, restarts=0):
        job.wait_until(lambda: job.errors().count("restarting from") >= restarts, "a restart")
        job.wait_until(lambda: job.ask("status").returncode == 0 and job.status()["state"] == "running", "running")
        return job.status()["restored"]


def node_dies(bench):
    """One with its memory, then two at once: their images are rebuilt, on the nodes that are there again."""
    with bench.run("memory 0.2s, rs:2+2 0.2s", "--max-restarts", 3) as job:
        known = ""
        for restarts, lost in enumerate(([bench.rng.choice((1, 2, 3))], bench.rng.sample((1, 2, 3), 2)), 1):
            known = bench.with_parity(job, known)
            time.sleep(bench.rng.random() * 0.2)
            bench.lose(*(bench.cluster.nodes[node] for node in lost))
            restored = bench.runs_again(job, restarts)
            check(restored >= known, f"gone on from {restored}, and {known} had parity: {job.errors()}")
            check(job.errors().count("rebuilt from parity") == restarts, job.errors())
            known = restored
        bench.end(job)
    bench.nothing_left()


def past_files(bench):
    """Increments that need what is in files by now, and older than the newest there: they are rebuilt with it."""
    with bench.run("memory 0.2s, rs:2+2 0.2s, files 1s", "--save-options", "incremental", "--max-restarts", 1) as job:
        known = bench.with_parity(job, bench.buddied(job, "gen-000002", "files"))
        bench.lose(*(bench.cluster.nodes[node] for node in bench.rng.sample((1, 2, 3), 2)))
        restored = bench.runs_again(job, 1)
        check(restored >= known, f"gone on from {restored}, and {known} had parity: {job.errors()}")
        check("rebuilt from parity" in job.errors(), f"not rebuilt, from {restored}, {known} had parity: {job.errors()}")
        bench.end(job)
    bench.nothing_left()


def too_many(bench):
    """One more than can be borne: what is in files, and that is said."""
    with bench.run("memory 0.2s, rs:3+1 0.2s", "--max-restarts", 1) as job:
        bench.with_parity(job)
        job.checkpoint()  # to files
        first = bench.newest("files")
        bench.with_parity(job, first)
        bench.lose(*(bench.cluster.nodes[node] for node in bench.rng.sample((1, 2, 3), 2)))
        check(bench.runs_again(job, 1) == first, job.errors())
        check("lost: " in job.errors() and f"going on from {first}, in files" in job.errors(), job.errors())
        check("rebuilt" not in job.errors(), job.errors())
        bench.end(job)
    bench.nothing_left()


def byte_flips(bench):
    """In an image and in a file of parity: the image is rebuilt without that parity."""
    with bench.run("memory 0.2s, rs:2+2 0.2s") as job:
        known = bench.with_parity(job)
        bench.kill_all(job)
    newest = bench.newest("memory")
    rank = bench.rng.randrange(len(NAMES))
    if newest != known:
        for node in bench.cluster.nodes:
            for path in bench.images(node, newest, rank):
                path.unlink()
    own = bench.images(bench.cluster.nodes[rank], known, rank)[0]
    before = own.read_bytes()
    buddies_test.flip(own, bench.rng)
    other = bench.images(bench.cluster.nodes[(rank + 1) % len(NAMES)], known, (rank + 1) % len(NAMES))[0].parent / "parity.rs"
    with open(other, "r+b") as file:
        file.seek(-bench.rng.randrange(1, 1000), 2)
        file.write(b"x")
    with bench.restart() as job:
        check(bench.runs_again(job) == known, job.errors())
        check(f"{known}: rebuilt from parity: the image of rank {rank}" in job.errors(), job.errors())
        check(own.read_bytes() == before, "not what it was")
        bench.end(job)
    bench.nothing_left()


def given_up(bench):
    """A job that nobody restarts, and nodes are gone: what parity gives back comes to files before the job ends; files are enough
    then."""
    options = bench.rng.choice(("", "incremental"))
    with bench.run("memory 0.2s, rs:2+2 0.2s", *(["--save-options", options] if options else [])) as job:
        known = bench.with_parity(job, bench.buddied(job, "gen-000002"))
        time.sleep(bench.rng.random() * 0.3)
        bench.lose(*(bench.cluster.nodes[node] for node in bench.rng.sample((1, 2, 3), bench.rng.randint(1, 2))))
        check(job.end() not in (0, 85), job.errors())
    # The newest may have got its parity since.
    newest = bench.newest("files")
    check(newest >= known, f"{known} had parity; in files: {bench.listed()}; {job.errors()}")
    check(f"{newest}: rebuilt from parity: the image" in job.errors(), job.errors())
    check("it is in " in job.errors(), job.errors())
    bench.wipe(*bench.cluster.nodes)
    with bench.restart(nodes=(0,)) as job:
        bench.ends_as_wanted(job.finish())
    bench.nothing_left()


def cut_file(bench):
    """An image in files is cut or missing, its node's memory is lost, and other nodes hold the parity of that generation."""
    bench.env["STEADY_PAUSE"] = "20000"
    root = lambda node: pathlib.Path(f"/proc/{node.holder.pid}/root/dev/shm")
    for _ in range(5):
        shutil.rmtree(bench.cwd / "ckpt", ignore_errors=True)
        with bench.run("memory 4s, rs:3+1 4s, files 4s") as job:
            known = bench.with_parity(job)
            bench.buddied(job, level="files")
            bench.kill_all(job)
        parts = [part for node in bench.cluster.nodes for part in root(node).glob(f"fermata-memory-*/*/{node.name}/{known}/*")]
        if sum(part.name == "parity.rs" for part in parts) == len(NAMES) and bench.newest("files") == known:
            break  # else the machine was slow: no parity yet, or memory has the next one already
        bench.wipe(*bench.cluster.nodes)
    else:
        raise Failure(f"never in files and with parity: {known}, {bench.newest('files')}, {parts}")
    for node in bench.cluster.nodes:  # of what is newer
        for path in root(node).glob(f"fermata-memory-*/*/{node.name}/gen-*"):
            if path.name > known:
                shutil.rmtree(path)
    rank = bench.rng.randrange(1, len(NAMES))
    bench.wipe(bench.cluster.nodes[rank])
    image = bench.cwd / "ckpt" / known / f"rank-{rank:06}.img"
    image.unlink() if bench.rng.random() < 0.5 else os.truncate(image, image.stat().st_size // 2)
    with bench.restart() as job:
        check(bench.runs_again(job) == known, job.errors())
        check(f"{known}: rebuilt from parity: the image of rank {rank}" in job.errors(), job.errors())
        check(f"{image}" in job.errors() and "is read instead" in job.errors(), job.errors())
        bench.end(job)
    bench.nothing_left()


def repaired(bench):
    """While the job runs, `verify --repair` has images rebuilt that no other node has a copy of."""
    buddies_test.repaired_in(bench, "memory 3s, rs:2+2 3s", lambda held: {
        held[rank][0]: rank for rank in bench.rng.sample(range(bench.ranks), bench.rng.randint(1, 2))}, "parity")


def parity_repaired(bench):
    """While the job runs, `verify --repair` has parity made again that is damaged at one node and missing at another; it is the
    same as before."""
    bench.env["STEADY_PAUSE"] = "20000"
    name_of = lambda path: next(name for name in NAMES if f"/{name}/" in str(path))

    def harm(paths):
        damaged, missing = bench.rng.sample(paths, 2)
        size = damaged.stat().st_size
        with open(damaged, "r+b") as file:
            at = bench.rng.choice((bench.rng.randrange(64), size - 1 - bench.rng.randrange(1000)))
            byte = os.pread(file.fileno(), 1, at)[0]
            os.pwrite(file.fileno(), bytes([byte ^ 1 << bench.rng.randrange(8)]), at)
        missing.unlink()
        return [name_of(damaged), name_of(missing)]
    with bench.run("memory 3s, rs:2+2 3s") as job:
        known, _, _, harmed, done = buddies_test.repair_newest(
            bench, job, lambda known: [bench.images(node, known, rank)[0].parent / "parity.rs"
                                       for rank, node in enumerate(bench.cluster.nodes)], harm)
        for name in harmed:
            check(f"{known}  repaired: parity in the memory of {name} from the images of its group" in done.stdout, f"{done}")
        bench.end(job)
    bench.nothing_left()


def refused(bench):
    """Too few nodes, or too few domains."""
    (bench.cwd / "domains").write_text("".join(f"{name} switch{i // 3}\n" for i, name in enumerate(NAMES)))
    for nodes, words, line in (((0, 1), [], "wants at least 3 failure domains to bear the loss of 2, and there are 2"),
                               (ALL, ["--domains", "domains"], "and there are 2")):
        with bench.run("memory 10s, rs:4+2 1m", *words, nodes=nodes) as job:
            check(job.end() == 2, job.errors())
            said = [one for one in job.errors().splitlines() if one.startswith("fermata")]  # libraries speak, too
            check(line in job.errors() and len(said) < 3, job.errors())
    bench.nothing_left()


def moments(bench, count=1):
    """Up to M nodes at any moment: never a wrong result, and nothing older than what had parity."""
    if bench.cluster.size == 6:
        return six_nodes.moments(bench, count)
    seen = collections.Counter()
    for moment in range(count):
        rng = bench.rng
        save = bench.fresh(rng)
        losses = rng.randint(1, 2)
        levels = f"memory 0.15s, rs:{4 - losses}+{losses} 0.15s" + rng.choice(("", ", files 0.6s"))
        words = ["--save-options", save] if save else []
        with bench.run(levels, "--max-restarts", 4, *words) as job:
            what = f"moment {moment}, {levels}, {save}"
            try:
                known = bench.with_parity(job, bench.past_files(job, levels, rng))
                time.sleep(rng.random() * 0.4)
                known = max(known, bench.held(job))
                lost = rng.sample((1, 2, 3), rng.randint(1, losses))
                bench.lose(*(bench.cluster.nodes[node] for node in lost))
                restored = bench.runs_again(job, 1)
                check(restored >= known, f"{what}: from {restored}, and {known} had parity: {job.errors()}")
                seen[f"{len(lost)} lost"] += 1
            except Failure as failure:
                if job.process.poll() != 0:  # else it had ended before
                    raise Failure(f"{what}: {failure}: {job.errors()}") from None
            try:
                bench.end(job)
            except Failure as failure:
                raise Failure(f"{what}: {failure}: {job.errors()}") from None
            seen["rebuilt"] += job.errors().count("rebuilt from parity")
            seen["lost"] += job.errors().count("lost: ")
        bench.nothing_left()
    return f"{count} moments; " + ", ".join(f"{name} {number}" for name, number in sorted(seen.items()))


CASES = {f.__name__: f for f in (node_dies, past_files, too_many, byte_flips, given_up, cut_file, repaired, parity_repaired, refused, moments)}


def case(*words):
    return buddies_test.case(*words, cases=CASES, names=NAMES, bench_of=Bench)


if __name__ == "__main__":
    raise SystemExit(harness.main(case, CASES))
