#!/usr/bin/env python3
"""Every MPI function called for real: natively, under Fermata, and the two logs compared line by line.

    conformance_test.py run LIBRARY            the library the program is built for, also below
    conformance_test.py run LIBRARY OTHER      … with OTHER below: compared with the native run of the first

A line that differs has to be explained by differences.json, with a reason. Where a library lacks a function, the lines of
MPICH's native run stand for what is expected.
"""
import difflib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
import harness  # noqa: E402
from harness import BUILD, FERMATA, Failure, check  # noqa: E402

RANKS = 2
PATIENCE = 120
# The recorder mentions MPI_Init_thread, the programs do not call it.
ENVIRONMENT = {"FERMATA_THREADS": "one"}
# Open MPI 4.1.4 without RDMA natively: its component rdma crashes in MPI_Compare_and_swap, ucx makes no windows.
NATIVE = {"OMPI_MCA_osc": "^rdma,ucx"}


def program(library):
    return BUILD / "tests" / "conformance" / f"conformance.{library}"


def execute(words, cwd, more=()):
    env = dict(os.environ, **ENVIRONMENT, **dict(more))
    try:
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, errors="replace", timeout=PATIENCE, cwd=cwd,
                              stdin=subprocess.DEVNULL, env=env)
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{words} did not end in {PATIENCE} s") from error
    check(done.returncode == 0 and "all cases called" in done.stdout,
          f"{' '.join(map(str, words))}: exit status {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")


def native(library, cwd):
    (cwd / "scratch").mkdir(exist_ok=True)
    prefix = cwd / f"native-{library}"
    words = [f"mpiexec.{library}", "-n", RANKS] + (["--oversubscribe", "--bind-to", "none"] if library == "openmpi" else [])
    execute([*words, program(library), prefix, cwd / "scratch"], cwd, NATIVE)
    return prefix


def fermata(library, below, cwd):
    (cwd / "scratch").mkdir(exist_ok=True)
    prefix = cwd / f"fermata-{library}-{below}"
    execute([FERMATA, "run", "-n", RANKS, "--mpi", below, "--ckpt-dir", cwd / "ckpt", "--", program(library), prefix,
             cwd / "scratch"], cwd)
    return prefix


def sections(prefix, rank):
    """title -> lines"""
    found, title = {"start": []}, "start"
    for line in pathlib.Path(f"{prefix}.log.{rank}").read_text(errors="replace").splitlines():
        if line.startswith("== "):
            title = line[3:]
            found[title] = []
        else:
            found[title].append(line)
    return found


def explained(rules, library, title, want, got, used):
    for number, rule in enumerate(rules):
        if (re.fullmatch(rule.get("library", ".*"), library) and re.fullmatch(rule.get("case", ".*"), title) and
                re.fullmatch(rule["native"], want) and re.fullmatch(rule["fermata"], got)):
            used.add(number)
            return True
    return False


def compare(library, expected, got, reference, rules, used):
    """Differences nobody explained, as text. `reference`: MPICH's native run, for what `library` lacks."""
    wrong = {}
    for rank in range(RANKS):
        theirs, ours, other = sections(expected, rank), sections(got, rank), sections(reference, rank)
        check(theirs.keys() == ours.keys(), f"sections differ: {theirs.keys() ^ ours.keys()}")
        for title, want in theirs.items():
            have = ours[title]
            if any(line.endswith(" lacking") for line in want):
                # By the other library's words where this one has none.
                matcher = difflib.SequenceMatcher(None, want, other[title], autojunk=False)
                want = merged(want, other[title], matcher)
            for tag, a, b, c, d in difflib.SequenceMatcher(None, want, have, autojunk=False).get_opcodes():
                if tag == "equal":
                    continue
                left, right = want[a:b], have[c:d]
                if len(left) == len(right) and all(w == h or explained(rules, library, title, w, h, used) for w, h in zip(left, right)):
                    continue
                if explained(rules, library, title, "\n".join(left), "\n".join(right), used):
                    continue
                text = "".join(f"    native  {w}\n" for w in left) + "".join(f"    fermata {h}\n" for h in right)
                wrong.setdefault(text, []).append(f"{title} {rank}")
    return [f"{library}: {', '.join(where[:4])}{' …' if len(where) > 4 else ''}\n{text}" for text, where in wrong.items()]


def merged(want, other, matcher):
    """`want`, with what the other library says in the places where this one lacks something."""
    out = []
    for tag, a, b, c, d in matcher.get_opcodes():
        out += other[c:d] if tag == "replace" and any(line.endswith(" lacking") for line in want[a:b]) else want[a:b]
    return out


def run(library, below):
    rules = [rule for rule in json.loads((HERE / "differences.json").read_text()) if rule.get("launcher") in (None, harness.LAUNCHER)]
    with harness.Scratch(f"conformance-{library}") as cwd:
        expected = native(library, cwd)
        reference = expected if library == "mpich" else native("mpich", cwd)
        got = fermata(library, below, cwd)
        used = set()
        wrong = compare(library, expected, got, reference, rules, used)
        calls = sum(1 for lines in sections(got, 0).values() for _ in lines)
        functions = len(pathlib.Path(f"{got}.functions.0").read_text().split())
        check(not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:60]))
        return f"{functions} functions, {calls} lines of each rank, {len(used)} kinds of explained differences"


def main():
    if len(sys.argv) < 3 or sys.argv[1] != "run":
        print(__doc__)
        return 2
    library = sys.argv[2]
    below = sys.argv[3] if len(sys.argv) > 3 else library
    return harness.verdict(f"conformance {library} on {below}", lambda: run(library, below))


if __name__ == "__main__":
    sys.exit(main())
