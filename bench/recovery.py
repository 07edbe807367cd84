#!/usr/bin/env python3
"""Time from the SIGKILL of one rank to computing again, under --max-restarts, and what it goes to.

    recovery.py [--ranks 4] [--mib 1,256] [--rounds 5] [--mpi mpich,openmpi] [--ways mpiexec,own,…] [--json FILE]

Ways: the launcher; memory: own, from generations in memory; standby: likewise, with --standby; mapped: with --mapped, too.

The parts, by the events of the journal: until the loss is known; until the old life is over; until every rank of the
new one is restored and released (its launcher's start, reading `mib` MiB of each rank, rebuilding of MPI's objects);
until the program has said its next line. Medians in seconds; the ways take turns. Goal (4 ranks): 2 s besides reading.
"""
import argparse
import datetime
import json
import os
import pathlib
import random
import signal
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "system"))
from harness import PROGRAMS, Job, Scratch, check

PARTS = ("known", "over", "released", "computing")
PAUSE = 2000  # us a step


def events(cwd):
    for line in (cwd / "ckpt" / "journal.jsonl").read_text().splitlines():
        event = json.loads(line)
        yield event["event"], datetime.datetime.fromisoformat(event["time"]).timestamp()


FROM_MEMORY = ["--levels", "memory 2s"]
WAYS = {
    "mpiexec": ["--launcher", "mpiexec"],
    "own": ["--launcher", "own"],
    "memory": ["--launcher", "own", *FROM_MEMORY],
    "standby": ["--launcher", "own", *FROM_MEMORY, "--standby"],
    "mapped": ["--launcher", "own", *FROM_MEMORY, "--standby", "--mapped"],
}


def one(mpi, way, ranks, mib):
    with Scratch("recovery") as cwd:
        program = [PROGRAMS / f"steady.{mpi}", 100000, mib]
        env = dict(os.environ, STEADY_PAUSE=str(PAUSE))
        extra = [*WAYS[way], "--max-restarts", 1]
        with Job.run(program, ranks, cwd, mpi=mpi, extra=extra, env=env) as job:
            job.wait_until(lambda: len(job.lines()) > 50, "the job to compute")
            if "--levels" in extra:
                job.wait_until(lambda: job.status()["checkpoints"] > 0, "a generation in memory")
                job.wait_until(lambda: "--standby" not in extra or job.status()["standby"] == "ready", "who stands by")
                time.sleep(random.uniform(0.5, 1))
            else:
                job.checkpoint()
            victim = random.choice(job.rank_pids())
            before = time.time()
            os.kill(victim, signal.SIGKILL)
            job.wait_until(lambda: "restarting from" in job.errors(), "the restart")
            lines = len(job.lines())  # the old life has said all
            job.wait_until(lambda: len(job.lines()) > lines, "the job to go on")
            after = time.time()
            seen = list(events(cwd))
            when = {}
            for name, label in (("loss", "known"), ("end", "over"), ("running", "released")):
                times = [t for event, t in seen if event == name and t > before - 0.002]
                check(times, f"the journal has no {name}: {seen}")
                when[label] = times[0]
            when["computing"] = after
            parts, last = {}, before
            for part in PARTS:
                parts[part], last = max(0.0, when[part] - last), when[part]
            return dict(parts, whole=after - before)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--mib", default="1,256")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mpi", default="mpich,openmpi")
    parser.add_argument("--ways", default="mpiexec,own,memory,standby,mapped")
    parser.add_argument("--json")
    a = parser.parse_args()
    cases = [(mpi, way, int(mib)) for mib in a.mib.split(",") for mpi in a.mpi.split(",") for way in a.ways.split(",")]
    found = {case: [] for case in cases}
    for _ in range(a.rounds):
        for case in cases:
            mpi, way, mib = case
            found[case].append(one(mpi, way, a.ranks, mib))
    rows = []
    print(f"{a.ranks} ranks, medians of {a.rounds}, s")
    print(f"{'library':8} {'way':8} {'MiB/rank':>8}" + "".join(f"{part:>10}" for part in (*PARTS, "whole", "longest")))
    for (mpi, way, mib), times in found.items():
        row = {part: statistics.median(t[part] for t in times) for part in (*PARTS, "whole")}
        row["longest"] = max(t["whole"] for t in times)
        print(f"{mpi:8} {way:8} {mib:8}" + "".join(f"{row[part]:10.2f}" for part in (*PARTS, "whole", "longest")))
        rows.append(dict(row, mpi=mpi, way=way, mib=mib))
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps({"ranks": a.ranks, "rounds": a.rounds, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
