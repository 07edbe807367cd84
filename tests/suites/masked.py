#!/usr/bin/env python3
"""Whole programs whose ranks have copies: processes of ranks are killed while they run, and the native lines come.

    tests/suites/masked.py [CASE…] [--mpi openmpi|mpich] [--runs N] [--kills N] [--between MIN MAX] [--seed S]

CASE: as of tests/suites/hops.py (default: lammps, cg, ssor, hydro, c, fft, fortran, mpi4py, cp2k). Each run kills N ranks, MIN to MAX seconds one
after the other. A rank whose copy has ended before, with a line, may end the job with a line: counted, and no failure. A run that stands
still is shown as `fermata status` sees it.
"""
import argparse
import os
import pathlib
import random
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import hops  # noqa: E402
from hops import Debians, Small, application_test, cases, harness  # noqa: E402
from harness import Job, Scratch, check  # noqa: E402

MASKED = re.compile(r"was killed by signal 9: its copy goes on in its place")
DEFAULT = ["lammps", "cg.openmpi", "cg.mpich", "ssor.openmpi", "ssor.mpich", "hydro.openmpi", "hydro.mpich", "c.openmpi", "c.mpich", "fft",
           "fortran.mpich", "mpi4py", "cp2k"]
ALONE = re.compile(r"its copy (ends|has sent other data|calls MPI)|gets no copy|was killed by signal 9 \(Killed\)")


def wait_for_end(job, seconds):
    end = time.monotonic() + seconds
    while job.process.poll() is None:
        if time.monotonic() > end:
            raise harness.Failure(f"stands still:\n{job.ask('status').stdout}\n{job.errors()[-3000:]}")
        time.sleep(0.05)


def over_one_run(program, base, draw, options):
    """Deaths that were masked, the results, and the job's own words."""
    cwd = base / f"run-{draw.randrange(10**9)}"
    program.prepare(cwd)
    case = program.case
    with Job.run(case.program, case.ranks, cwd, mpi=options.mpi or case.abi, extra=["--replicas", "all"]) as job:
        for _ in range(options.kills):
            end = time.monotonic() + draw.uniform(*options.between)
            while time.monotonic() < end and job.process.poll() is None:
                time.sleep(0.01)
            if job.process.poll() is not None:
                break
            try:
                os.kill(draw.choice(job.rank_pids()), signal.SIGKILL)
            except (ProcessLookupError, harness.Failure, IndexError):
                pass  # the rank has ended, or the job is just ending, or between two worlds
        wait_for_end(job, options.patience)
        errors = job.errors()
        masked = len(MASKED.findall(errors))
        if job.process.returncode != 0:
            check(ALONE.search(errors), f"exit code {job.process.returncode} without a reason:\n{errors}\n{job.lines()[-5:]}")
            return masked, None
        return masked, program.read(cwd, job.finish())


def deaths(name, options):
    program = Small(name) if name in application_test.CASES else Debians(name)
    draw = random.Random(f"{options.seed} {name}")
    masked = ended = 0
    with Scratch(f"masked-{name}") as base:
        program.prepare(base / "native")
        wanted = program.native(base / "native")
        check(len(wanted) > 2, f"the native run has no results: {wanted}")
        for _ in range(options.runs):
            more, lines = over_one_run(program, base, draw, options)
            masked += more
            ended += lines is None
            check(lines is None or program.is_right(lines, wanted), f"{name}: {lines}, natively {wanted}")
    return f"{options.runs} runs, {masked} deaths masked, {ended} ended with a line, the others identical"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], *application_test.CASES, *cases.CASES])
    parser.add_argument("--mpi", choices=["openmpi", "mpich"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--between", nargs=2, type=float, default=[1.5, 4])
    parser.add_argument("--patience", type=float, default=120)
    parser.add_argument("--seed", default="1")
    options = parser.parse_args()
    bad = 0
    for name in options.cases or DEFAULT:
        bad += harness.verdict(name, lambda: deaths(name, options))
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
