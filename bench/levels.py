#!/usr/bin/env python3
"""Checkpoints in memory, with buddies and with parity, beside files and the floors, in turns in one run.

    bench/levels.py [--mib 64,256,512] [--rounds 3] [--mpi openmpi] [--disk DIR] [--json FILE]

4 ranks on two nodes of namespaces of this machine (as root), MIB each. Seconds are medians; the floors of the same round
are bench/levels.cpp's. Goals: memory + buddy at most 1.5 times the two copies (memcpy and one transfer over loopback TCP;
beside that, with the tags that a copy to a buddy has); memory at most half of plain write and fsync, and less than our own
files; memory + parity at most 1.5 times memory + buddy; increments of about 1 % with buddies at least 20 times less than the
whole (bytes; the times beside them); the code of 4+2 at least 2 GB/s a core. What a checkpoint takes is from request to
resume; a buddy's copy and parity are added as the root says them. Recovery: from the SIGKILL to the program's next line, of
one rank (memory, files) or of a node with its memory (buddy, parity).
"""
import argparse
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "system"))
import buddies_test  # noqa: E402
import nodes_test  # noqa: E402
from harness import PROGRAMS, Scratch  # noqa: E402

RANKS = 4
WAYS = {"memory": ("memory 1s",), "buddy": ("memory 1s, buddy",), "parity": ("memory 1s, rs:1+1 1s",),
        "increments": ("memory 1s, buddy", "--save-options", "incremental")}
TWO_COPIES, OF_PLAIN, OF_BUDDY, SMALLER, CODE = 1.5, 0.5, 1.5, 20, 2.0
SAID = re.compile(r"(gen-\d+) (?:is in the memory of buddies, too|has parity): .* in ([\d.]+) s")


class Bench(buddies_test.Bench):
    def __init__(self, cwd, cluster, mpi, mib):
        self.cwd, self.cluster, self.mpi, self.rng, self.key = cwd, cluster, mpi, random.Random(), []
        self.program = [PROGRAMS / f"steady.{mpi}", 1000000, mib]
        self.env = dict(os.environ, STEADY_PAUSE="2000", FERMATA_SSH=f"{cwd}/rsh")
        self.mib = mib
        self.ended = len(self.events())

    def events(self):
        journal = self.cwd / "ckpt" / "journal.jsonl"
        return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []

    def checkpoints(self, level, what="seconds"):
        """Seconds, or bytes, of each of this life, the first one, which finds everything cold, left out."""
        return [one[what] for one in self.events()[self.ended:]
                if one["event"] == "checkpoint" and one["ok"] and one["level"] == level][1:]

    def recovery(self, job, what):
        before = time.time()
        if what in ("buddy", "parity", "increments"):
            self.lose(self.cluster.nodes[1])
        else:
            os.kill(job.status()["ranks"][-1]["pid"], signal.SIGKILL)
        job.wait_until(lambda: "restarting from" in job.errors(), "the restart")
        lines = len(job.lines())
        job.wait_until(lambda: len(job.lines()) > lines, "the job to go on")
        return time.time() - before

    def one(self, what, count=4):
        """Seconds of checkpoints, what is added to them, and of a recovery; bytes of these checkpoints."""
        levels = ["--levels", *WAYS[what], "--copy-limit", 100000] if what in WAYS else []
        # A step writes some 20 pages: about a hundredth of all in the second between two checkpoints.
        if what == "increments":
            self.env["STEADY_PAUSE"] = str(30_000 * 256 // self.mib)
        words = ["run", "-n", RANKS, "--", *self.program]
        self.ended = len(self.events())
        with self.job(words, (0, 1), *levels, "--verbose", "--max-restarts", 1) as job:
            job.wait_until(lambda: len(job.lines()) > 20, "the job to compute")
            if what == "files":
                for _ in range(count):
                    done = job.ask("checkpoint", "--json")
                    if done.returncode != 0:
                        raise RuntimeError(done.stderr)
            said = lambda: [float(seconds) for _, seconds in SAID.findall(job.errors())]
            enough = lambda: len(self.checkpoints("files" if what == "files" else "memory")) >= count - 1
            job.wait_until(lambda: enough() and (what in ("memory", "files") or len(said()) >= count), "checkpoints")
            level = "files" if what == "files" else "memory"
            seconds, size, added = self.checkpoints(level), self.checkpoints(level, "bytes"), said()[1:]
            recovery = self.recovery(job, what)
            job.process.send_signal(signal.SIGKILL)
            self.kill_all(job)
        for node in self.cluster.nodes:
            subprocess.run([*node.on, "sh", "-c", "rm -rf /dev/shm/fermata-memory-*"], check=True)
        subprocess.run(["rm", "-rf", str(self.cwd / "ckpt")], check=True)
        return seconds, added, recovery, size


def floors(options, mib):
    done = subprocess.run([str(options.build / "bin" / "levels-bench"), options.disk, "/dev/shm", str(RANKS), str(mib), "1"],
                          check=True, capture_output=True, text=True, timeout=600)
    return json.loads(done.stdout)


def measure(options, mib):
    """By name, the seconds of all rounds."""
    found, bytes_of = {}, {}
    add = lambda name, values: found.setdefault(name, []).extend(values)
    for _ in range(options.rounds):
        floor = floors(options, mib)
        for name in ("two_copies", "with_tags", "plain", "code", "parity", "rebuild"):
            add({"parity": "encoded", "rebuild": "rebuilt"}.get(name, name), floor[name])
        bytes_of = {name: floor[name] for name in ("code_bytes", "image_bytes")}
        for what in (*WAYS, "files"):
            with Scratch("levels-bench") as cwd, nodes_test.Cluster(cwd) as cluster:
                seconds, added, recovery, size = Bench(cwd, cluster, options.mpi, mib).one(what)
            add(f"{what} checkpoint", seconds)
            if added:
                add(f"{what} added", added)
            add(f"{what} recovery", [recovery])
            add(f"{what} bytes", size)
    return found, bytes_of


def row_of(found, bytes_of):
    median = {name: statistics.median(values) for name, values in found.items()}
    row = {"s": {name: round(value, 4) for name, value in median.items()}}
    for what in ("buddy", "parity", "increments"):
        row[f"memory_and_{what}_s"] = round(median[f"{what} checkpoint"] + median[f"{what} added"], 4)
    row["of_two_copies"] = round(row["memory_and_buddy_s"] / median["two_copies"], 2)
    row["of_two_with_tags"] = round(row["memory_and_buddy_s"] / median["with_tags"], 2)
    row["of_plain"] = round(median["memory checkpoint"] / median["plain"], 2)
    row["of_files"] = round(median["memory checkpoint"] / median["files checkpoint"], 2)
    row["parity_of_buddy"] = round(row["memory_and_parity_s"] / row["memory_and_buddy_s"], 2)
    row["smaller"] = round(median["buddy bytes"] / median["increments bytes"], 1)
    row["shorter"] = round(row["memory_and_buddy_s"] / row["memory_and_increments_s"], 1)
    row["code_gb_s"] = round(bytes_of["code_bytes"] / median["code"] / 1e9, 1)
    row["rebuilt_gb_s"] = round(bytes_of["image_bytes"] / median["rebuilt"] / 1e9, 2)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--disk", default=os.environ.get("TMPDIR", "/tmp"))
    parser.add_argument("--mib", default="64,256,512")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mpi", default="openmpi")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    buddies_test.RANKS = RANKS
    rows = {}
    print("| 4 ranks x | memory s | of plain + fsync, of files | + buddy s | of two copies, with tags | + parity s | of buddy |"
          " increments + buddy: s, times shorter, smaller | code, rebuilt GB/s | plain, files s |"
          " back from memory, buddy, parity, increments, files s |\n|" + " --- |" * 11)
    for mib in map(int, options.mib.split(",")):
        row = rows[f"{RANKS} x {mib} MiB"] = row_of(*measure(options, mib))
        s, missed = row["s"], lambda value, good: f"{value}{'' if good else ' **missed**'}"
        back = ", ".join(f"{s[f'{what} recovery']:.2f}" for what in (*WAYS, "files"))
        print(f"| {mib} MiB | {s['memory checkpoint']:.3f} | {missed(row['of_plain'], row['of_plain'] <= OF_PLAIN)}, "
              f"{missed(row['of_files'], row['of_files'] < 1)} | {row['memory_and_buddy_s']:.3f} | "
              f"{missed(row['of_two_copies'], row['of_two_copies'] <= TWO_COPIES)}, {row['of_two_with_tags']} | "
              f"{row['memory_and_parity_s']:.3f} | {missed(row['parity_of_buddy'], row['parity_of_buddy'] <= OF_BUDDY)} | "
              f"{row['memory_and_increments_s']:.3f}, {row['shorter']}, {missed(row['smaller'], row['smaller'] >= SMALLER)} | "
              f"{missed(row['code_gb_s'], row['code_gb_s'] >= CODE)}, {row['rebuilt_gb_s']} | {s['plain']:.3f}, "
              f"{s['files checkpoint']:.3f} | {back} |", flush=True)
    print(f"\nload of the machine, at the end: {', '.join(f'{one:.1f}' for one in os.getloadavg())} on {os.cpu_count()} cores")
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "load": os.getloadavg()[0]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
