#!/usr/bin/env python3
"""Unmodified programs: checkpointed while they run, killed, continued on both libraries, results compared.

    application_test.py CASE [--moments N] [--seed S] [--mpi openmpi,mpich]

For each moment: start, checkpoint after a chosen line of output, kill -9 every rank, continue the generation on every
library; its output must be the rest of the undisturbed run's, to the last byte that is not a time.
"""
import argparse
import dataclasses
import os
import pathlib
import random
import re
import shutil
import sys
import time

import harness
from harness import PROGRAMS, Job, Scratch, check

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@dataclasses.dataclass
class Case:
    program: list
    abi: str = "openmpi"           # the library it was built for: the native run uses it
    ranks: int = 2
    keep: str = r"^(step|mix|heat|hybrid|threads|pickle_mix|cg|fft|ssor|hydro)\b"  # lines that are results
    files: tuple = ()              # copied to the working directory
    result_file: str = ""          # results are in this file instead of on standard output
    patience: float = 120
    interval: str = ""             # checkpoints at this interval instead of at chosen moments
    rest: float = 0                # seconds of a line until go(): its program is mix.c


CASES = {
    "lammps": Case(["lmp", "-in", "in.melt", "-log", "none", "-nocite", "-var", "steps", "300"],
                   keep=r"^\s+\d+(\s+-?[\d.]+(e[-+]\d+)?){5}\s*$", files=(ROOT / "examples" / "in.melt",)),
    "hpcc": Case(["hpcc"], keep=r"(\|\|Ax-b.*=|_residual=|maxErr=|Errors=|^Found|Validates|Success=)",
                 files=(HERE / "hpccinf.txt",), result_file="hpccoutf.txt", patience=240),
    "fortran.openmpi": Case([PROGRAMS / "heat.openmpi", "30", "8000"]),
    "fortran.mpich": Case([PROGRAMS / "heat.mpich", "30", "8000"], abi="mpich"),
    "c.openmpi": Case([PROGRAMS / "mix.openmpi", "30", "2000"], ranks=3, rest=0.1),
    "c.mpich": Case([PROGRAMS / "mix.mpich", "30", "2000"], abi="mpich", ranks=3, rest=0.1),
    "mpi4py": Case(["/usr/bin/python3", HERE.parent / "programs" / "pickle_mix.py", "30", "3000"]),
    "openmp": Case([PROGRAMS / "hybrid.openmpi", "20", "300"]),
    "threads": Case([PROGRAMS / "threads.openmpi", "10", "40", "500000"]),
    "nonpie": Case([PROGRAMS / "mix.nonpie", "30", "2000"], rest=0.1),
    "multi": Case([PROGRAMS / "mix.openmpi", "60", "2000"], rest=0.1),
    "cg.openmpi": Case([PROGRAMS / "cg.openmpi", "40", "384", "200"], interval="0.5s"),
    "cg.mpich": Case([PROGRAMS / "cg.mpich", "40", "384", "200"], abi="mpich", interval="0.5s"),
    # Four busy ranks of Open MPI take minutes natively where there are fewer cores.
    "ssor.openmpi": Case([PROGRAMS / "ssor.openmpi", "60", "64", "8", "10"]),
    "ssor.mpich": Case([PROGRAMS / "ssor.mpich", "60", "24", "12", "10"], abi="mpich", ranks=4),
    "hydro.openmpi": Case([PROGRAMS / "hydro.openmpi", "60", "192", "20"]),
    "hydro.mpich": Case([PROGRAMS / "hydro.mpich", "30", "128", "20"], abi="mpich", ranks=4),
    "fft": Case([PROGRAMS / "fft.openmpi", "30", "48", "20"], interval="0.5s"),
    "big": Case([PROGRAMS / "mix.openmpi", "30", "30000", "3072"], patience=600),
}


def results(case, lines, cwd):
    if case.result_file:
        lines = (cwd / case.result_file).read_text(errors="replace").splitlines()
        # Times, rates and dates differ from run to run.
        return [line for line in lines if re.search(case.keep, line)]
    return [line for line in lines if re.search(case.keep, line)]


def lines_of(case, job, cwd):
    """How many lines of results the job has printed; 0 when they go to a file."""
    return 0 if case.result_file else len(results(case, job.lines(), cwd))


def environment(case, cwd):
    """Its ranks rest in turns: a moment finds the others inside of MPI."""
    return harness.resting(cwd, dict(os.environ, MIX_TURNS="1")) if case.rest else None


def prepare(case, cwd):
    cwd.mkdir()
    for file in case.files:
        shutil.copy(file, cwd)


class Over(Exception):
    """The program ended before its moment came: this machine was busier during the native run."""


def take_checkpoint(case, job, reference, when, cwd, rng):
    """Waits for the line of output at fraction `when` of the run, a little longer, and takes a checkpoint.

    Returns the generation and the number of lines seen before it was asked for."""
    wanted = max(1, int(when * len(reference)))
    if case.result_file:
        time.sleep(when * case.duration)
        if job.process.poll() == 0:
            raise Over
    else:
        job.wait_until(lambda: len(results(case, job.lines(), cwd)) >= wanted, f"line {wanted} of {len(reference)}",
                       case.patience)
        time.sleep(rng.random() * (case.rest + case.duration / max(1, len(reference))))
    before = lines_of(case, job, cwd)
    # A program that appends to a file would append again what it wrote after the checkpoint (docs/limits.md): it ends
    # with the checkpoint.
    said = job.checkpoint(*(["--stop"] if case.result_file else []), timeout=case.patience)
    print(f"  checkpoint after {'?' if case.result_file else before} of {len(reference)} lines: {said['generation']}, "
          f"{said['bytes'] / 2**20:.1f} MiB, {said['seconds']:.3f} s", flush=True)
    return said["generation"], before


def continued(case, reference, cwd, mpi, generation, printed):
    """Restarts `generation`, of a moment when between printed[0] and printed[1] lines had been printed, and compares: all
    the others have to come."""
    number = int(generation.split("-")[1])
    with Job.restart(cwd, mpi=mpi, generation=number) as job:
        lines = job.finish(timeout=case.patience)
        got = results(case, lines, cwd)
        least, most = (len(reference) - lines_then for lines_then in reversed(printed))
        check(least <= len(got) <= most, f"{generation} on {mpi}: {len(got)} result lines, not {least} to {most}:\n"
              f"{job.output()[-2000:]}")
        tail = reference[len(reference) - len(got):]
        told = "sums over the ranks may differ" in job.errors()
        check(told == (mpi != case.abi and case.ranks > 2), f"{generation} on {mpi}, {case.ranks} ranks: {job.errors()}")
        check(got == tail, f"{generation} on {mpi}: results differ\n got: {got[:3]} … {got[-3:]}\nwant: {tail[:3]} … "
              f"{tail[-3:]}")
    print(f"  {generation} continued on {mpi}: {len(got)} of {len(reference)} lines, identical", flush=True)


def reference_run(case, base):
    cwd = base / "native"
    prepare(case, cwd)
    start = time.monotonic()
    lines = harness.native(case.program, case.ranks, case.abi, cwd)
    case.duration = time.monotonic() - start
    reference = results(case, lines, cwd)
    check(len(reference) > 2, f"the native run printed no results: {lines[-5:]}")
    print(f"  native: {case.duration:.1f} s, {len(reference)} lines of results", flush=True)
    return reference


def test_moments(case, base, options, rng):
    reference = reference_run(case, base)
    # Spread over the run, each at a random place of its share.
    pending = [(str(i), 0.05 + 0.75 * (i + rng.random()) / options.moments) for i in range(options.moments)]
    while pending:
        place, when = pending.pop(0)
        cwd = base / f"moment-{place}"
        shutil.rmtree(cwd, ignore_errors=True)
        prepare(case, cwd)
        with Job.run(case.program, case.ranks, cwd, env=environment(case, cwd)) as job:
            try:
                generation, before_it = take_checkpoint(case, job, reference, when, cwd, rng)
            except Over:
                pending.append((place, when / 2))
                check(when > 0.01, "the program ends before any moment")
                continue
            if case.result_file:
                job.finish(case.patience, expected=85)
            else:
                job.kill_ranks()
            printed = before_it, lines_of(case, job, cwd)
        harness.go(cwd)
        before = (cwd / case.result_file).read_bytes() if case.result_file else b""
        for mpi in options.mpi.split(","):
            if case.result_file:
                (cwd / case.result_file).write_bytes(before)
            continued(case, reference, cwd, mpi, generation, printed)


def test_multi(case, base, options, rng):
    """20 checkpoints in one run; the run itself is right; restarts from the 1st, 10th and 20th; and a restarted job
    is checkpointed and restarted again."""
    reference = reference_run(case, base)
    cwd = base / "run"
    prepare(case, cwd)
    generations = []
    with Job.run(case.program, case.ranks, cwd, extra=["--keep", "100"], env=environment(case, cwd)) as job:
        for i in range(20):
            generations.append(take_checkpoint(case, job, reference, 0.04 * i + 0.02, cwd, rng))
        harness.go(cwd)
        got = results(case, job.finish(case.patience), cwd)
        check(got == reference, "the checkpointed run itself printed something else than the native one")
    libraries = options.mpi.split(",")
    printed = [before for _, before in generations] + [len(reference)]
    for turn, i in enumerate([0, 9, 19]):
        continued(case, reference, cwd, libraries[turn % len(libraries)], generations[i][0], printed[i:i + 2])
    (cwd / "go").unlink()
    with Job.restart(cwd, mpi=libraries[-1], generation=1, extra=["--keep", "100"]) as job:
        job.wait_until(lambda: len(results(case, job.lines(), cwd)) >= 10, "ten lines after the restart")
        first = lines_of(case, job, cwd)
        again = job.checkpoint()["generation"]
        job.kill_ranks()
        # This job began somewhere between the lines of the first two generations.
        printed = printed[0] + first, printed[1] + lines_of(case, job, cwd)
    harness.go(cwd)
    for mpi in libraries:
        continued(case, reference, cwd, mpi, again, printed)


def test_interval(case, base, options, _rng):
    """Checkpoints at an interval all through the run: its own results are right, and so are those of its generations."""
    reference = reference_run(case, base)
    cwd = base / "run"
    prepare(case, cwd)
    with Job.run(case.program, case.ranks, cwd, extra=["--interval", case.interval, "--keep", "all"]) as job:
        got = results(case, job.finish(case.patience), cwd)
        check(got == reference, "the checkpointed run itself printed something else than the native one")
    generations = sorted(path.name for path in (cwd / "ckpt").glob("gen-*"))
    check(generations, f"no checkpoint in {cwd}/ckpt")
    print(f"  {len(generations)} checkpoints, {case.interval} apart: results identical", flush=True)
    for mpi, generation in zip(options.mpi.split(","), (generations[len(generations) // 2], generations[0])):
        continued(case, reference, cwd, mpi, generation, (0, len(reference)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("--moments", type=int, default=1)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--mpi", default="openmpi,mpich")
    options = parser.parse_args()
    case = CASES[options.case]
    print(f"{options.case}: seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    test = test_multi if options.case == "multi" else test_interval if case.interval else test_moments

    def run():
        with Scratch(options.case) as base:
            test(case, base, options, rng)

    return harness.verdict(options.case, run)


if __name__ == "__main__":
    sys.exit(main())
