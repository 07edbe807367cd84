#!/usr/bin/env python3
"""The two protocols that are there for comparison really run.

    protocol_test.py CASE [openmpi|mpich]

cc.NAME   the published collective clock gets stuck on a scenario where the models say so (tests/unit/clock, models/):
          the checkpoint converges no further, `fermata status` says who waits for what, and once it is given up the job
          goes on and is right. With cc-d the same moment is reached.
2pc.NAME  non-blocking collectives are refused in one line. (That 2pc works: scenario_test.py … --protocol 2pc)
"""
import json
import os
import random
import re
import subprocess
import sys
import time

import harness
from harness import FERMATA, PATIENCE, Failure, Job, Scratch, call, check
from scenario_test import Scenario

# Ranks held before their first step, so that the moment is the same in every run: rank 3 is inside A, rank 2 owes A and
# waits for a message that comes after a collective which nobody is let into.
HELD = {"needed_message": "1 4", "needed_message_loop": "1 4", "pipeline": "3 4", "release_all": "1 4 5 8"}
# Counting non-blocking collectives when they are started: there is always one begun by some members only.
ENDLESS = ("skewed_nonblocking",)
# A matter of chance: checkpoints until one is stuck.
SOMETIMES = ("ring", "park_at_exit")
REPEATS = 200


def waits(job):
    done = call("status", "--job", job.name, "--json", "--waits")
    return json.loads(done.stdout)["diagnosis"] if done.returncode == 0 else ""


class Request:
    """A checkpoint asked for in the background."""

    def __init__(self, job):
        self.job = job
        self.client = subprocess.Popen([str(FERMATA), "checkpoint", "--job", job.name, "--json", "--timeout", "300s"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def done(self):
        return self.client.poll() is not None

    def give_up(self):
        check(call("cancel", "--checkpoint", "--job", self.job.name).returncode == 0, "cannot give the checkpoint up")
        return self.end()

    def end(self):
        out, err = self.client.communicate(timeout=PATIENCE)
        return self.client.returncode, out + err


def start(scenario, mpi, cwd, protocol, repeats, env=None):
    return Job.run(scenario.program(mpi, repeats, 7), scenario.ranks, cwd, mpi=mpi, env=env,
                   extra=["--protocol", protocol, "--keep", "1"])


def stuck(job, request, seconds=2.0):
    """The clock's version and what each rank owes do not move for `seconds` while targets are known."""
    last, since = None, time.monotonic()
    while not request.done():
        text = waits(job)
        facts = sorted(line for line in text.splitlines() if "converging" in line or "must still" in line)
        if facts != last or not any("must still" in line for line in facts):
            last, since = facts, time.monotonic()
        elif time.monotonic() - since > seconds:
            return text
        time.sleep(0.05)
    return ""


def held_case(name, mpi, cwd):
    scenario = Scenario(name)
    go = cwd / "go"
    env = dict(os.environ, HOLD_FILE=str(go), SCENARIO_HOLD=HELD[name])
    for protocol in ("cc", "cc-d"):
        go.unlink(missing_ok=True)
        with start(scenario, mpi, cwd, protocol, REPEATS, env) as job:
            # The others have come to where they wait for those that are held.
            inside = sum(step[0] == "coll" for _, before, loop, _ in scenario.threads for step in (before + loop)[:1])
            inside -= len(HELD[name].split())
            job.wait_until(lambda: waits(job).count("thread 0 in MPI_Allreduce") == inside and
                           waits(job).count("thread 0 in MPI_Recv") >= 1, "the others to wait")
            request = Request(job)
            job.wait_until(lambda: job.status()["phase"] == "converge" or request.done(), "the targets")
            go.touch()
            if protocol == "cc":
                text = stuck(job, request)
                check(text, f"the published clock was not stuck: {request.end() if request.done() else waits(job)}")
                check("MPI_Recv" in text and "is parked" in text, text)
                code, said = request.give_up()
                check(code == 3, f"{code}: {said}")
                print(text)
            else:
                code, said = request.end()
                check(code == 0, f"cc-d: {code}: {said}")
            check(scenario.result(REPEATS) in job.finish(), f"{protocol}: {job.lines()}")


def endless_case(name, mpi, cwd):
    """The targets recede for as long as the program runs."""
    scenario = Scenario(name)
    repeats = 2000
    with start(scenario, mpi, cwd, "cc", repeats) as job:
        job.wait_line("started")
        request = Request(job)
        versions = 0

        def far():
            nonlocal versions
            found = re.findall(r"converging, version (\d+)", waits(job))
            versions = max([versions, *map(int, found)])
            return versions > 60 or request.done()

        job.wait_until(far, "the targets to recede")
        check(not request.done(), f"the published clock found a safe state: {request.client.returncode}")
        code, said = request.give_up()
        check(code == 3, f"{code}: {said}")
        print(f"no safe state after {versions} rounds of new targets")
        check(scenario.result(repeats) in job.finish(), f"{job.lines()}")
    with start(scenario, mpi, cwd, "cc-d", REPEATS) as job:
        job.wait_line("started")
        job.checkpoint()
        check(scenario.result(REPEATS) in job.finish(), f"cc-d: {job.lines()}")


def free_case(name, mpi, cwd, tries):
    scenario = Scenario(name)
    rng = random.Random(f"{name} {mpi}")
    repeats = 4000
    with start(scenario, mpi, cwd, "cc", repeats) as job:
        job.wait_line("started")
        for i in range(tries):
            time.sleep(rng.random() * 0.03)
            request = Request(job)
            if text := stuck(job, request):
                code, said = request.give_up()
                check(code == 3, f"{code}: {said}")
                print(f"{text}checkpoint {i + 1} was stuck")
                break
            code, said = request.end()
            check(code == 0 or job.process.poll() is not None, f"{code}: {said}")
        else:
            raise Failure(f"{tries} checkpoints, none of them stuck")
        check(scenario.result(repeats) in job.finish(), f"{job.lines()}")


def refused(name, mpi, cwd):
    scenario = Scenario(name)
    with start(scenario, mpi, cwd, "2pc", 10) as job:
        check(job.end() != 0, "a non-blocking collective was not refused")
        ours = [line for line in job.errors().splitlines() if "2pc" in line]
        check(len(ours) == 1 and "MPI_Iallreduce" in ours[0] and "cc-d" in ours[0], job.errors())
        print(ours[0])


CASES = [f"cc.{name}" for name in (*HELD, *ENDLESS, *SOMETIMES)] + ["2pc.early_ibcast"]


def run(case, mpi="openmpi"):
    protocol, name = case.split(".")
    with Scratch(case) as cwd:
        if protocol == "2pc":
            refused(name, mpi, cwd)
        elif name in HELD:
            held_case(name, mpi, cwd)
        elif name in ENDLESS:
            endless_case(name, mpi, cwd)
        else:
            free_case(name, mpi, cwd, 200)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
