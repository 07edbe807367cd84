#!/usr/bin/env python3
"""Storms of renewals over whole programs: fresh MPI libraries every 0.2 to 2 s while they run, and the native lines.

    tests/suites/hops.py [CASE…] [--mpi openmpi|mpich] [--libraries same|either] [--between MIN MAX] [--hops N] [--seed S]
                         [--message-log]

CASE: those of tests/system/application_test.py (default: all but big, which needs 6 GiB), those of tests/applications/cases.py,
`asyncio`, and `traps`, `scenarios` or one of them (trap.cycles.mpich, scenario.ring.openmpi).
--libraries either: each renewal draws Open MPI or MPICH. --hops: a program is run again until it has seen so many.
--message-log: the ranks are renewed wherever they are, instead of in a safe state; what a log refuses by name is said.

A trap is renewed where it stands, and once as it is let go; a scenario, with other pauses in each run, until it ends.
"""
import argparse
import dataclasses
import os
import pathlib
import random
import re
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "system"), str(TESTS / "applications")]
import application_test  # noqa: E402
import cases  # noqa: E402
import harness  # noqa: E402
import run as applications  # noqa: E402
import scenario_test  # noqa: E402
import trap_test  # noqa: E402
from harness import PROGRAMS, Job, Scratch, check  # noqa: E402

PATIENCE = 300
SMALL = [name for name in application_test.CASES if name != "big"]
# Arguments with which a case sees some hops.
LONGER = {"c.openmpi": ("300", "2000"), "c.mpich": ("300", "2000"), "nonpie": ("300", "2000"), "multi": ("300", "2000"),
          "fortran.openmpi": ("90", "8000"), "fortran.mpich": ("90", "8000")}
TRAPS = re.findall(r'^    \{"([a-z_]+)", [a-z_]+\},', (TESTS / "programs" / "trap.c").read_text(), re.M)
# What Open MPI lacks natively; what needs a library, or does not hold.
MPICH_ONLY, LEFT_OUT = {"held_persistent", "held_inits", "held_neighbour_inits", "sessions_only"}, {"profiled", "taken_beside"}
REFUSED = re.compile(r"a job with a message log cannot have (.*): run it")


class Refused(Exception):
    """What a job with a message log cannot have."""


class Program:
    """One that runs by itself."""

    env, least = None, 3

    def prepare(self, cwd):
        cwd.mkdir()

    def draw(self, draw):
        """Another run of it begins."""

    def disturb(self, job, cwd, hop):
        while job.process.poll() is None:
            hop()

    def is_right(self, lines, wanted):
        return lines == wanted


class Small(Program):
    """A program of application_test.py."""

    def __init__(self, name):
        case = application_test.CASES[name]
        self.case = dataclasses.replace(case, program=[case.program[0], *LONGER[name]]) if name in LONGER else case

    def prepare(self, cwd):
        application_test.prepare(self.case, cwd)

    def native(self, cwd):
        return self.read(cwd, harness.native(self.case.program, self.case.ranks, self.case.abi, cwd))

    def read(self, cwd, lines):
        return application_test.results(self.case, lines, cwd)


class Debians(Program):
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


class Scenario(Program):
    """One of tests/programs/scenarios."""

    least = 1

    def __init__(self, name):
        _, name, abi = name.split(".")
        self.scenario, self.repeats = scenario_test.Scenario(name), 300
        self.case = application_test.Case([], abi=abi, ranks=self.scenario.ranks)

    def native(self, cwd):
        self.scenario.check_native(self.case.abi, cwd)
        return [self.scenario.name]

    def draw(self, draw):
        self.repeats = min(100000, 2 * self.repeats)
        repeats = self.repeats // 10 if self.scenario.threaded() else self.repeats
        self.case.program = self.scenario.program(self.case.abi, repeats, draw.randrange(1, 1000))
        self.result = self.scenario.result(repeats)

    def read(self, cwd, lines):
        return [line for line in lines if line.startswith(self.scenario.prefix)]

    def is_right(self, lines, wanted):
        return lines == [self.result]


class Held(Program):
    """A program that stands where it says READY until a file is there."""

    least, measures, where_it_stands = 1, False, 3

    def native(self, cwd):
        (cwd / "go").touch()
        return self.read(cwd, harness.native(self.words(cwd), self.case.ranks, self.case.abi, cwd))

    def read(self, cwd, lines):
        return [line for line in lines if line != "READY"]

    def disturb(self, job, cwd, hop):
        job.wait_until(lambda: "READY" in job.lines() or job.process.poll() is not None, "READY")
        for _ in range(self.where_it_stands if job.process.poll() is None else 0):
            hop()
        if self.measures:
            (cwd / "go").touch()
            return
        hop((cwd / "go").touch)
        super().disturb(job, cwd, hop)


class Trap(Held):
    def __init__(self, name):
        _, self.name, abi = name.split(".")
        self.measures = self.name == "cycles"  # it measures memory: no fresh library meanwhile
        # Let go by the first one, half of these stand in a collective call, where the others come only later.
        self.where_it_stands = 1 if self.name in trap_test.LATE else 3
        self.case = application_test.Case([PROGRAMS / f"trap.{abi}", self.name], abi=abi, ranks=4)

    def words(self, cwd):
        late = self.name in trap_test.LATE
        self.env = dict(os.environ, HOLD_FILE="/" if late else str(cwd / "go"), **({"HOLD_FILE_LATE": str(cwd / "go")} if late else {}))
        return self.case.program


class Asyncio(Held):
    """An event loop, with a pool of threads and a helper command; after it was held it goes on for some seconds."""

    def __init__(self, _):
        self.case = application_test.Case([])

    def words(self, cwd):
        return ["/usr/bin/python3", TESTS / "programs" / "asyncio_ring.py", cwd / "go", "1500"]


def group(name, options):
    if name == "scenarios":
        threaded = [one for one in scenario_test.NAMES if options.message_log and scenario_test.Scenario(one).threaded()]
        return [f"scenario.{one}.{mpi}" for one in scenario_test.NAMES if one not in threaded for mpi in ("openmpi", "mpich")]
    if name == "traps":
        return [f"trap.{one}.{mpi}" for one in TRAPS if one not in LEFT_OUT for mpi in ("openmpi", "mpich")
                if mpi == "mpich" or one not in MPICH_ONLY]
    return [name]


def program_of(name):
    kinds = {"asyncio": Asyncio, "trap": Trap, "scenario": Scenario}
    kind = kinds.get(name.split(".")[0]) or (Small if name in application_test.CASES else Debians)
    return kind(name)


class Hops:
    """The renewals of one job."""

    def __init__(self, job, draw, options):
        self.job, self.draw, self.options, self.took = job, draw, options, []

    def __call__(self, meanwhile=None):
        """One, after a while; `meanwhile` happens some moments after it was asked for."""
        job, draw, options = self.job, self.draw, self.options
        end = time.monotonic() + draw.uniform(*options.between)
        while time.monotonic() < end and job.process.poll() is None:
            time.sleep(0.01)
        words = ["--mpi", draw.choice(["openmpi", "mpich"])] if options.libraries == "either" else []
        begin = time.monotonic()
        asked = subprocess.Popen([harness.FERMATA, "renew", "--job", job.name, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if meanwhile:
            time.sleep(draw.uniform(0, 0.3))
            meanwhile()
        try:
            said = asked.communicate(timeout=PATIENCE)[1]
        except subprocess.TimeoutExpired:
            asked.kill()
            raise harness.Failure(f"renew stands still:\n{job.ask('status').stdout}\n{job.errors()[-3000:]}") from None
        if asked.returncode == 0:
            self.took.append(time.monotonic() - begin)
            return
        time.sleep(1)  # it may be about to end
        check(job.process.poll() is not None or "MPI_Finalize" in said or "has ended" in said,
              f"renew: {asked.returncode} {said}\n{job.errors()[-3000:]}")


def over_one_run(program, base, draw, options):
    """Hops of one run, seconds each took, and its results."""
    cwd = base / f"run-{draw.randrange(10**9)}"
    program.prepare(cwd)
    program.draw(draw)
    words, case = program.words(cwd) if isinstance(program, Held) else program.case.program, program.case
    with Job.run(words, case.ranks, cwd, mpi=options.mpi or case.abi, env=program.env,
                 extra=["--message-log"] if options.message_log else ["--launcher", "own"]) as job:
        hops = Hops(job, draw, options)
        program.disturb(job, cwd, hops)
        if options.message_log and job.process.poll() == 70 and (refused := REFUSED.search(job.errors())):
            raise Refused(refused[1])
        return hops.took, program.read(cwd, job.finish(timeout=PATIENCE))


def storm(name, options):
    program = program_of(name)
    draw = random.Random(f"{options.seed} {name}")
    with Scratch(f"hops-{name}") as base:
        program.prepare(base / "native")
        wanted = program.native(base / "native")
        check(len(wanted) >= program.least, f"the native run has no results: {wanted}")
        took, runs = [], 0
        while runs == 0 or len(took) < options.hops:
            try:
                more, lines = over_one_run(program, base, draw, options)
            except Refused as refused:
                return f"refused by name: {refused}"
            took, runs = took + more, runs + 1
            check(program.is_right(lines, wanted), f"{name} after {len(more)} hops: {lines[-3:]}, natively {wanted[-3:]}")
            check(took or runs < 8, f"{name}: no hop, the program is too short")
    options.count += len(took)
    mean = sum(took) / max(1, len(took))
    return f"{len(took)} hops in {runs} {'run' if runs == 1 else 'runs'}, {mean:.2f} s each, identical"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--mpi", choices=["openmpi", "mpich"], help="the library it begins with (default: the program's)")
    parser.add_argument("--libraries", choices=["same", "either"], default="either")
    parser.add_argument("--between", nargs=2, type=float, default=[0.2, 2])
    parser.add_argument("--hops", type=int, default=1)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--message-log", action="store_true")
    parser.set_defaults(count=0)
    options = parser.parse_args()
    names = [one for name in options.cases or SMALL for one in group(name, options)]
    known = {"asyncio", *application_test.CASES, *cases.CASES,
             *(f"{kind}.{one}.{mpi}" for kind, all in (("trap", TRAPS), ("scenario", scenario_test.NAMES)) for one in all for mpi in ("openmpi", "mpich"))}
    if wrong := [name for name in names if name not in known]:
        parser.error(f"no case {' '.join(wrong)}; there are traps, scenarios, {', '.join(sorted(one for one in known if one.count('.') < 2))}")
    bad = 0
    for name in names:
        bad += harness.verdict(name, lambda: storm(name, options))
    print(f"{options.count} hops in {len(names)} cases, {bad} of these wrong", flush=True)
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
