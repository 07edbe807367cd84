#!/usr/bin/env python3
"""Debian's programs, unmodified: native, then under Fermata, checkpointed at random moments and continued on both libraries;
their results must be the native ones.

    run.py install                        apt-get install of the packages of all cases
    run.py [CASE…] [--moments N] [--seed S] [--mpi openmpi,mpich]
    run.py [CASE…] --cost [--rounds N]    native and under Fermata in turns without a checkpoint; messages and collectives

Prints the rows of docs/applications.md.
"""
import argparse
import json
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import harness
from cases import CASES
from harness import Job, Scratch, check

PATIENCE = 300
PHASES = ("targets", "converge", "freeze", "drain", "suspend", "save")


def results(case, text):
    return [re.sub(case.drop, "", line) for line in text.splitlines() if re.search(case.keep, line)]


def numbers(line):
    return [float(word) for word in re.findall(r"-?\d+\.\d+(?:[eED][+-]?\d+)?", line)]


def same(case, got, want):
    if not case.tolerance:
        return got == want
    return len(got) == len(want) and all(
        len(numbers(a)) == len(numbers(b)) and
        all(abs(x - y) <= case.tolerance * max(1, abs(y)) for x, y in zip(numbers(a), numbers(b)))
        for a, b in zip(got, want))


def native_words(case, *more):
    # As `fermata run` starts it: the launcher's own way to bind ranks.
    return [f"mpiexec.{case.abi}", "-n", str(case.ranks), *more]


def native(case, cwd, *more):
    """Seconds, and where the results are unless they are in a file."""
    start = time.monotonic()
    done = subprocess.run([*native_words(case, *more), *map(str, case.program)], cwd=cwd, capture_output=True, text=True,
                          errors="replace", timeout=PATIENCE, check=False)
    check(done.returncode == 0, f"native run: exit status {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    return time.monotonic() - start, done.stderr if case.on_stderr else done.stdout


def read(case, cwd, said):
    return results(case, (cwd / case.result_file).read_text(errors="replace") if case.result_file else said)


class Workplace:
    """A fresh directory with the inputs; can be put back to what it was, but for the checkpoints."""

    def __init__(self, case, path):
        self.path = path
        path.mkdir()
        case.prepare(path)

    def keep(self):
        self.kept = self.path.with_suffix(".kept")
        shutil.copytree(self.path, self.kept, ignore=shutil.ignore_patterns("ckpt"))

    def put_back(self):
        for entry in self.path.iterdir():
            if entry.name != "ckpt":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        shutil.copytree(self.kept, self.path, dirs_exist_ok=True)


def said_by(case, job):
    # Not what Fermata says itself, in the middle of a line of the program perhaps.
    return re.sub(r"fermata: .*\n", "", job.errors()) if case.on_stderr else job.output()


def continued(case, want, before, after, text):
    """Whether `text`, what a restarted job said, is the rest of `want`. `before` and `after` were said when the checkpoint was
    asked for and when the job ended; where it ended with the checkpoint the two parts make one."""
    if not case.kill:
        return same(case, results(case, after + text), want)
    got = results(case, text)
    least, most = (len(want) - len(results(case, said)) for said in (after, before))
    return least <= len(got) <= most and same(case, got, want[len(want) - len(got):])


def checkpoint_somewhere(case, place, duration, rng):
    """At a random moment; again at an earlier one if the program was faster. Returns what --json said of the checkpoint, and
    what the job had said when it was asked for and when it had ended."""
    latest = 0.85
    while True:
        with Job.run(case.program, case.ranks, place.path) as job:
            time.sleep(rng.uniform(0.1, latest) * duration)
            if job.process.poll() is None:
                words, before = [] if case.kill else ["--stop"], said_by(case, job)
                done = harness.call("checkpoint", "--job", job.name, "--json", "--timeout", "120s", *words, timeout=150)
                if done.returncode == 0:
                    if case.kill:
                        # Its files hold more by then than at the checkpoint.
                        time.sleep(rng.uniform(0, 0.5) * duration)
                        job.kill_ranks()
                    else:
                        check(job.end() == 85, f"stopped job: {job.process.returncode}: {job.errors()[-1000:]}")
                    return json.loads(done.stdout), before, said_by(case, job)
                check(job.end() == 0, f"checkpoint failed: {done.stderr}; the job: {job.errors()[-1000:]}")
        latest *= 0.7
        check(latest > 0.05, "the program ends before it can be checkpointed")


def moments(name, case, base, options):
    rng = random.Random(f"{name}{options.seed}")
    place = Workplace(case, base / "native")
    duration, output = native(case, place.path)
    want = read(case, place.path, output)
    check(len(want) > 1, f"the native run has no results: {output[-500:]}")
    again = Workplace(case, base / "again")
    check(same(case, read(case, again.path, native(case, again.path)[1]), want), "two native runs differ")
    print(f"{name}: native {duration:.1f} s, {len(want)} lines of results, seed {options.seed}", flush=True)
    for moment in range(options.moments):
        place = Workplace(case, base / f"moment-{moment}")
        said, before, after = checkpoint_somewhere(case, place, duration, rng)
        phases = dict(said["phases"])
        place.keep()
        for mpi in options.mpi.split(","):
            place.put_back()
            number = int(said["generation"].split("-")[1])
            with Job.restart(place.path, mpi=mpi, generation=number) as job:
                job.finish(PATIENCE)
                text = said_by(case, job)
            if case.result_file:
                good = same(case, read(case, place.path, ""), want)
            else:
                good = continued(case, want, before, after, text)
            check(good, f"{said['generation']} on {mpi}: results differ; before:\n{after[-1500:]}\nafter the restart:\n"
                  f"{text[:1500]}")
            print(f"  {said['bytes'] / 2**20:7.1f} MiB, " +
                  ", ".join(f"{p} {1000 * phases.get(p, 0):.1f} ms" for p in PHASES) +
                  f"; continued on {mpi}: the same", flush=True)
        shutil.rmtree(place.path)


def calls(case, base):
    """Messages and collectives of one run of all ranks, as Open MPI's monitoring component counts them."""
    place = Workplace(case, base / "counted")
    seconds, output = native(case, place.path, "--mca", "pml_monitoring_enable", "2", "--mca", "pml_monitoring_enable_output",
                             "2" if case.on_stderr else "1")
    sums = {}
    for kind, count in re.findall(r"^(E|O2A|A2O|A2A)\t.*?\t(\d+) msgs sent", output, re.MULTILINE):
        sums[kind] = sums.get(kind, 0) + int(count)
    others = case.ranks - 1
    collectives = (sums.get("O2A", 0) + sums.get("A2O", 0)) / others + sums.get("A2A", 0) / (others * case.ranks)
    return sums.get("E", 0), collectives, seconds


def cost(name, case, base, options):
    times = {"native": [], "fermata": []}
    for turn in range(options.rounds):
        place = Workplace(case, base / f"native-{turn}")
        times["native"].append(native(case, place.path)[0])
        place = Workplace(case, base / f"fermata-{turn}")
        start = time.monotonic()
        done = harness.call("run", "-n", case.ranks, "--", *case.program, cwd=place.path, timeout=PATIENCE)
        check(done.returncode == 0, f"under Fermata: exit status {done.returncode}: {done.stderr[-1000:]}")
        times["fermata"].append(time.monotonic() - start)
    plain, ours = (statistics.median(times[which]) for which in ("native", "fermata"))
    line = f"{name}: native {plain:.2f} s, Fermata {ours:.2f} s, ratio {ours / plain:.3f}"
    if case.abi == "openmpi":
        messages, collectives, seconds = calls(case, base)
        line += f"; {messages / seconds:.0f} messages and {collectives / seconds:.0f} collectives a second"
    print(line, flush=True)


def main():
    if sys.argv[1:] == ["install"]:
        packages = sorted({package for case in CASES.values() for package in case.packages.split()})
        return subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", *packages], check=False).returncode
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--moments", type=int, default=5)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--mpi", default="openmpi,mpich")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    unknown = set(options.cases) - set(CASES)
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    bad = 0
    for name in options.cases or CASES:
        def run(name=name):
            with Scratch(name) as base:
                (cost if options.cost else moments)(name, CASES[name], base, options)
        bad |= harness.verdict(name, run)
    return bad


if __name__ == "__main__":
    sys.exit(main())
