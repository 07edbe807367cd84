#!/usr/bin/env python3
"""Copies of ranks as people see and steer them: `fermata status`, the journal and its report, `fermata replicas`, and failures that
`run --inject` makes.

    members_test.py seen|degree|injected openmpi|mpich
"""
import json
import os
import re
import signal
import subprocess
import sys

import harness
from harness import PROGRAMS, Job, Scratch, check

RANKS = 2


ENV = dict(os.environ, STEADY_PAUSE="3000")  # us a step


def program(mpi, steps):
    return [PROGRAMS / f"steady.{mpi}", str(steps)]


def members(job):
    """What status says of copies, and the copy of each rank; None: nothing yet."""
    done = job.ask("status", "--json")
    said = json.loads(done.stdout)["replicas"] if done.returncode == 0 else None
    return said and {**said, "of": {one["rank"]: one for one in said["ranks"]}}


def wait_for(job, what, is_so):
    found = {}

    def so():
        found["is"] = members(job)
        return found["is"] is not None and is_so(found["is"])
    job.wait_until(so, what)
    return found["is"]


def events(cwd, *kinds):
    lines = (json.loads(line) for line in (cwd / "ckpt" / "journal.jsonl").read_text().splitlines())
    return [one for one in lines if one["event"] in kinds]


def follows(said, rank):
    return said["of"].get(rank, {}).get("copy") == "follows"


def seen(mpi):
    """A rank without a copy and why, a copy that is killed, a death that is masked: each is said, once."""
    with Scratch(f"members-{mpi}") as cwd:
        native = harness.native(program(mpi, 1500), RANKS, mpi, cwd)
        reader, writer = os.pipe()  # standard input that does not end: no copy of rank 0
        with Job.run(program(mpi, 1500), RANKS, cwd, mpi=mpi, env=ENV, extra=["--replicas", "all"], stdin=reader) as job:
            first = wait_for(job, "a copy of rank 1", lambda said: follows(said, 1))
            check(first["of"][0]["copy"] != "follows" and "standard input" in first["of"][0]["why"], first)
            check((first["wanted"], first["had"], first["masked"]) == (2, 1, 0), first)
            text = job.ask("status").stdout
            check(re.search(r"copies +1 of 2 wanted, membership \d+\n +rank 0 +none: .*standard input.*\n +rank 1 +follows, pid \d+", text), text)
            os.kill(first["of"][1]["pid"], signal.SIGKILL)
            again = wait_for(job, "another copy", lambda said: follows(said, 1) and said["of"][1]["pid"] != first["of"][1]["pid"])
            check(again["epoch"] > first["epoch"], f"{first}\n{again}")
            os.kill(job.rank_pids()[1], signal.SIGKILL)
            after = wait_for(job, "a masked death", lambda said: said["masked"] == 1)
            check(after["epoch"] > again["epoch"] and 0 < after["masked_seconds"] < 30, after)
            os.close(writer)
            lines = job.finish()
            errors = job.errors()
        check(lines == native, f"{len(lines)} lines, natively {len(native)}\n{errors}")
        check(len(re.findall(r"rank 0 on \S+ gets no copy: it has the job's standard input", errors)) == 1, errors)
        check(len(re.findall(r"rank 1 on \S+ has no copy now: process \d+ was killed by signal 9; another one is made", errors)) == 1, errors)
        os.close(reader)
        copies = events(cwd, "replica")
        check([one["what"] for one in copies if one["rank"] == 1][:4] == ["made", "ended", "made", "leads"], copies)
        masked = events(cwd, "masked")
        check(len(masked) == 1 and masked[0]["rank"] == 1, masked)
        phases = masked[0]["phases"]
        check({"wait", "freeze", "exchange", "renew", "resume"} <= set(phases), masked)
        check(abs(sum(phases.values()) - masked[0]["seconds"]) < 0.1, masked)
        page = cwd / "page.html"
        harness.call("report", cwd / "ckpt", "-o", page)
        check('<rect class="masked"' in page.read_text() and "lost work" in page.read_text(), "no mark in the report")


def degree(mpi):
    """`fermata replicas` gives a running job copies, and takes them away again."""
    with Scratch("members-degree") as cwd:
        native = harness.native(program(mpi, 2000), RANKS, mpi, cwd)
        with Job.run(program(mpi, 2000), RANKS, cwd, mpi=mpi, env=ENV, extra=["--message-log"]) as job:
            job.wait_until(lambda: job.ask("replicas", "0").returncode == 0, "ranks")
            done = job.ask("replicas", "all")
            check(done.returncode == 0 and "2 of 2 ranks have a copy: 0-1" in done.stdout, f"{done.stdout}{done.stderr}")
            there = members(job)
            check(follows(there, 0) and follows(there, 1), there)
            os.kill(job.rank_pids()[0], signal.SIGKILL)
            wait_for(job, "a masked death, and a new copy", lambda said: said["masked"] == 1 and said["had"] == 2)
            taken = members(job)["of"][1]["pid"]
            done = job.ask("replicas", "-1", "--json")
            said = json.loads(done.stdout)
            check(done.returncode == 0 and said["replicas"]["had"] == said["replicas"]["wanted"] == 1, done.stdout)
            check(not os.path.exists(f"/proc/{taken}"), "the copy of rank 1 is still there")
            for words in ["+7", "3", "x", "+", "0 1"]:
                done = job.ask("replicas", *words.split())
                check(done.returncode == 2 and "replicas" in done.stderr, f"{words}: {done.returncode} {done.stderr}")
            done = job.ask("replicas", "+1", "--timeout", "0.000001s")
            check(done.returncode in (0, 4), f"{done.returncode} {done.stderr}")
            check(job.ask("replicas", "0").returncode == 0, "copies have not ended")
            check(members(job)["had"] == 0, members(job))
            lines = job.finish()
            errors = job.errors()
        check(lines == native, f"{len(lines)} lines, natively {len(native)}\n{errors}")
        check("has no copy" not in errors and errors.count("its copy goes on") == 1, f"more than one line on a copy:\n{errors}")
    with Scratch("members-none") as cwd, Job.run(program(mpi, 1500), RANKS, cwd, mpi=mpi, env=ENV) as job:
        job.wait_until(lambda: job.ask("status").returncode == 0, "the job")
        done = job.ask("replicas", "all")
        check(done.returncode == 3 and "--message-log" in done.stderr, f"{done.returncode} {done.stderr}")
        job.ask("cancel")


def injected(mpi):
    """Each failure is a line and an event; a job whose ranks have copies goes on, or ends with a line."""
    law = "exponential:mtbf=1s,seed=8"
    with Scratch("members-injected") as cwd:
        native = harness.native(program(mpi, 900), RANKS, mpi, cwd)
        with Job.run(program(mpi, 900), RANKS, cwd, mpi=mpi, env=ENV, extra=["--replicas", "all", "--inject", law]) as job:
            job.end()
            errors, lines = job.errors(), job.lines()
        said = re.findall(r"injected failure (\d+), after (\S+) s: rank (\d+)('s copy)?, process (\d+) on \S+, is killed", errors)
        noted = events(cwd, "injected")
        check(said and [int(one[0]) for one in said] == [one["number"] for one in noted] == list(range(1, len(said) + 1)), errors)
        check([bool(one[3]) for one in said] == [one["copy"] for one in noted], errors)
        # The first one's time is the seed's, as a Python program computes it.
        check(abs(noted[0]["seconds"] - FIRST) < 1, noted[0])
        if job.process.returncode == 0:
            check(lines == native, f"{len(lines)} lines, natively {len(native)}\n{errors}")
        else:
            check("was killed by signal 9 (Killed)" in errors, errors)
    done = subprocess.run([harness.FERMATA, "run", "-n", "2", "--inject", "gamma:scale=3", "--", "true"], capture_output=True, text=True)
    check(done.returncode == 2 and "--inject gamma:scale=3" in done.stderr, done.stderr)


FIRST = 0.957  # s, drawn


def run(name, mpi):
    return CASES[name](mpi)


CASES = {"seen": seen, "degree": degree, "injected": injected}

if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
