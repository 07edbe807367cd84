#!/usr/bin/env python3
"""Checkpoints at random moments of jobs with a message log, a restart of each, and the native lines.

    tests/suites/logged.py [CASE…] [--replicas DEGREE] [--mpi openmpi|mpich] [--libraries same|either] [--between MIN MAX]
                           [--runs N] [--seed S] [--kills N]

CASE: those of tests/system/application_test.py (default: all but big, which needs 6 GiB, and those that a log refuses: hpcc
cancels receives, threads asks for MPI_THREAD_MULTIPLE). The run itself ends with the native
lines, and each of its generations is continued with the rest of them. --libraries either: on Open MPI or MPICH, as drawn.
--kills: so many ranks are killed at random moments under --interval and --max-restarts, and three generations continued.
"""
import argparse
import os
import pathlib
import random
import signal
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "system"), str(TESTS / "suites"), str(TESTS / "applications")]
import application_test  # noqa: E402
import harness  # noqa: E402
from harness import Job, Scratch, check  # noqa: E402
from hops import PATIENCE, SMALL, Small  # noqa: E402


def words_of(options):
    return ["--replicas", options.replicas] if options.replicas else ["--message-log"]


def checkpoints_of_one_run(program, cwd, draw, options):
    """[generation, lines printed before it] of a run, seconds each took, and its results."""
    case, taken, took = program.case, [], []
    with Job.run(case.program, case.ranks, cwd, mpi=options.mpi or case.abi, extra=[*words_of(options), "--keep", "all"]) as job:
        while job.process.poll() is None:
            end = time.monotonic() + draw.uniform(*options.between)
            while time.monotonic() < end and job.process.poll() is None:
                time.sleep(0.01)
            before = 0 if case.result_file else len(program.read(cwd, job.lines()))
            done = job.ask("checkpoint", "--json", timeout=PATIENCE)
            if done.returncode == 0:
                said = harness.json.loads(done.stdout)
                taken.append((said["generation"], before))
                took.append(said["seconds"])
                continue
            time.sleep(1)  # it may be about to end
            check(job.process.poll() is not None or "MPI_Finalize" in done.stderr or "has ended" in done.stderr
                  or "copy goes on" in done.stderr, f"checkpoint: {done.returncode} {done.stderr}\n{job.errors()[-3000:]}")
        return taken, took, program.read(cwd, job.finish(timeout=PATIENCE))


def all_continued(program, cwd, taken, wanted, draw, options):
    for generation, printed in taken:
        mpi = draw.choice(["openmpi", "mpich"]) if options.libraries == "either" else options.mpi or program.case.abi
        with Job.restart(cwd, mpi=mpi, generation=int(generation.split("-")[1])) as job:
            lines = program.read(cwd, job.finish(timeout=PATIENCE))
        rest = wanted[len(wanted) - len(lines):]
        if program.case.result_file:
            rest = lines if set(lines) >= set(wanted) else wanted
        check(lines == rest and len(lines) <= len(wanted) - printed,
              f"{generation} on {mpi}: {len(lines)} lines, {printed} of {len(wanted)} before; {lines[:2]} … {lines[-2:]}, natively {rest[:2]}")


def kill_one(job, draw):
    done = job.ask("status", "--json")
    ranks = harness.json.loads(done.stdout)["ranks"] if done.returncode == 0 else []
    try:
        os.kill(draw.choice(ranks)["pid"], signal.SIGKILL)
    except (IndexError, KeyError, ProcessLookupError):
        return False
    return True


def killed(program, cwd, wanted, draw, options):
    """Ranks are killed while their job saves itself; its lines end as natively, and all of them came in order."""
    case, kills = program.case, 0
    extra = [*words_of(options), "--interval", "0.3s", "--max-restarts", "100", "--keep", "all"]
    with Job.run(case.program, case.ranks, cwd, mpi=options.mpi or case.abi, extra=extra) as job:
        while job.process.poll() is None and kills < options.kills:
            time.sleep(draw.uniform(*options.between))
            if list((cwd / "ckpt").glob("gen-*/manifest.json")):
                kills += kill_one(job, draw)
        lines = program.read(cwd, job.finish(timeout=PATIENCE))
        errors = job.errors()
    at = 0
    for line in lines:
        if at < len(wanted) and line == wanted[at]:
            at += 1
            continue
        check(line in wanted, f"a line that natively does not come: {line}\n{errors[-2000:]}")
        at = wanted.index(line) + 1
    check(at == len(wanted), f"ended after {at} of {len(wanted)} lines\n{errors[-2000:]}")
    generations = sorted(path.parent.name for path in (cwd / "ckpt").glob("gen-*/manifest.json"))
    some = [(generation, 0) for generation in draw.sample(generations, min(3, len(generations)))]
    all_continued(program, cwd, some, wanted, draw, options)
    return kills, errors.count("restarting from"), errors.count("its copy goes on in its place")


def storm(name, options):
    program = Small(name)
    draw = random.Random(f"{options.seed} {name}")
    with Scratch(f"logged-{name}") as base:
        program.prepare(base / "native")
        wanted = program.native(base / "native")
        check(len(wanted) > 2, f"the native run has no results: {wanted}")
        all_taken, took = 0, []
        said = ""
        for number in range(options.runs):
            cwd = base / f"run-{number}"
            program.prepare(cwd)
            if options.kills:
                said += " {} killed, {} times back, {} masked;".format(*killed(program, cwd, wanted, draw, options))
                continue
            taken, seconds, lines = checkpoints_of_one_run(program, cwd, draw, options)
            check(program.is_right(lines, wanted), f"{name}: after {len(taken)} checkpoints {lines[-3:]}, natively {wanted[-3:]}")
            if not program.case.result_file:
                all_continued(program, cwd, taken, wanted, draw, options)
            all_taken += len(taken)
            took += seconds
    if options.kills:
        return said
    check(took, "no checkpoint: the program is too short")
    return f"{all_taken} checkpoints, {sum(took) / len(took):.2f} s each (at most {max(took):.2f}), all continued, identical"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], *application_test.CASES])
    parser.add_argument("--replicas", default="")
    parser.add_argument("--mpi", choices=["openmpi", "mpich"], help="the library it begins with (default: the program's)")
    parser.add_argument("--libraries", choices=["same", "either"], default="either")
    parser.add_argument("--between", nargs=2, type=float, default=[0.2, 2])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--kills", type=int, default=0)
    options = parser.parse_args()
    bad = 0
    for name in options.cases or [name for name in SMALL if name not in ("hpcc", "threads")]:
        bad += harness.verdict(name, lambda: storm(name, options))
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
