#!/usr/bin/env python3
"""What levels take of the memory of nodes at most, against what docs/levels.md says: the peak of a control group a node.

    bench/levels_peak.py [--mib 64,256] [--only WORD] [--build DIR] [--json FILE]

Nodes are namespaces of this machine (as root), under Fermata's own launcher; all that runs on one is in a control group of its
own (version 1 or 2). Of each job: what it takes without checkpoints, which is taken off; the most while generations are
written and copied, the pages of earlier ones among them; while it goes on from memory after the death of a rank or, where there
are copies, after the loss of a node with its memory; and until it has two generations more. All in n, the bytes of a node's
whole images; a node may have 100 MiB above that (texts, buffers). The peak is the group's own, but where generations are copied
to files: these are cached in the same group, and anonymous memory and tmpfs, looked at every 10 ms, stand for it.
Exit code 1: more than the page says.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "system"))
MIB = 1 << 20
BESIDE = 100 * MIB


@dataclass
class Way:
    levels: str
    share: float = 0  # n, what a generation takes on other nodes: a second copy 1, parity M/K
    nodes: int = 2
    ranks: int = 4
    options: str = ""  # of saving
    slow: bool | None = False  # copies take longer than it is to the next generation; None: as long as they take by themselves
    count: int = 6  # generations
    heavy: bool = False  # rank 0 has as much again, all of it new each time

    @property
    def increments(self):
        return "incremental" in self.options

    @property
    def copied(self):
        """Where `status` says which generation outlives a node."""
        return "buddied" if "buddy" in self.levels else "parity" if "rs:" in self.levels else ""

    def most(self, increments):
        """As docs/levels.md has it, in n; `increments`: those that follow a whole image."""
        files, copies = "files" in self.levels, bool(self.copied)
        return 2 + files + copies * (2 + self.share * (2 + files)) + increments * (1 + self.share)


INCREMENTS = {"options": "incremental", "count": 18}
COPIES_TO_FILES = {"slow": None, "count": 12}
WAYS = {
    "memory": Way("memory 1s"),
    "memory, forked": Way("memory 1s", options="forked"),
    "memory, increments": Way("memory 1s", **INCREMENTS),
    "memory, large increments": Way("memory 1s", nodes=1, ranks=2, heavy=True, **INCREMENTS),
    "memory, files": Way("memory 1s, files 3s", **COPIES_TO_FILES),
    "buddy": Way("memory 1s, buddy", 1),
    "buddy, slow": Way("memory 1s, buddy", 1, slow=True, count=8),
    "buddy, increments": Way("memory 1s, buddy", 1, **INCREMENTS),
    "buddy, files": Way("memory 1s, buddy, files 20s", 1, **COPIES_TO_FILES),
    "parity 1+1": Way("memory 1s, rs:1+1 1s", 1),
    "parity 1+1, slow": Way("memory 1s, rs:1+1 1s", 1, slow=True, count=8),
    "parity 1+1, files": Way("memory 1s, rs:1+1 1s, files 20s", 1, **COPIES_TO_FILES),
    "parity 4+2": Way("memory 1s, rs:4+2 1s", 0.5, 6, 6),
    "parity 4+2, increments": Way("memory 1s, rs:4+2 1s", 0.5, 6, 6, **INCREMENTS),
}


class Groups:
    """A control group a node, below one of this process."""

    def __init__(self, nodes):
        self.old = pathlib.Path("/sys/fs/cgroup/memory/cgroup.procs").exists()
        base = pathlib.Path("/sys/fs/cgroup/memory" if self.old else "/sys/fs/cgroup")
        self.all = base / f"fermata-peak-{os.getpid()}"
        self.hand_on(base)
        self.all.mkdir()
        self.hand_on(self.all)
        self.of = {node: self.all / node for node in nodes}
        for group in self.of.values():
            group.mkdir()
        self.names = ("total_rss", "total_shmem") if self.old else ("anon", "shmem")
        self.peak_file = "memory.max_usage_in_bytes" if self.old else "memory.peak"
        self.files = {}
        self.seen = dict.fromkeys(nodes, 0)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def hand_on(self, group):
        if not self.old and "memory" not in (group / "cgroup.subtree_control").read_text().split():
            (group / "cgroup.subtree_control").write_text("+memory")

    def look(self):
        while not self.ended.wait(0.01):
            for node, group in self.of.items():
                has = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
                self.seen[node] = max(self.seen[node], sum(int(has[name]) for name in self.names))

    def begin(self):
        """A new peak from here on. memory.peak knows that by descriptor (Linux 6.12)."""
        for node, group in self.of.items():
            if node not in self.files:
                self.files[node] = os.open(group / self.peak_file, os.O_RDWR)
            os.write(self.files[node], b"0\n" if self.old else b"reset\n")
        self.seen = dict.fromkeys(self.of, 0)

    def peak(self, node):
        return int(os.pread(self.files[node], 100, 0))

    def most(self, seen):
        """Of each node, since begin(); `seen`: of anonymous memory and tmpfs."""
        return {node: self.seen[node] if seen else self.peak(node) for node in self.of}

    def remove(self):
        self.ended.set()
        self.thread.join()
        for file in self.files.values():
            os.close(file)
        end = time.monotonic() + 20
        for group in (*self.of.values(), self.all):
            while group.exists():
                try:
                    group.rmdir()
                except OSError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.05)


class Bench:
    def __init__(self, cwd, cluster, groups, way, mib):
        self.cwd, self.cluster, self.groups, self.way, self.mib, self.rng = cwd, cluster, groups, way, mib, random.Random(1)
        self.program = [PROGRAMS / "steady.openmpi", 10000000, mib, *([0, mib, 0] if way.heavy else [])]
        self.words, env, on = cluster.own_job(-(-way.ranks // way.nodes))
        # A step writes some 20 pages.
        self.env = dict(env, STEADY_PAUSE=str(30_000 * 64 // mib if way.increments else 2000))
        # Whatever comes to a node comes into its group, whose directory cannot be seen from other nodes (nodes_test.py).
        rsh = cwd / "rsh"
        join = f"\necho $$ > /proc/{os.getpid()}/root{groups.all}/$host/cgroup.procs\nexec "
        rsh.write_text(rsh.read_text().replace("\nexec ", join))
        first = groups.of[cluster.nodes[0].name]
        self.on = ["sh", "-c", f'echo $$ > {first}/cgroup.procs; exec "$@"', "sh", *on]
        self.seen = "files" in way.levels

    def job(self, *extra):
        words = ["run", "-n", self.way.ranks, "--mpi", "openmpi", "--ckpt-dir", "ckpt", *self.words, *extra, "--", *self.program]
        return harness.Job(words, self.cwd, env=self.env, on=self.on)

    def sizes(self):
        """Bytes of the generations in memory."""
        journal = self.cwd / "ckpt" / "journal.jsonl"
        text = journal.read_text() if journal.exists() else ""
        events = map(json.loads, text[:text.rfind("\n") + 1].splitlines())
        return [(one["generation"], one["bytes"]) for one in events
                if one["event"] == "checkpoint" and one["ok"] and one["level"] == "memory"]

    def written(self, job, count):
        job.wait_until(lambda: len(self.sizes()) >= count, f"{count} generations")

    def goes_on(self, job, lines):
        end = len(job.lines()) + lines
        job.wait_until(lambda: len(job.lines()) >= end, "the job to go on")

    def end(self, job):
        job.process.send_signal(signal.SIGKILL)
        for node in self.cluster.nodes:
            node.kill()
        job.process.wait()
        for node in self.cluster.nodes:
            node.empty()
            subprocess.run([*node.on, "sh", "-c", "rm -rf /dev/shm/fermata-memory-*"], check=True)

    def without(self):
        with self.job() as job:
            self.goes_on(job, 100)
            self.groups.begin()  # what has come into the cache of files until here may have been there before
            time.sleep(1)
            found = self.groups.most(self.seen)
            self.end(job)
        return found

    def copied(self, job):
        done = job.ask("status", "--json")
        return json.loads(done.stdout).get("memory", {}).get(self.way.copied, "") if done.returncode == 0 else ""

    def with_levels(self):
        """Bytes of each generation, and the most of each node: running, at the restart, and then."""
        way = self.way
        extra = ["--save-options", way.options] if way.options else []
        if way.slow is not None:
            a_node = way.ranks // way.nodes * self.mib * MIB / 1e6
            extra += ["--copy-limit", max(1, round(a_node / 2.5)) if way.slow else 100000]
        with self.job("--levels", way.levels, "--max-restarts", 3, *extra) as job:
            self.groups.begin()
            self.written(job, way.count)
            if way.copied:
                newest = self.sizes()[-1][0]
                job.wait_until(lambda: self.copied(job) >= newest, "a copy")
            found, sizes = [self.groups.most(self.seen)], self.sizes()
            self.groups.begin()
            if way.copied:
                buddies_test.Bench.lose(self, self.cluster.nodes[-1])
            else:
                os.kill(job.status()["ranks"][-1]["pid"], signal.SIGKILL)
            job.wait_until(lambda: "restarting from" in job.errors(), "the restart")
            self.goes_on(job, 5)
            found.append(self.groups.most(self.seen))
            self.written(job, len(self.sizes()) + 2)
            found.append(self.groups.most(self.seen))
            missed = [line for line in job.errors().splitlines() if "of memory for" in line]
            self.end(job)
        if missed:
            raise harness.Failure(f"this machine has no room: {missed[0]}")
        return [size for _, size in sizes], found

    def wipe(self, *nodes):
        buddies_test.Bench.wipe(self, *nodes)


def chain(sizes):
    """The increments that follow a whole image, at most; bytes."""
    most = now = 0
    for size in sizes:
        now = 0 if size > 0.9 * max(sizes) else now + size
        most = max(most, now)
    return most


def measure(way, mib):
    with Scratch("levels-peak") as cwd:
        groups = None
        try:
            with nodes_test.Cluster(cwd, way.nodes) as cluster:
                groups = Groups(cluster.names)
                bench = Bench(cwd, cluster, groups, way, mib)
                base = bench.without()
                sizes, found = bench.with_levels()
        finally:
            if groups:
                groups.remove()
    n, increments = max(sizes) / way.nodes, chain(sizes) / way.nodes if way.increments else 0
    parts = [max(one[node] - base[node] for node in one) / n for one in found]
    most = way.most(increments / n)
    return {"n": n, "increments": increments / n, "most": most, "running": parts[0], "restart": parts[1], "then": parts[2],
            "program": max(base.values()), "good": max(parts) * n <= most * n + BESIDE}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--mib", default="64,256")
    parser.add_argument("--only", default="", help="those whose name begins so")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    os.environ["FERMATA_BUILD"] = str(options.build)
    global harness, buddies_test, nodes_test, PROGRAMS, Scratch
    import buddies_test, harness, nodes_test  # noqa: E401, they look for the build
    from harness import PROGRAMS, Scratch
    rows = {}
    print("| levels | MiB a rank | n, MiB | the page, n | running, n | restart, n | then, n |\n|" + " --- |" * 7)
    for mib in map(int, options.mib.split(",")):
        for name, way in WAYS.items():
            if not name.startswith(options.only):
                continue
            row = rows[f"{name}, {mib} MiB"] = measure(way, mib)
            print(f"| {name} | {mib} | {row['n'] / MIB:.0f} | {row['most']:.2f}{'' if row['good'] else ' **missed**'} | "
                  f"{row['running']:.2f} | {row['restart']:.2f} | {row['then']:.2f} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return not all(row["good"] for row in rows.values())


if __name__ == "__main__":
    raise SystemExit(main())
