#!/usr/bin/env python3
"""Storms of renewals over whole programs: fresh MPI libraries every 0.2 to 2 s while they run, and the native lines.

    tests/suites/hops.py [CASE…] [--mpi openmpi|mpich] [--libraries same|either] [--between MIN MAX] [--hops N] [--seed S]

CASE: those of tests/system/application_test.py (default: all but big, which needs 6 GiB). --libraries either: each renewal draws
Open MPI or MPICH. --hops: a program is run again until it has seen so many.
"""
import argparse
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import application_test  # noqa: E402
import harness  # noqa: E402
from application_test import CASES  # noqa: E402
from harness import Job, Scratch, check  # noqa: E402


def over_one_run(case, base, draw, options):
    """Hops of one run, seconds each took; checks its lines."""
    cwd = base / f"run-{draw.randrange(10**9)}"
    application_test.prepare(case, cwd)
    took = []
    with Job.run(case.program, case.ranks, cwd, mpi=options.mpi or case.abi, extra=["--launcher", "own"]) as job:
        while job.process.poll() is None:
            end = time.monotonic() + draw.uniform(*options.between)
            while time.monotonic() < end and job.process.poll() is None:
                time.sleep(0.01)
            words = ["--mpi", draw.choice(["openmpi", "mpich"])] if options.libraries == "either" else []
            begin = time.monotonic()
            done = job.ask("renew", *words, timeout=application_test.CASES["big"].patience)
            if done.returncode == 0:
                took.append(time.monotonic() - begin)
                continue
            time.sleep(1)  # it may be about to end
            check(job.process.poll() is not None or "MPI_Finalize" in done.stderr or "has ended" in done.stderr,
                  f"renew: {done.returncode} {done.stderr}\n{job.errors()[-3000:]}")
        return took, application_test.results(case, job.finish(timeout=case.patience), cwd)


def storm(name, options):
    case = CASES[name]
    draw = random.Random(f"{options.seed} {name}")
    with Scratch(f"hops-{name}") as base:
        wanted = application_test.reference_run(case, base)
        took, runs = [], 0
        while runs == 0 or len(took) < options.hops:
            more, lines = over_one_run(case, base, draw, options)
            took, runs = took + more, runs + 1
            check(lines == wanted, f"{name} after {len(more)} hops: {lines[-3:]}, natively {wanted[-3:]}")
            check(more or runs > 3 or not options.hops, f"{name}: no hop, the program is too short")
    mean = sum(took) / max(1, len(took))
    return f"{len(took)} hops in {runs} {'run' if runs == 1 else 'runs'}, {mean:.2f} s each, identical"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES])
    parser.add_argument("--mpi", choices=["openmpi", "mpich"], help="the library it begins with (default: the program's)")
    parser.add_argument("--libraries", choices=["same", "either"], default="either")
    parser.add_argument("--between", nargs=2, type=float, default=[0.2, 2])
    parser.add_argument("--hops", type=int, default=1)
    parser.add_argument("--seed", default="1")
    options = parser.parse_args()
    bad = 0
    for name in options.cases or [name for name in CASES if name != "big"]:
        bad += harness.verdict(name, lambda: storm(name, options))
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
