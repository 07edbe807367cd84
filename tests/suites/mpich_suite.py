#!/usr/bin/env python3
"""MPICH's own test suite, native and under Fermata: the same results?

    mpich_suite.py build                          fetch the source (apt) and build with mpicc.mpich
    mpich_suite.py run [--interval 0.2s] [...]    run every program natively (remembered) and under Fermata; table, differences
    mpich_suite.py run --only pt2pt/mprobe        only programs whose name contains this

differences.json says which programs may differ, and why. Everything stays in --where (default $FERMATA_SUITES or
~/.cache/fermata-suites). Programs asking for more than --ranks ranks are left out, and variants of one that differ only in
variables for MPICH's algorithms unless --all.
"""
import argparse
import collections
import json
import pathlib
import shlex
import subprocess
import sys
import time

import restarts
import suites
from suites import Failure, say

VERSION = "4.0.2"
FOLDERS = """attr basic coll comm datatype errhan errors f08 f77 f90 group info init io part pt2pt rma threads
topo""".split()
# Nothing of these is for Fermata: what MPICH says of itself, dynamic processes, its own extensions for failures.
LEFT_OUT = {"spawn", "mpi_t", "perf", "impls", "ft", "faults", "cxx"}

Test = collections.namedtuple("Test", "folder name ranks args env limit memory")


def source(where):
    def make(part):
        sources = part / "sources.list"
        sources.write_text("deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
                           "http://deb.debian.org/debian bookworm main\n")
        for folder in ("lists/partial", "cache/archives/partial"):
            (part / folder).mkdir(parents=True)
        apt = ["apt-get", "-q", "-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=/dev/null", "-o",
               f"Dir::State::lists={part}/lists", "-o", f"Dir::Cache={part}/cache"]
        suites.must([*apt, "update"], part, "apt-get update")
        suites.must([*apt, "source", "--download-only", "mpich"], part, "apt-get source mpich")
        archive = next(part.glob("mpich_*.orig.tar.*"))
        suites.must(["tar", "xf", archive, "--wildcards", "*/test/mpi"], part, "unpacking")

    return next(suites.checkout(where, f"mpich-source", make).glob("mpich-*/test/mpi"))


def build(where, mpi):
    tree = source(where)
    target = where / f"mpich-tests.{mpi}"
    if not (target / "Makefile").exists():
        target.mkdir(parents=True, exist_ok=True)
        suites.must([tree / "configure", "--with-mpi=/usr", "--disable-cxx", "--disable-spawn",
                     "--disable-dependency-tracking", "--enable-fortran=f77,f90,f08", f"CC=mpicc.{mpi}",
                     f"MPICC=mpicc.{mpi}", f"F77=mpif77.{mpi}", f"MPIF77=mpif77.{mpi}",
                     f"FC=mpif90.{mpi}", f"MPIFC=mpif90.{mpi}"], target, "configure")
        # mpi_f08 is asked for inside MPICH's own tree only; here configure's answers are turned.
        status = target / "config.status"
        text = status.read_text()
        for answer, old, new in (("HAS_F08_TRUE", "#", ""), ("HAS_F08_FALSE", "", "#"), ("f08dir", "#", "f08")):
            text = text.replace(f'S["{answer}"]="{old}"', f'S["{answer}"]="{new}"')
        status.write_text(text)
        suites.must([status], target, "config.status")
    for folder in ["util", "dtpools", *FOLDERS]:
        if (target / folder).is_dir():
            # Some programs do not build with some libraries: they are then missing natively too, and are said so.
            code, _, err = suites.execute(["make", "-k", "-j2", "-C", folder], target, 1200)
            say(f"built {folder}" + ("" if code == 0 else f" (make: {code})"))


def tests_of(target, folder, ranks, everything):
    """The programs a testlist names, its folders included; the generated list and those for particular tests."""
    seen, found = set(), []
    listing = target / folder / "testlist"
    if not listing.exists():  # out-of-tree builds have generated lists only
        listing = source(target.parent) / folder / "testlist"
    if not listing.exists():
        return found
    for line in listing.read_text().splitlines():
        words = line.split("#")[0].split()
        if not words or words[0].startswith("!"):
            continue
        name = words[0]
        if (target / folder / name).is_dir() or (source(target.parent) / folder / name).is_dir():
            if name not in LEFT_OUT:
                found += tests_of(target, f"{folder}/{name}", ranks, everything)
            continue
        number = int(words[1]) if len(words) > 1 and words[1].isdigit() else 2
        options = collections.defaultdict(list)
        for word in words[1:]:
            key, equals, value = word.partition("=")
            if equals:
                options[key].append(value)
        test = Test(folder, name, number, tuple(options["arg"]), tuple(options["env"]),
                    float(options["timeLimit"][0]) if options["timeLimit"] else 180.0,
                    float(options["mem"][0]) if options["mem"] else 0.0)
        key = test[:4] + ((test.env,) if everything else ())
        if number <= ranks and key not in seen:
            seen.add(key)
            found.append(test)
    return found


def label(test):
    return " ".join([f"{test.folder}/{test.name}", str(test.ranks), *test.args, *test.env])


def verdict(run):
    """MPICH's own: 'No Errors' and nothing else."""
    if run.code is None:
        return "time"
    good = run.code == 0 and any(line.strip().lower() in ("no errors", "test passed") for line in run.lines)
    return "pass" if good else "fail"


def once(test, target, how, options):
    cwd = target / test.folder
    program = [cwd / test.name, *test.args]
    env = dict(word.split("=", 1) for word in test.env)
    limit = min(test.limit, options.limit)
    mpi = options.mpi
    if how == "native":
        return suites.native(options.built, test.ranks, program, cwd, limit, env)
    if options.restart:
        return restarts.run(mpi, test.ranks, program, cwd, limit, env, options)
    return suites.fermata(mpi, test.ranks, program, cwd, limit + 15, env, options.interval, options.preload)


def run(options):
    where = options.where
    target = where / f"mpich-tests.{options.built}"
    if not target.exists():
        raise Failure(f"{target} is not there; first: {sys.argv[0]} build")
    memory = where / f"mpich-native.{options.built}.json"
    natives = json.loads(memory.read_text()) if memory.exists() else {}
    tests = [test for folder in options.folders for test in tests_of(target, folder, options.ranks, options.all)]
    tests = [test for test in tests if options.only in label(test)][options.skip:][:options.count]
    expected = suites.Expected("mpich", options.mpi, options.ranks)
    counts = collections.defaultdict(collections.Counter)
    started, checkpoints, worse = time.monotonic(), 0, []
    for test in tests:
        row, name = counts[test.folder.split("/")[0]], label(test)
        row["programs"] += 1
        if test.memory > options.memory or not (target / test.folder / test.name).exists():
            row["not run"] += 1
            say(f"not run    {name}: " + ("needs memory" if test.memory > options.memory else "does not build"))
            continue
        if name not in natives or options.again:
            natives[name] = once(test, target, "native", options).record()
            memory.write_text(json.dumps(natives))
        want = suites.Run.of(natives[name])
        got = once(test, target, "fermata", options)
        checkpoints += got.checkpoints
        found = suites.differences(want, got)
        if found and options.retry:
            # A native failure may be chance: ask both once more before blaming anybody.
            want = once(test, target, "native", options)
            got = once(test, target, "fermata", options)
            found = suites.differences(want, got)
            if not found:
                say(f"chance     {name}: equal at the second time")
        came = f"{verdict(want)}->{verdict(got)}"
        reason = expected.reason(name, verdict(want), verdict(got)) if found else None
        row["same" if not found else "listed" if reason else came] += 1
        row["checkpoints"] += got.checkpoints
        row["restarts"] += getattr(got, "held", False)
        if found and not reason:
            worse.append(name)
            say(f"DIFFERENT  {name}: native {verdict(want)}, under Fermata {verdict(got)}")
            for line in found + got.notes[:3]:
                say(f"           {line[:200]}")
        elif found:
            say(f"listed     {name}: {came}; {reason}")
        elif options.verbose:
            say(f"{verdict(got)}       {name}" + "".join(f"\n           {line[:200]}" for line in got.notes[:3]))
    columns = sorted({key for row in counts.values() for key in row}, key=lambda key: (key != "programs", key))
    say("\n| folder | " + " | ".join(columns) + " |\n|" + " --- |" * (len(columns) + 1))
    total = collections.Counter()
    for folder, row in counts.items():
        total += row
        say(f"| {folder} | " + " | ".join(str(row[key]) for key in columns) + " |")
    say("| all | " + " | ".join(str(total[key]) for key in columns) + " |")
    say(f"{time.monotonic() - started:.0f} s, {checkpoints} checkpoints; different and not listed: "
        f"{', '.join(worse) or 'none'}")
    expected.say_unseen(whole=not options.only and not options.skip and options.count is None
                        and options.folders == FOLDERS)
    return 1 if worse else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["build", "run", "list"])
    parser.add_argument("--where", type=pathlib.Path, default=suites.WHERE)
    parser.add_argument("--built", default="mpich", help="the library the programs are built with")
    parser.add_argument("--mpi", default="mpich", help="the library below Fermata")
    parser.add_argument("--folders", type=lambda text: text.split(","), default=FOLDERS)
    parser.add_argument("--only", default="")
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--count", type=int)
    parser.add_argument("--all", action="store_true", help="also variants that differ in variables for MPICH only")
    parser.add_argument("--again", action="store_true", help="run natively again")
    parser.add_argument("--retry", action="store_true", help="on a difference run both once more")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--memory", type=float, default=2.0, help="leave out what says it needs more GB")
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--interval", help="a checkpoint every so often")
    parser.add_argument("--restart", action="store_true", help="stop with a checkpoint at a random moment, restart, compare")
    parser.add_argument("--spread", type=float, default=0.4, help="the moment: up to so many seconds after the start")
    parser.add_argument("--restart-mpi", default=None, help="restart on this library")
    parser.add_argument("--preload", help="a profiling library that the program preloads")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    options.where = options.where.resolve()
    options.where.mkdir(parents=True, exist_ok=True)
    if options.command == "build":
        build(options.where, options.built)
        return 0
    if options.command == "list":
        target = options.where / f"mpich-tests.{options.built}"
        for folder in options.folders:
            for test in tests_of(target, folder, options.ranks, options.all):
                say(label(test))
        return 0
    return run(options)


if __name__ == "__main__":
    suites.main(main)
