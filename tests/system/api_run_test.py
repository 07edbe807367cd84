#!/usr/bin/env python3
"""A program that saves its own state (libfermata) under `fermata run`: it hears what the job is asked, and the supervisor starts
it anew.

    api_run_test.py CASE [--seed S] [--rounds N] [--mpi NAME] [--launcher NAME]
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile
import time

import harness
from api_test import mpiexec
from harness import PROGRAMS, Job, Scratch, check

# Long enough for whatever is asked of it meanwhile.
ENVIRONMENT = dict(os.environ, OWN_STATE_STEPS="20000", STEADY_PAUSE="4000")
TRIGGERS = "s", "triggers", "keep=3"


class Case:
    """One directory, and the words of its jobs."""

    def __init__(self, cwd, draw, options):
        self.cwd, self.draw, self.options = cwd, draw, options
        self.mpi = options.mpi or draw.choice(["openmpi", "mpich"])

    def start(self, program, *words, extra=(), ranks=2):
        launcher = ["--launcher", self.options.launcher] if self.options.launcher else []
        words = program if isinstance(program, list) else [PROGRAMS / f"{program}.{self.mpi}", *words]
        return Job.run(words, ranks, self.cwd, mpi=self.mpi, extra=[*launcher, *extra], env=ENVIRONMENT)

    def generations(self, where="ckpt"):
        return sorted(path.parent.name for path in (self.cwd / where).glob("gen-*/manifest.json"))

    def step(self):
        """Of the newest one that the program has saved itself."""
        newest = self.cwd / "s" / self.generations("s")[-1] / "manifest.json"
        return json.loads(newest.read_text().split("\nxxh3")[0])["application"]["step"]


def began(job):
    """From which step the newest life of the program went on, and whether it found one."""
    job.wait_until(lambda: re.findall(r"^from (\d+) (\d)$", job.output(), re.M), "the program's first line")
    found = re.findall(r"^from (\d+) (\d)$", job.output(), re.M)[-1]
    return int(found[0]), found[1] == "1"


def ask(job, *words, code=0, says=""):
    done = job.ask("checkpoint", *words)
    check(done.returncode == code and says in done.stdout + done.stderr,
          f"checkpoint {words}: exit code {done.returncode}, wanted {code}: {says}\n{done.stdout}{done.stderr}\n{job.errors()[-2000:]}")
    return done.stdout


def asked(case):
    """`--own-state` asks the program, and nothing else of it is saved; without it the whole is; who has no state of its own says so."""
    with case.start("own_state", *TRIGGERS, extra=["--own-state"]) as job:
        check(began(job) == (0, False), job.output())
        ask(job, says=f"the program has saved its own state: gen-000001 in {case.cwd}/s, step ")
        said = json.loads(ask(job, "--json"))
        check(said["generation"] == "gen-000002" and said["directory"] == f"{case.cwd}/s", f"{said}")
        check("gen-000002 in" in job.status()["own_state"], f"{job.status()}")
        check(not case.generations(), "the processes were saved as well")
        job.ask("cancel")
    with case.start("own_state", *TRIGGERS) as job:
        check(began(job)[1], job.output())
        ask(job, "--own-state", says="the program has saved its own state: gen-000003")
        check(not case.generations(), "the processes were saved as well")
        ask(job, says="gen-000001")
        check(case.generations() == ["gen-000001"], f"{case.generations()}")
        check(case.generations("s")[-1] == "gen-000003", "the program was asked as well")
        job.ask("cancel")
    with case.start("steady", "2000000", "8", extra=["--ckpt-dir", "other"]) as job:
        job.wait_until(lambda: job.lines(), "a line")
        ask(job, "--own-state", code=3, says="the program has not opened libfermata")
        job.ask("cancel")


def stopped(case):
    """`checkpoint --stop`, SIGTERM, the wall time and the interval reach the program; exit code 85, and the same command goes on."""
    def life(end, *extra, first=False):
        with case.start("own_state", *TRIGGERS, extra=["--own-state", "--continue", *extra]) as job:
            start = began(job)
            check(start == ((case.step(), True) if not first else (0, False)), f"{start}\n{job.output()}")
            end(job)
            job.finish(expected=85)
            told = re.search(r"(-?\d+) saves, told (\d), step (\d+)", job.output())
            check(told and told[2] == "1" and int(told[1]) >= 1, job.output())
            check("`fermata run` starts it again" in job.errors(), job.errors())
            check(case.step() == int(told[3]) - 1, f"{case.step()}: {told[0]}")  # it counts once more before it ends

    life(lambda job: ask(job, "--stop", says="gen-000001 in"), first=True)
    life(lambda job: job.process.send_signal(signal.SIGTERM))
    life(lambda job: None, "--walltime", "4s")
    before = case.generations("s")[-1]
    life(lambda job: (job.wait_until(lambda: case.generations("s")[-1] > before, "a save by the interval"),
                      job.process.send_signal(signal.SIGINT)), "--interval", "0.3s")
    check(not case.generations(), "the processes were saved as well")


def kill_one(job, draw):
    pids = job.rank_pids()
    os.kill(draw.choice(pids), signal.SIGKILL)


def newest(case):
    """The supervisor goes on from what is newest: a checkpoint of the whole, or the program's own, in files or in memory."""
    for number, options in enumerate(("keep=3", "memory=node,flush=0")):
        ckpt = f"ckpt{number}"
        with case.start("own_state", f"s{number}", "triggers", options, extra=["--max-restarts", "9", "--ckpt-dir", ckpt]) as job:
            began(job)
            ask(job, "--own-state", says="gen-000001 in")
            ask(job, says="gen-000001")
            ask(job, "--own-state", says="gen-000002 in")
            ask(job, says="gen-000002")
            kill_one(job, case.draw)
            job.wait_until(lambda: "restarting from gen-000002" in job.errors(), "the restart of the whole")
            job.wait_until(lambda: job.ask("status").returncode == 0, "the second life")
            # The command waits until the ranks have come.
            step = re.search(r"gen-000003 in .*, step (\d+)", ask(job, "--own-state", says="gen-000003 in"))[1]
            kill_one(job, case.draw)
            job.wait_until(lambda: f"from {step} 1" in job.lines(), "the start anew")
            check("the program is started anew" in job.errors(), job.errors())
            ask(job, says="gen-000003")
            kill_one(job, case.draw)
            job.wait_until(lambda: "restarting from gen-000003" in job.errors(), "the restart of the whole, again")
            job.wait_until(lambda: job.ask("status").returncode == 0, "the last life")
            ask(job, "--own-state", "--stop", says="gen-000004 in")
            job.finish(expected=85)


def walk(case, words, extra=(), before_kill=lambda job: None, program=None):
    """A walk whose ranks are killed at drawn moments comes to its end by itself, with the right bits."""
    steps = 1500
    reference = mpiexec("mpich", 1, PROGRAMS / "walk.mpich", "undisturbed", steps, cwd=case.cwd)
    wanted = [line for line in reference.stdout.splitlines() if line.startswith("end")]
    lives = case.options.rounds
    words = [*(program or []), PROGRAMS / f"walk.{case.mpi}", "s", steps, *words]
    with case.start(words, extra=["--max-restarts", str(lives + 3), *extra], ranks=3) as job:
        # Without anything saved a failure is given up.
        job.wait_until(lambda: "gen-" in (json.loads(job.ask("status", "--json").stdout or "{}").get("own_state") or ""), "the first save")
        for number in range(lives):
            job.wait_until(lambda: job.output().count("from ") > number or "end" in job.output(), f"life {number}")
            time.sleep(case.draw.uniform(0, 1))
            if job.process.poll() is not None or "end" in job.output():
                break
            before_kill(job)
            try:
                kill_one(job, case.draw)
            except (harness.Failure, ProcessLookupError, IndexError):
                pass  # between two lives, or at the end
        job.finish()
    ends = [line for line in job.output().splitlines() if line.startswith("end")]
    check(ends == wanted, f"{ends} instead of {wanted}\n{job.output()}\n{job.errors()}")
    began = [int(line.split()[1]) for line in job.output().splitlines() if line.startswith("from ")]
    check(began == sorted(began), f"went back: {began}\n{job.errors()}")
    return f"{job.errors().count('started anew')} starts anew, from {began}"


def killed(case):
    return walk(case, [case.draw.choice(["", "layout=shared", "keep=1"])])


def memory(case):
    """Copies in the memory of nodes outlive the ranks, and the loss of one node's memory."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="fermata-api-", dir="/dev/shm"))
    script = ('r=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; at=$((r + 1)); '
              f'export FERMATA_MEMORY_DIR={root}/$(echo abb | cut -c $at); mkdir -p $FERMATA_MEMORY_DIR; exec "$@"')

    lost = [case.draw.choice("ab")]

    def lose(job):
        if lost:  # once: a second loss before the next save would be of both copies
            shutil.rmtree(root / lost.pop(), ignore_errors=True)
    try:
        said = walk(case, ["memory=buddy,flush=0"], before_kill=lose, program=["sh", "-c", script, "sh"])
        check(not list(root.rglob("*.img")), "images stay in memory after a good end")
        return said
    finally:
        shutil.rmtree(root)


CASES = {f.__name__: f for f in (asked, stopped, newest, killed, memory)}


def case(name, *rest):
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--mpi")
    parser.add_argument("--launcher")
    options = parser.parse_args(rest)
    with Scratch(f"api-run-{name}") as cwd:
        said = CASES[name](Case(cwd, random.Random(options.seed), options))
    return f"seed {options.seed}" + (f": {said}" if said else "")


if __name__ == "__main__":
    sys.exit(harness.main(case, CASES))
