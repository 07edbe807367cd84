#!/usr/bin/env python3
"""mpi4py's own test suite, native and under Fermata: the same pass, skip and fail? Of the version that the system has: 3.1.4 on
Debian 12, 4.0.3 on 13.

    mpi4py_suite.py build                     source from PyPI; for MPICH also a build of mpi4py (Debian's is for Open MPI)
    mpi4py_suite.py run --mpi openmpi -n 2 [--interval 0.3s [--rest 0.02]] [-i test_p2p ...]

Each test file is a run of its own, so that a crash costs one file. Tests are compared one by one; differences.json says
which may differ, and why. Everything stays in --where (FERMATA_SUITES or
~/.cache/fermata-suites). Left out: test_spawn, at which Open MPI itself stands still
now and then (docs/internals/objects.md).
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import suites
from suites import say

SYSTEMS_PYTHON = "/usr/bin/python3"  # with Debian's mpi4py
LEFT_OUT = {"test_spawn", "test_doc"}
# What counts when ranks do not agree: the later.
ORDER = ["ok", "skip", "expected", "missing", "fail"]


def version():
    done = subprocess.run([SYSTEMS_PYTHON, "-c", "import importlib.metadata; print(importlib.metadata.version('mpi4py'))"], capture_output=True,
                          text=True, check=False)
    suites.check(done.returncode == 0, f"{SYSTEMS_PYTHON} has no mpi4py: apt-get install python3-mpi4py")
    return done.stdout.strip()


def is_old(which):
    return which.startswith("3.")


def source(where):
    which = version()

    def make(part):
        suites.must([where / "mpi4py-venv/bin/pip", "download", "-q", "--no-binary", ":all:", "--no-deps",
                     "--no-build-isolation", "-d", ".", f"mpi4py=={which}"], part, "pip download mpi4py")
        suites.must(["tar", "xf", next(part.glob("mpi4py-*.tar.gz"))], part, "unpacking")

    return suites.checkout(where, f"mpi4py-source-{which}", make) / f"mpi4py-{which}"


def build(where):
    venv = where / "mpi4py-venv"
    if not (venv / "bin/pip").exists():
        suites.must([SYSTEMS_PYTHON if not is_old(version()) else sys.executable, "-m", "venv", venv], where, "venv")
    tools = ["setuptools<70", "cython==0.29.36"] if is_old(version()) else ["setuptools", "build", "cython>=3,<3.2"]
    suites.must([venv / "bin/pip", "install", "-q", "wheel", "numpy", *tools], where, "build tools")
    tree = source(where)
    suites.must(["env", "MPICC=mpicc.mpich", venv / "bin/pip", "install", "-q", "--no-build-isolation", "--no-deps",
                 next(tree.parent.glob("mpi4py-*.tar.gz"))], where, "building mpi4py for MPICH", timeout=1200)


def program(options, tree, name, results):
    python = SYSTEMS_PYTHON if options.mpi == "openmpi" else options.where / "mpi4py-venv/bin/python"
    # Our python imports the installed mpi4py, not the source tree's empty one.
    # Version 4's asks files for the name, version 3's modules.
    return [python, pathlib.Path(__file__).with_name("mpi4py_rank.py"), results, tree / "test/runtests.py",
            "--no-builddir", "-v", "-i", f"{name}$" if is_old(version()) else rf"^{name}\.py$"]


def once(options, tree, name, how):
    """(exit code, {test: [outcome, what was said]}, what Fermata and the ranks said, checkpoints)"""
    with tempfile.TemporaryDirectory(prefix="fermata-suite-") as scratch:
        results = pathlib.Path(scratch) / "results"
        words = program(options, tree, name, results)
        if how == "native":
            run = suites.native(options.mpi, options.ranks, words, tree / "test", options.limit)
        else:
            run = suites.fermata(options.mpi, options.ranks, words, tree / "test", options.limit * 2, {"MPI4PY_REST": str(options.rest)},
                                 options.interval)
        found = {}
        for rank in range(options.ranks):
            path = results.with_suffix(f".{rank}")
            if not path.exists():
                found[f"rank {rank}"] = ["missing", "did not begin"]
                continue
            for line in path.read_text().splitlines():
                test, outcome, said = json.loads(line)
                if test not in found or ORDER.index(outcome) > ORDER.index(found[test][0]):
                    found[test] = [outcome, said]
        found["exit code"] = [str(run.code), ""]
        return {"outcomes": found, "notes": run.notes[-4:] + run.errors[-8:], "checkpoints": run.checkpoints}


def run(options):
    where = options.where
    tree = source(where)
    names = sorted(path.stem for path in (tree / "test").glob("test_*.py") if path.stem not in LEFT_OUT)
    if options.include:
        names = [name for name in names if any(word in name for word in options.include)]
    names = names[options.skip:][:options.count]
    memory = where / f"mpi4py-{version()}-native.{options.mpi}.{options.ranks}.json"
    natives = json.loads(memory.read_text()) if memory.exists() else {}
    expected = suites.Expected("mpi4py", options.mpi, options.ranks)
    sums, started, different, checkpoints = collections.Counter(), time.monotonic(), [], 0
    for name in names:
        if name not in natives or options.again:
            natives[name] = once(options, tree, name, "native")
            memory.write_text(json.dumps(natives))
        want = natives[name]["outcomes"]
        got = once(options, tree, name, "fermata")
        checkpoints += got["checkpoints"]
        unlike = []
        for test in sorted({*want, *got["outcomes"]}):
            theirs, _ = want.get(test, ["missing", ""])
            ours, said = got["outcomes"].get(test, ["missing", ""])
            if test != "exit code" and theirs != "missing":
                sums["tests"] += 1
                sums[f"native {theirs}"] += 1
            if ours == theirs:
                sums["same"] += test != "exit code"
                continue
            reason = expected.reason(f"{name}: {test}", theirs, ours)
            sums["listed" if reason else "different"] += test != "exit code"
            if options.verbose or not reason:
                say(f"{'listed    ' if reason else 'DIFFERENT '} {name}: {test}: {ours}, native {theirs}; {reason or said}")
            if not reason:
                unlike.append(test)
        if unlike:
            different.append(name)
            for line in got["notes"]:
                say(f"           {line[:200]}")
        elif options.verbose:
            say(f"as native  {name}: {len(want) - 1} tests, {got['checkpoints']} checkpoints")
    say("\n| files | " + " | ".join(sums) + " | checkpoints |\n|" + " --- |" * (len(sums) + 2))
    say(f"| {len(names)} | " + " | ".join(map(str, sums.values())) + f" | {checkpoints} |")
    say(f"{options.mpi}, {options.ranks} ranks, {time.monotonic() - started:.0f} s; different and not listed: "
        f"{', '.join(different) or 'none'}")
    expected.say_unseen(whole=not options.include and not options.skip and options.count is None)
    return 1 if different else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["build", "run"])
    parser.add_argument("--where", type=pathlib.Path, default=suites.WHERE)
    parser.add_argument("--mpi", default="openmpi", choices=["openmpi", "mpich"])
    parser.add_argument("-n", "--ranks", type=int, default=1)
    parser.add_argument("-i", "--include", action="append")
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--count", type=int, help="of the files, to run them in pieces")
    parser.add_argument("--interval", help="a checkpoint every so often")
    parser.add_argument("--rest", type=float, default=0, help="seconds after each test, so that there is time for checkpoints")
    parser.add_argument("--again", action="store_true", help="run natively again")
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    options.where = options.where.resolve()
    options.where.mkdir(parents=True, exist_ok=True)
    if options.command == "build":
        build(options.where)
        return 0
    return run(options)


if __name__ == "__main__":
    suites.main(main)
