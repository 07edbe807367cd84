#!/usr/bin/env python3
"""mpi4py's own test suite (3.1.4), native and under Fermata: the same pass, skip and fail?

    mpi4py_suite.py build                     source from PyPI; for MPICH also a build of mpi4py (Debian's is for Open MPI)
    mpi4py_suite.py run --mpi openmpi -n 2 [--interval 0.3s] [-i test_p2p ...]

Each test file is a run of its own, so that a crash costs one file. Everything stays in --where (FERMATA_SUITES or
~/.cache/fermata-suites). Left out: test_spawn and test_dynproc (dynamic processes).
"""
import argparse
import collections
import json
import pathlib
import re
import sys
import time

import suites
from suites import Failure, say

VERSION = "3.1.4"
LEFT_OUT = {"test_spawn", "test_dynproc", "test_doc"}


def source(where):
    def make(part):
        suites.must([where / "mpi4py-venv/bin/pip", "download", "-q", "--no-binary", ":all:", "--no-deps",
                     "--no-build-isolation", "-d", ".", f"mpi4py=={VERSION}"], part, "pip download mpi4py")
        suites.must(["tar", "xf", next(part.glob("mpi4py-*.tar.gz"))], part, "unpacking")

    return suites.checkout(where, "mpi4py-source", make) / f"mpi4py-{VERSION}"


def build(where):
    venv = where / "mpi4py-venv"
    if not (venv / "bin/pip").exists():
        suites.must([sys.executable, "-m", "venv", venv], where, "venv")
    suites.must([venv / "bin/pip", "install", "-q", "wheel", "setuptools<70", "cython==0.29.36", "numpy"], where,
                "build tools")
    tree = source(where)
    suites.must(["env", "MPICC=mpicc.mpich", venv / "bin/pip", "install", "-q", "--no-build-isolation", "--no-deps",
                 next(tree.parent.glob("mpi4py-*.tar.gz"))], where, "building mpi4py for MPICH", timeout=1200)


def program(options, tree, name):
    python = "/usr/bin/python3" if options.mpi == "openmpi" else options.where / "mpi4py-venv/bin/python"
    # Our python imports the installed mpi4py, not the source tree's empty one.
    return [python, tree / "test/runtests.py", "--no-builddir", "-v", "-i", f"{name}$"]


def results(run):
    """{test: outcome} of one rank's unittest output; ranks say the same thing at the same time, so the worst counts."""
    order = ["ok", "skip", "expected", "fail"]
    found = {}
    text = "\n".join(run.lines + run.errors)
    for test, outcome in re.findall(r"(test\w+ \([\w.]+\))[^\n]*? \.\.\. (ok|skipped|expected failure|FAIL|ERROR)", text):
        word = {"ok": "ok", "skipped": "skip", "expected failure": "expected"}.get(outcome, "fail")
        found[test] = max(found.get(test, "ok"), word, key=order.index)
    return found


def totals(run):
    """What unittest says at the end: how many ran, and how it went, the worst of the ranks."""
    text = "\n".join(run.lines + run.errors)
    ran = max([int(n) for n in re.findall(r"Ran (\d+) tests?", text)] or [0])
    ends = re.findall(r"^(OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$", text, re.MULTILINE)
    skipped = max([int(n) for _, said in ends for n in re.findall(r"skipped=(\d+)", said)] or [0])
    failed = max([sum(int(n) for n in re.findall(r"(?:failures|errors)=(\d+)", said)) for _, said in ends] or [0])
    return ran, skipped, failed


def failing(run):
    return sorted(set(re.findall(r"^(?:FAIL|ERROR): (\S+ \(.*\))", "\n".join(run.lines + run.errors), re.MULTILINE)))


def run(options):
    where = options.where
    tree = source(where)
    names = sorted(path.stem for path in (tree / "test").glob("test_*.py") if path.stem not in LEFT_OUT)
    if options.include:
        names = [name for name in names if any(word in name for word in options.include)]
    memory = where / f"mpi4py-native.{options.mpi}.{options.ranks}.json"
    natives = json.loads(memory.read_text()) if memory.exists() else {}
    sums, started, different, checkpoints = collections.Counter(), time.monotonic(), [], 0
    for name in names:
        words = program(options, tree, name)
        if name not in natives or options.again:
            natives[name] = suites.native(options.mpi, options.ranks, words, tree / "test", options.limit).record()
            memory.write_text(json.dumps(natives))
        want = suites.Run.of(natives[name])
        got = suites.fermata(options.mpi, options.ranks, words, tree / "test", options.limit * 2, None,
                             options.interval)
        checkpoints += got.checkpoints
        ours, theirs = (got.code, *totals(got)), (want.code, *totals(want))
        sums["files"] += 1
        sums["tests"] += theirs[1]
        sums["skipped"] += theirs[2]
        sums["failed natively"] += theirs[3]
        same = ours == theirs and failing(got) == failing(want)
        sums["equal files" if same else "different files"] += 1
        if same:
            sums["equal tests"] += theirs[1]
            if options.verbose:
                say(f"equal      {name}: {theirs[1]} run, {theirs[2]} skipped, {theirs[3]} failed; "
                    f"{got.checkpoints} checkpoints")
            continue
        different.append(name)
        say(f"DIFFERENT  {name}: (exit code, run, skipped, failed) {ours}, native {theirs}")
        for test in sorted(set(failing(got)) ^ set(failing(want)))[:12]:
            say(f"           {'fails here' if test in failing(got) else 'fails natively'}: {test}")
        if got.code != want.code or options.verbose:
            for line in got.notes[-4:] + got.errors[-6:]:
                say(f"           {line[:200]}")
    say("\n| " + " | ".join(sums) + " | checkpoints |\n|" + " --- |" * (len(sums) + 1))
    say("| " + " | ".join(map(str, sums.values())) + f" | {checkpoints} |")
    say(f"{options.mpi}, {options.ranks} ranks, {time.monotonic() - started:.0f} s; different: "
        f"{', '.join(different) or 'none'}")
    return 1 if different else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["build", "run"])
    parser.add_argument("--where", type=pathlib.Path, default=suites.WHERE)
    parser.add_argument("--mpi", default="openmpi", choices=["openmpi", "mpich"])
    parser.add_argument("-n", "--ranks", type=int, default=1)
    parser.add_argument("-i", "--include", action="append")
    parser.add_argument("--interval", help="a checkpoint every so often")
    parser.add_argument("--again", action="store_true", help="run natively again")
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    options.where = options.where.resolve()
    if options.command == "build":
        build(options.where)
        return 0
    return run(options)


if __name__ == "__main__":
    suites.main(main)
