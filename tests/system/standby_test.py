#!/usr/bin/env python3
"""`--standby`: the next life's ranks are there before a rank dies.

    standby_test.py kills|files|falls|left openmpi|mpich [--seed S]
"""
import argparse
import json
import os
import pathlib
import random
import signal
import sys
import time

import harness
from harness import PROGRAMS, Job, Scratch, check

RANKS = 2


def waits_for(predicate, seconds=10):
    end = time.monotonic() + seconds
    while not predicate() and time.monotonic() < end:
        time.sleep(0.02)
    return predicate()


def standing(job):
    """Waits until a life stands by; its ranks."""
    job.wait_until(lambda: json.loads(job.ask("status", "--json").stdout or "{}").get("standby") == "ready", "a life that stands by")
    mine = set(job.rank_pids())
    waiting = [pid for pid, name in job.processes().items() if name.startswith("lower-") and pid not in mine]
    check(len(waiting) == RANKS, f"{waiting} stand by, {job.processes()}")
    return waiting


def right(lines, wanted):
    """A line that comes again after a restart is the same."""
    known = {line.rsplit(" ", 1)[0]: line for line in wanted}
    wrong = [line for line in lines if known.get(line.rsplit(" ", 1)[0]) != line]
    check(not wrong and lines[-1] == wanted[-1], f"{wrong[:3]}, last {lines[-1:]}, natively {wanted[-1]}")
    check({line for line in lines} == set(wanted), "a line is missing")


def nothing_is_left(job):
    check(waits_for(lambda: not job.processes()), f"left: {job.processes()}")
    runs = [path for base in pathlib.Path(os.environ.get("FERMATA_RUN_DIR", "/tmp")).glob(f"fermata-{os.geteuid()}*")
            for path in base.glob(f"{job.name}*")]
    check(not runs, f"left: {runs}")


def killed(mpi, seed, times, saves):
    draw = random.Random(seed)
    with Scratch("standby") as cwd:
        program = [PROGRAMS / f"steady.{mpi}", 300 + 200 * times, 2]
        wanted = harness.native(program, RANKS, mpi, cwd)
        env = dict(os.environ, STEADY_PAUSE="4000")
        with Job.run(program, RANKS, cwd, mpi=mpi, env=env, extra=["--launcher", "own", "--max-restarts", 5, "--standby", *saves]) as job:
            for life in range(times):
                waiting = standing(job)
                time.sleep(draw.random() * 0.3)
                os.kill(draw.choice(job.rank_pids()), signal.SIGKILL)
                job.wait_until(lambda: job.errors().count("restarting from") > life, "a restart")
                job.wait_until(lambda: json.loads(job.ask("status", "--json").stdout or "{}").get("state") == "running", "the job to run")
                check(sorted(job.rank_pids()) == sorted(waiting), f"ranks {job.rank_pids()}, and not {waiting}, which stood by")
            right(job.finish(), wanted)
        nothing_is_left(job)


def kills(mpi, seed):
    """Ranks die three times: those that stood by are the ranks of the next life, and the result is the native one."""
    killed(mpi, seed, 3, ["--levels", "memory 0.3s"])


def files(mpi, seed):
    """The same with generations in files alone."""
    killed(mpi, seed, 1, ["--interval", "0.3s"])


def falls(mpi, seed):
    """Who stands by dies, a rank or its daemon: the job does not notice, and goes on without when a rank of its own dies."""
    draw = random.Random(seed)
    with Scratch("standby-falls") as cwd:
        program = [PROGRAMS / f"steady.{mpi}", 500, 2]
        wanted = harness.native(program, RANKS, mpi, cwd)
        env = dict(os.environ, STEADY_PAUSE="4000")
        extra = ["--launcher", "own", "--max-restarts", 5, "--standby", "--levels", "memory 0.3s"]
        for who in "rank", "daemon":
            with Job.run(program, RANKS, cwd, mpi=mpi, env=env, extra=extra) as job:
                waiting, ranks = standing(job), job.rank_pids()
                parents = {int((pathlib.Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[1]) for pid in waiting}
                check(len(parents) == 1, f"daemons {parents}")
                os.kill(draw.choice(waiting) if who == "rank" else parents.pop(), signal.SIGKILL)
                job.wait_until(lambda: job.status()["standby"] == "none", "nothing to stand by")
                check(job.rank_pids() == ranks and not job.errors(), job.errors())
                os.kill(draw.choice(ranks), signal.SIGKILL)
                job.wait_until(lambda: "restarting from" in job.errors(), "a restart")
                right(job.finish(), wanted)
            nothing_is_left(job)


def left(mpi, seed):
    """However the job ends while a life stands by, nothing of it stays."""
    with Scratch("standby-left") as cwd:
        env = dict(os.environ, STEADY_PAUSE="4000")
        extra = ["--launcher", "own", "--max-restarts", 5, "--standby", "--levels", "memory 0.3s"]
        for end in "cancel", "stop", "killed":
            with Job.run([PROGRAMS / f"steady.{mpi}", 100000, 2], RANKS, cwd, mpi=mpi, env=env, extra=extra) as job:
                standing(job)
                if end == "cancel":
                    check(job.ask("cancel").returncode == 0, "cancel")
                elif end == "stop":
                    job.checkpoint("--stop")
                else:
                    job.process.kill()
                job.end(20)
                check(waits_for(lambda: not job.processes()), f"{end}: left: {job.processes()}")
        done = harness.call("run", "-n", 2, "--mpi", mpi, "--standby", "--launcher", "own", "--", PROGRAMS / f"steady.{mpi}", "1", cwd=cwd)
        check(done.returncode == 2 and "--max-restarts" in done.stderr, f"{done.returncode} {done.stderr}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=["kills", "files", "falls", "left"])
    parser.add_argument("mpi", choices=["openmpi", "mpich"])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.exit(harness.verdict(f"standby {options.case}", lambda: globals()[options.case](options.mpi, options.seed)))
