#!/usr/bin/env python3
"""The scenario programs of the collective clock (tests/programs/scenarios), checkpointed at random moments.

    scenario_test.py NAME[,NAME…]|all [--moments N] [--mpi openmpi,mpich] [--seed S] [--gap T] [--restarts P]

What a scenario prints can be told beforehand (class Scenario; an undisturbed native run has to print it). For each scenario and library N checkpoints are taken while it runs, random gaps apart. Each has to be reached within
BOUND seconds. After a share P of them every rank is killed and the job goes on from that generation, in turns on
the same and on the other library; the others resume. Whatever happened on the way, every run has to end with the
result of the undisturbed one.
"""
import argparse
import json
import pathlib
import random
import re
import shutil
import sys
import time

import harness
from harness import PROGRAMS, Failure, Job, Scratch, call, check

SCENARIOS = harness.pathlib.Path(__file__).resolve().parents[1] / "programs" / "scenarios"
NAMES = sorted(path.name for path in SCENARIOS.iterdir())
LIBRARIES = ("openmpi", "mpich")
# Seconds from request to the committed generation. Usually it takes milliseconds, but a shared machine may keep the node
# daemon from its CPU for several seconds at every hop (Linux 6.18 with autogroups, load of 25 on two cores: a process
# that sleeps 20 ms at a time was seen to wake up 4.6 s late).
BOUND = 120


class Scenario:
    """A scenario file, and what its program prints: every value that arrives can be told beforehand."""

    prefix = "scenario:"

    def __init__(self, name):
        self.name = name
        self.comms, self.threads = {}, []  # members by name; (rank, steps before, repeated, after the loop)
        for line in (SCENARIOS / name).read_text().splitlines():
            line = line.split("#")[0]
            if line.startswith("comm "):
                _, comm, *members = line.split()
                self.comms[comm] = [int(member) - 1 for member in members]
            elif line.startswith("P"):
                head, text = line.split(":")
                parts = [[step.split() for step in part.split(";") if step.strip()] for part in text.split("|")]
                before, loop, after = (([], parts[0], []) if len(parts) == 1 else (*parts, [])[:3])
                self.threads.append((int(head[1:]) - 1, before, loop, after))
        self.ranks = 1 + max(rank for rank, *_ in self.threads)
        self.known = {}

    def threaded(self):
        return len(self.threads) > self.ranks

    def result(self, repeats):
        """The line that `scenario` prints at its end (scenario.c says how it is made)."""
        if repeats not in self.known:
            self.known[repeats] = f"scenario: right {self.hash_of(repeats):016x}"
        return self.known[repeats]

    def hash_of(self, repeats):
        sums, roots, messages = {}, {}, {}
        for rank, before, loop, after in self.threads:
            calls = dict.fromkeys(self.comms, 0)
            counter = 0
            for step in before + loop * repeats + after:
                counter += 1
                value = counter * 17 + rank
                if step[0] in ("coll", "icoll", "bcast"):
                    key = (step[1], calls[step[1]])
                    calls[step[1]] += 1
                    sums[key] = sums.get(key, 0) + value
                    if step[0] == "bcast" and int(step[2]) - 1 == rank:
                        roots[key] = value
                elif step[0] == "send":
                    messages.setdefault((rank, int(step[1]) - 1), []).append(value)
        prime, mask, basis = 1099511628211, (1 << 64) - 1, 1469598103934665603
        results = {rank: [] for rank in range(self.ranks)}
        for rank, before, loop, after in self.threads:
            calls, waits = dict.fromkeys(self.comms, 0), dict.fromkeys(self.comms, 0)
            inbox = {source: iter(values) for (source, to), values in messages.items() if to == rank}
            value = basis + rank
            for step in before + loop * repeats + after:
                got = 0
                if step[0] in ("coll", "icoll", "bcast"):
                    key = (step[1], calls[step[1]])
                    calls[step[1]] += 1
                    got = sums[key] if step[0] == "coll" else roots[key] if step[0] == "bcast" else 0
                elif step[0] == "waitc":
                    got = sums[step[1], waits[step[1]]]
                    waits[step[1]] += 1
                elif step[0] == "recv":
                    got = next(inbox[int(step[1]) - 1])
                for byte in got.to_bytes(4, "little"):
                    value = (value ^ byte) * prime & mask
            results[rank].append(value)
        total = 0
        for values in results.values():
            value = basis
            for byte in b"".join(v.to_bytes(8, "little") for v in (values + [0] * 4)[:4]):
                value = (value ^ byte) * prime & mask
            total += value
        return total & mask

    def program(self, mpi, repeats, seed):
        return [PROGRAMS / f"scenario.{mpi}", SCENARIOS / self.name, repeats, seed]

    def check_native(self, mpi, cwd):
        """The undisturbed run prints what result() says."""
        lines = harness.native(self.program(mpi, 40, 1), self.ranks, mpi, cwd)
        check(self.result(40) in lines, f"{self.name} on {mpi}: the undisturbed run printed {lines}")


class Moments:
    """Takes `count` checkpoints of a scenario on `mpi`; as many runs as that needs."""

    def __init__(self, scenario, mpi, rng, options, cwd):
        self.scenario, self.mpi, self.rng, self.options, self.cwd = scenario, mpi, rng, options, cwd
        # Threads that all spin take a hundred times as long on few cores.
        self.repeats = max(1, options.repeats // 10) if scenario.threaded() else options.repeats
        self.taken = self.restarts = self.runs = 0
        self.converge, self.seconds = [], []

    def other(self):
        return LIBRARIES[1 - LIBRARIES.index(self.mpi)]

    def take(self, count):
        while self.taken < count:
            self.one_run(count)
        slowest = sorted(self.converge)
        print(f"  {self.scenario.name} {self.mpi}: {self.taken} checkpoints in {self.runs} runs, {self.restarts} "
              f"restarts; to the safe state: median {1000 * slowest[len(slowest) // 2]:.0f} ms, "
              f"longest {1000 * slowest[-1]:.0f} ms; in all: longest {max(self.seconds):.2f} s", flush=True)

    def one_run(self, count):
        cwd = self.cwd / f"run-{self.runs}"
        cwd.mkdir()
        self.runs += 1
        before = self.taken
        start = time.monotonic()
        program = self.scenario.program(self.mpi, self.repeats, self.rng.randrange(1, 1000))
        job = Job.run(program, self.scenario.ranks, cwd, mpi=self.mpi, extra=["--keep", "2"])
        library = self.mpi
        said = []
        while True:
            with job:
                restart_on = self.disturb(job, library, count)
                if restart_on is None:
                    job.finish(600)  # the machine may be loaded
                else:
                    job.kill_ranks()
                # The line may have been printed before the last checkpoint, then it does not come again.
                said += [line for line in job.lines() if line.startswith(self.scenario.prefix)]
                if restart_on is None:
                    result = self.scenario.result(self.repeats)
                    check(set(said) == {result}, f"{job.name} on {library}: {said}, not {result}")
                    break
            library = restart_on
            self.restarts += 1
            job = Job.restart(cwd, mpi=library, extra=["--keep", "2"])
        shutil.rmtree(cwd)
        # Runs of a few seconds: long against a checkpoint, and not so long that many end in nothing.
        seconds = time.monotonic() - start
        check(self.taken > before or self.runs < 8, f"{job.name}: eight runs ended before a checkpoint was taken")
        if 0 < self.options.seconds and seconds < self.options.seconds / 2:
            self.repeats *= 2
        elif 0 < self.options.seconds < seconds / 2 and self.repeats > 50:
            self.repeats //= 2

    def disturb(self, job, library, count):
        """Checkpoints until the job ends or has had enough (None), or is to be killed: the library to go on with."""
        # A job that goes on on the other library comes back after some checkpoints there, which do not count.
        visit = self.rng.randrange(1, 4) if library != self.mpi else 0
        if not self.registered(job):
            return None
        while self.taken < count:
            time.sleep(self.rng.random() * self.options.gap)
            said = self.checkpoint(job, library)
            if said is None:
                return None
            if library != self.mpi:
                visit -= 1
                if visit == 0:
                    return self.mpi
                continue
            self.taken += 1
            if self.rng.random() < self.options.restarts:
                return self.other() if self.restarts % 2 else self.mpi
        return None

    @staticmethod
    def registered(job):
        """Waits until the command can find the job; False when it has ended."""
        while call("status", "--job", job.name, "--json").returncode != 0:
            if job.process.poll() is not None:
                return False
            time.sleep(0.01)
        return True

    def checkpoint(self, job, library):
        done = call("checkpoint", "--job", job.name, "--json", "--timeout", f"{BOUND}s", timeout=BOUND + 60)
        said = json.loads(done.stdout) if done.stdout else {}
        if done.returncode == 0:
            if self.options.verbose:
                print(f"    {job.name} {library} moment {self.taken}: "
                      + ", ".join(f"{phase} {1000 * t:.0f}" for phase, t in said["phases"].items()) + " ms", flush=True)
            self.converge.append(said["phases"]["targets"] + said["phases"]["converge"])
            self.seconds.append(said["seconds"])
            return said
        # The job may be ending; then it ends well, which finish() checks.
        if done.returncode != 4 and self.ends(job):
            return None
        status = call("status", "--job", job.name, "--waits")
        while self.options.hold:  # for a debugger
            time.sleep(1)
        raise Failure(f"{job.name} ({self.scenario.name} on {self.mpi}, moment {self.taken}): {said.get('line')} "
                      f"{done.stderr}\n{said.get('diagnosis')}\n{status.stdout}\n{job.errors()[-2000:]}")

    @staticmethod
    def ends(job):
        try:
            job.process.wait(60)  # mpiexec takes 15 s to notice on a loaded machine
            return True
        except harness.subprocess.TimeoutExpired:
            return False


def take_all(names, libraries, options):
    total = restarts = 0
    for index, name in enumerate(names):
        scenario = Scenario(name)
        with Scratch(f"scenario-{name}") as base:
            for mpi in libraries if not options.alternate else [libraries[index % len(libraries)]]:
                rng = random.Random(f"{options.seed} {name} {mpi}")
                cwd = base / mpi
                cwd.mkdir()
                scenario.check_native(mpi, cwd)
                moments = Moments(scenario, mpi, rng, options, cwd)
                moments.take(options.moments)
                total += moments.taken
                restarts += moments.restarts
    return f"{total} checkpoints, {restarts} restarts"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names")
    parser.add_argument("--moments", type=int, default=20, help="of each scenario on each library")
    parser.add_argument("--mpi", default="openmpi,mpich")
    parser.add_argument("--alternate", action="store_true", help="one library for each scenario, in turns")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--gap", type=float, default=0.1, help="longest pause between two checkpoints, s")
    parser.add_argument("--restarts", type=float, default=0.08, help="share of checkpoints after which all is killed")
    parser.add_argument("--repeats", type=int, default=1000, help="length of the first run")
    parser.add_argument("--seconds", type=float, default=10, help="about how long later runs shall take")
    parser.add_argument("--protocol", default="cc-d")
    parser.add_argument("-v", "--verbose", action="store_true", help="the phases of each checkpoint")
    parser.add_argument("--hold", action="store_true", help="leave a failed job as it is, for a debugger")
    options = parser.parse_args()
    names = NAMES if options.names == "all" else options.names.split(",")
    libraries = options.mpi.split(",")
    print(f"{' '.join(names)}: seed {options.seed}", flush=True)
    return harness.verdict(" ".join(names), lambda: take_all(names, libraries, options))


if __name__ == "__main__":
    sys.exit(main())
