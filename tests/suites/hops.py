#!/usr/bin/env python3
"""Storms of renewals over whole programs: fresh MPI libraries every 0.2 to 2 s while they run, and the native lines.

    tests/suites/hops.py [CASE…] [--mpi openmpi|mpich] [--libraries same|either] [--between MIN MAX] [--hops N] [--seed S]
                         [--message-log]

CASE: those of tests/system/application_test.py (default: all but big, which needs 6 GiB) and of tests/applications/cases.py.
--libraries either: each renewal draws Open MPI or MPICH. --hops: a program is run again until it has seen so many.
--message-log: the ranks are renewed wherever they are, instead of in a safe state.
"""
import argparse
import pathlib
import random
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "system"), str(TESTS / "applications")]
import application_test  # noqa: E402
import cases  # noqa: E402
import harness  # noqa: E402
import run as applications  # noqa: E402
from harness import Job, Scratch, check  # noqa: E402

PATIENCE = 300
SMALL = [name for name in application_test.CASES if name != "big"]


class Small:
    """A program of application_test.py."""

    def __init__(self, name):
        self.case = application_test.CASES[name]

    def prepare(self, cwd):
        application_test.prepare(self.case, cwd)

    def native(self, cwd):
        return self.read(cwd, harness.native(self.case.program, self.case.ranks, self.case.abi, cwd))

    def read(self, cwd, lines):
        return application_test.results(self.case, lines, cwd)

    def is_right(self, lines, wanted):
        return lines == wanted


class Debians:
    """One of Debian's."""

    def __init__(self, name):
        self.case = cases.CASES[name]

    def prepare(self, cwd):
        applications.Workplace(self.case, cwd)

    def native(self, cwd):
        return applications.read(self.case, cwd, applications.native(self.case, cwd)[1])

    def read(self, cwd, lines):
        return applications.read(self.case, cwd, "\n".join(lines) + "\n")

    def is_right(self, lines, wanted):
        return applications.same(self.case, lines, wanted)


def over_one_run(program, base, draw, options):
    """Hops of one run, seconds each took, and its results."""
    cwd = base / f"run-{draw.randrange(10**9)}"
    program.prepare(cwd)
    took, case = [], program.case
    with Job.run(case.program, case.ranks, cwd, mpi=options.mpi or case.abi,
                 extra=["--message-log"] if options.message_log else ["--launcher", "own"]) as job:
        while job.process.poll() is None:
            end = time.monotonic() + draw.uniform(*options.between)
            while time.monotonic() < end and job.process.poll() is None:
                time.sleep(0.01)
            words = ["--mpi", draw.choice(["openmpi", "mpich"])] if options.libraries == "either" else []
            begin = time.monotonic()
            done = job.ask("renew", *words, timeout=PATIENCE)
            if done.returncode == 0:
                took.append(time.monotonic() - begin)
                continue
            time.sleep(1)  # it may be about to end
            check(job.process.poll() is not None or "MPI_Finalize" in done.stderr or "has ended" in done.stderr,
                  f"renew: {done.returncode} {done.stderr}\n{job.errors()[-3000:]}")
        return took, program.read(cwd, job.finish(timeout=PATIENCE))


def storm(name, options):
    program = Small(name) if name in application_test.CASES else Debians(name)
    draw = random.Random(f"{options.seed} {name}")
    with Scratch(f"hops-{name}") as base:
        program.prepare(base / "native")
        wanted = program.native(base / "native")
        check(len(wanted) > 2, f"the native run has no results: {wanted}")
        took, runs = [], 0
        while runs == 0 or len(took) < options.hops:
            more, lines = over_one_run(program, base, draw, options)
            took, runs = took + more, runs + 1
            check(program.is_right(lines, wanted), f"{name} after {len(more)} hops: {lines[-3:]}, natively {wanted[-3:]}")
            check(more or runs > 3 or not options.hops, f"{name}: no hop, the program is too short")
    mean = sum(took) / max(1, len(took))
    return f"{len(took)} hops in {runs} {'run' if runs == 1 else 'runs'}, {mean:.2f} s each, identical"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], *application_test.CASES, *cases.CASES])
    parser.add_argument("--mpi", choices=["openmpi", "mpich"], help="the library it begins with (default: the program's)")
    parser.add_argument("--libraries", choices=["same", "either"], default="either")
    parser.add_argument("--between", nargs=2, type=float, default=[0.2, 2])
    parser.add_argument("--hops", type=int, default=1)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--message-log", action="store_true")
    options = parser.parse_args()
    bad = 0
    for name in options.cases or SMALL:
        bad += harness.verdict(name, lambda: storm(name, options))
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
