#!/usr/bin/env python3
"""Minutes of injected failures: a job all of whose ranks have copies is killed at every moment, and ends right or with a line.

    tests/suites/injected.py [--minutes 10] [--mtbf 5] [--ranks 4] [--program cg.mpich|mix.mpich|mix.openmpi] [--seed 1] [--steps N]
    tests/suites/injected.py --to-end [--interval 2s] [--nodes 2] [--rest] …

Jobs run one after the other, each under `run --replicas all --inject exponential:mtbf=T,seed=…` with a seed of its own, until the
minutes are over. Right: the native lines and exit code 0. With a line: exit code 137, the rank had no copy when it died. Anything else,
and a job that stands still, is a failure. The number of unmasked ends is compared with what the same draws give when a copy is away for as
long as the journal says it was on average: a difference of more than twice its deviation (and of more than one) is shown, and is a failure.

--to-end: one job, which goes back to its newest generation after a failure that no copy masks, and has to end with the native lines and
exit code 0. Its rollbacks are compared in the same way. --nodes: copies are on other nodes, those of tests/system/nodes_test.py. --rest:
ranks of mix rest 0.1 s in each step and compute little, so that minutes of a job on few cores are many failures and not only their recoveries.
"""
import argparse
import collections
import contextlib
import json
import math
import os
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import harness  # noqa: E402
from draws import Draws  # noqa: E402
from harness import PROGRAMS, Job, Scratch, check  # noqa: E402
from nodes_test import Cluster  # noqa: E402


def simulated(seed, mtbf, ranks, away, until):
    """True: these draws leave a rank without a process before `until`, when a copy is away for so many seconds."""
    draws, now = Draws(seed), 0.0
    back = [0.0] * ranks  # when each rank has its copy again
    while True:
        now += mtbf * -math.log1p(-draws.next())
        whom = draws.next()
        if now > until:
            return False
        living = [(rank, copy) for rank in range(ranks) for copy in (False, True) if not copy or back[rank] <= now]
        rank, copy = living[int(whom * len(living))]
        if not copy and back[rank] > now:
            return True
        back[rank] = now + away


def journal(cwd):
    lines = (cwd / "ckpt" / "journal.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def seconds_of(event):
    import datetime
    return datetime.datetime.fromisoformat(event["time"]).timestamp()


def times_away(noted):
    """How long each lost copy was missing."""
    since, all_of_them = {}, []
    for event in noted:
        if event["event"] != "replica" or "rank" not in event:
            continue
        if event["what"] in ("leads", "ended"):
            since.setdefault(event["rank"], seconds_of(event))
        elif event["what"] == "made" and event["rank"] in since:
            all_of_them.append(seconds_of(event) - since.pop(event["rank"]))
    return all_of_them


def one(words, mpi, wanted, seed, options):
    with Scratch("injected") as cwd:
        law = f"exponential:mtbf={options.mtbf}s,seed={seed}"
        begin = time.monotonic()
        with Job.run(words, options.ranks, cwd, mpi=mpi, extra=["--replicas", "all", "--inject", law]) as job:
            while job.process.poll() is None:
                check(time.monotonic() - begin < options.patience, f"stands still:\n{job.ask('status').stdout}\n{job.errors()[-3000:]}")
                time.sleep(0.1)
            code, errors, lines = job.process.returncode, job.errors(), job.lines()
        noted = journal(cwd)
        ran = next((seconds_of(one) for one in noted if one["event"] == "running"), None)
        found = {"seed": seed, "code": code, "seconds": seconds_of(noted[-1]) - ran if ran else 0, "away": times_away(noted),
                 "injected": sum(one["event"] == "injected" for one in noted), "masked": sum(one["event"] == "masked" for one in noted)}
        if code == 0:
            check(lines == wanted, f"seed {seed}: {len(lines)} lines, natively {len(wanted)}\n{errors[-2000:]}")
        else:
            check(re.search(r"was killed by signal 9 \(Killed\)", errors), f"seed {seed}: exit code {code}:\n{errors[-2000:]}")
        return found


def masked_in(noted):
    """What a masked death took on average, and in which phases."""
    phases = collections.defaultdict(list)
    for one in noted:
        if one["event"] == "masked":
            for phase, seconds in {"in all": one["seconds"], **one["phases"]}.items():
                phases[phase].append(seconds)
    return ", ".join(f"{phase} {sum(all_of_them) / len(all_of_them):.3f} s" for phase, all_of_them in phases.items())


def lives_of(noted):
    """Seconds of each life in which all ranks were there."""
    lives = []
    for one in noted:
        if one["event"] == "running":
            begun = seconds_of(one)
            lives.append(0.0)
        elif lives:
            lives[-1] = seconds_of(one) - begun
    return lives


@contextlib.contextmanager
def nodes(cwd, options):
    """(words of `run`, environment, prefix of the command) of the nodes that the job has."""
    if options.nodes < 2:
        yield [], None, ()
        return
    with Cluster(cwd, options.nodes) as cluster:
        yield cluster.own_job(-(-options.ranks // options.nodes))


@contextlib.contextmanager
def resting(options):
    if options.rest:
        os.environ["MIX_GO"] = "/nowhere"
    try:
        yield
    finally:
        os.environ.pop("MIX_GO", None)


def to_end(options):
    words, mpi = program(options)
    with Scratch("injected-to-end") as cwd:
        wanted = harness.native(words, options.ranks, mpi, cwd)
        law = f"exponential:mtbf={options.mtbf}s,seed={options.seed}"
        extra = ["--replicas", "all", "--inject", law, "--interval", options.interval, "--max-restarts", "100000"]
        with nodes(cwd, options) as (more, env, on), resting(options), Job.run(words, options.ranks, cwd, mpi=mpi, extra=[*extra, *more], env=env, on=on) as job:
            begin, last, since = time.monotonic(), None, 0.0
            while job.process.poll() is None:
                now, size = time.monotonic(), len(job.output())
                last, since = (last, since) if size == last else (size, now)
                check(now - since < options.patience, f"nothing for {options.patience} s:\n{job.ask('status').stdout}\n{job.errors()[-3000:]}")
                time.sleep(0.5)
            code, errors, lines = job.process.returncode, job.errors(), job.lines()
        took, noted = time.monotonic() - begin, journal(cwd)
    check(code == 0, f"exit code {code}:\n{errors[-3000:]}")
    check(list(dict.fromkeys(lines)) == wanted, f"{len(lines)} lines, natively {len(wanted)}; {[line for line in lines if line not in wanted][:3]}")
    away, lives = times_away(noted), lives_of(noted)
    mean = sum(away) / len(away) if away else 0.0
    drawn = sum(simulated(options.seed + (number << 32), options.mtbf, options.ranks, mean, seconds) for number, seconds in enumerate(lives))
    count = {what: sum(one["event"] == what for one in noted) for what in ("injected", "masked", "checkpoint")}
    line = (f"{took:.0f} s, {len(wanted)} lines ({len(lines)} printed), {count}, copies away for {mean:.2f} s, "
            f"{len(lives) - 1} rollbacks, {drawn} of {len(lives)} lives by the same draws; a masked death: {masked_in(noted)}")
    print(line)
    check(abs(len(lives) - 1 - drawn) <= max(1, 2 * math.sqrt(max(1, drawn))), line)
    return line


def compare(runs, options):
    away = [seconds for run in runs for seconds in run["away"]]
    mean = sum(away) / len(away) if away else 0.0
    found = sum(run["code"] != 0 for run in runs)
    # A run that ended early may have gone on: until the longest that a good one took.
    longest = max([run["seconds"] for run in runs if run["code"] == 0], default=options.patience)
    wanted = sum(simulated(run["seed"], options.mtbf, options.ranks, mean, longest) for run in runs)
    line = (f"{len(runs)} jobs, {sum(run['injected'] for run in runs)} failures, {sum(run['masked'] for run in runs)} masked deaths, "
            f"{found} unmasked ends, {wanted} by the same draws with copies away for {mean:.2f} s")
    print(line)
    check(abs(found - wanted) <= max(1, 2 * math.sqrt(max(1, wanted))), line)
    return line


def program(options):
    steps = {"cg": [str(options.steps or 120), "384", "200"], "mix": [str(options.steps or 6000), "20" if options.rest else "1000"]}
    words = [PROGRAMS / options.program, *steps[options.program.split(".")[0]]]
    return words, options.program.split(".")[1]


def minutes(options):
    words, mpi = program(options)
    with Scratch("injected-native") as cwd:
        wanted = harness.native(words, options.ranks, mpi, cwd)
    runs, end = [], time.monotonic() + 60 * options.minutes
    while time.monotonic() < end:
        runs.append(one(words, mpi, wanted, options.seed + len(runs), options))
        print({**runs[-1], "away": [round(one, 2) for one in runs[-1]["away"]]}, flush=True)
    return compare(runs, options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--mtbf", type=float, default=5)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--program", default="mix.mpich")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--to-end", action="store_true")
    parser.add_argument("--rest", action="store_true")
    parser.add_argument("--interval", default="2s")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--patience", type=float, default=300)
    options = parser.parse_args()
    return min(harness.verdict(options.program, lambda: to_end(options) if options.to_end else minutes(options)), 1)


if __name__ == "__main__":
    sys.exit(main())
