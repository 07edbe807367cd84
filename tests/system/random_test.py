#!/usr/bin/env python3
"""Programs drawn from seeds (tests/programs/random.c), checkpointed at random moments, killed or stopped, continued on random
libraries until they end: the same lines as the undisturbed native run, to the last bit.

    random_test.py [--seed S] [--programs N | --restarts N] [--ranks N] [--steps N] [--log FILE]

--restarts N: as many programs as it takes to have been restarted N times. Every program's seed is said, and kept in FILE;
what draws moments and libraries is drawn from the same seed (when they come also depends on the machine).
"""
import argparse
import os
import random
import signal
import sys
import time

import harness
from harness import PROGRAMS, Job, Scratch, check

LIBRARIES = ("openmpi", "mpich")


def expect(lines, native, where):
    """Every line said so far is the native run's."""
    for line in lines:
        check(line in native or not line.startswith(("step", "random")), f"{where}: '{line}' is not in the native run")


def checkpoint(job, stop):
    """True: committed. False: the job had ended, or was about to."""
    words = ["checkpoint", "--job", job.name, "--timeout", f"{0.5 * harness.PATIENCE:.0f}s"] + (["--stop"] if stop else [])
    done = harness.call(*words, timeout=0.75 * harness.PATIENCE)
    if done.returncode == 0:
        return True
    code = job.end()
    check(code == 0, f"checkpoint failed ({done.stdout}{done.stderr.strip()}) and the job ended with {code}:\n{job.errors()[-2000:]}")
    return False


def end_of_stopped(job):
    check(job.end() == 85, f"stopped job: exit status {job.process.returncode}\n{job.errors()[-2000:]}")


def kill(job):
    """kill -9 of one rank, or of all: the job must end and say so."""
    pids = job.rank_pids()
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    job.end()


def program(seed, options):
    """How often it was restarted, and what it was built for."""
    chance = random.Random(seed)
    built = chance.choice(LIBRARIES)
    words = [PROGRAMS / f"random.{built}", str(seed), str(options.steps), str(options.pause)]
    with Scratch(f"random-{seed}") as cwd:
        # Open MPI's native windows without RDMA: docs/internals/bindings.md.
        native = harness.native([PROGRAMS / "random.openmpi", *words[1:]], options.ranks, "openmpi", cwd,
                                env=dict(os.environ, OMPI_MCA_osc="^rdma,ucx"))
        last = native[-1]
        check(last.startswith("random: right"), f"the native run says {last}")
        job = Job.run(words, options.ranks, cwd, mpi=chance.choice(LIBRARIES), extra=("--keep", "2"))
        restarts = 0
        while True:
            with job:
                moment = time.monotonic() + chance.uniform(0, options.gap)
                stop, below = chance.random() < 0.4, chance.choice(LIBRARIES)
                while job.process.poll() is None and time.monotonic() < moment:
                    time.sleep(0.01)
                running = job.process.poll() is None and restarts < options.longest and checkpoint(job, stop)
                if not running:
                    lines = job.finish()
                    expect(lines, native, f"seed {seed}, {restarts} restarts")
                    check(lines[-1] == last, f"seed {seed}, {restarts} restarts: {lines[-1]}, native {last}")
                    return restarts, built
                end_of_stopped(job) if stop else kill(job)
                expect(job.lines(), native, f"seed {seed}, before restart {restarts + 1}")
            restarts += 1
            job = Job.restart(cwd, mpi=below, extra=("--keep", "2"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--programs", type=int, default=0)
    parser.add_argument("--restarts", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--pause", type=int, default=4000, help="microseconds at most, in a quarter of the steps")
    parser.add_argument("--gap", type=float, default=0.8, help="seconds at most between restarts")
    parser.add_argument("--longest", type=int, default=40, help="restarts of one program, then it runs to its end")
    parser.add_argument("--log")
    options = parser.parse_args()

    def run():
        total, seed, began = 0, options.seed, time.monotonic()
        while seed - options.seed < options.programs if options.programs else total < max(1, options.restarts):
            restarts, built = program(seed, options)
            total += restarts
            line = f"seed {seed}: built for {built}, {restarts} restarts, right"
            print(line, flush=True)
            if options.log:
                with open(options.log, "a", encoding="ascii") as file:
                    file.write(f"{line} (--ranks {options.ranks} --steps {options.steps})\n")
            seed += 1
        return f"{seed - options.seed} programs, {total} restarts in {time.monotonic() - began:.0f} s"

    return harness.verdict(f"random programs from seed {options.seed}", run)


if __name__ == "__main__":
    sys.exit(main())
