#!/usr/bin/env python3
"""What a call says that has to write a result, or read a handle, through NULL.

    nulls.py measure > mpi/nulls.json   natively, on both libraries: where it is not MPI_ERR_ARG
    nulls.py run LIBRARY                under Fermata: the same error classes; where the library crashes, MPI_ERR_ARG

The conformance program tries every such place once, before the call it belongs to. A library that crashes, hangs or takes
the NULL ends that run; the next one leaves the place out.
"""
import collections
import json
import pathlib
import sys

import conformance_test
from conformance_test import ENVIRONMENT, HERE, NATIVE, RANKS

sys.path.insert(0, str(HERE.parent / "suites"))
import harness  # noqa: E402
import suites  # noqa: E402
from harness import FERMATA, check  # noqa: E402

API = HERE.parents[1] / "mpi" / "nulls.json"
CRASHES = "crash"


def once(words, cwd, skip, limit, more=()):
    """One run of the program: its exit code, {place: error class or CRASHES} in order, what it said."""
    prefix = cwd / "nulls"
    came = prefix.with_suffix(".came")
    came.unlink(missing_ok=True)
    prefix.with_suffix(".skip").write_text("".join(f"{place}\n" for place in skip))
    code, _, err = suites.execute(words, cwd, limit, {**ENVIRONMENT, **NATIVE, "REC_NULLS": prefix, **dict(more)})
    found = {}
    for line in came.read_text().splitlines() if came.exists() else []:
        function, parameter, *word = line.split()
        found[f"{function} {parameter}"] = word[0] if word else CRASHES
    # Only ever tried before calls that failed for other reasons.
    found = {place: word for place, word in found.items() if word != "again"}
    return code, found, err


def program(library, cwd):
    (cwd / "scratch").mkdir(exist_ok=True)
    return [conformance_test.program(library), cwd / "log", cwd / "scratch"]


def measure(library):
    """{place: error class}, natively."""
    known, barren = {}, 0
    with harness.Scratch(f"nulls-{library}") as cwd:
        while True:
            code, found, err = once([*suites.native_words(library, RANKS), *program(library, cwd)], cwd, known, 20)
            known.update(found)
            print(f"{library}: {len(known)} places, exit status {code}", file=sys.stderr, flush=True)
            if code == 0:
                return known
            # Open MPI's mpiexec does not always survive a crash, nor come up after it.
            barren = 0 if found else barren + 1
            check(barren < 3, f"{library}: ended with {code} before anything was tried:\n{err[-1000:]}")


def measured():
    rows = {}
    for library in ("openmpi", "mpich"):
        classes = collections.defaultdict(list)
        for place, name in measure(library).items():
            if name not in ("ERR_ARG", CRASHES):
                classes[name].append(place)
        rows[library] = {name: sorted(places) for name, places in sorted(classes.items())}
    return json.dumps(rows, indent=1) + "\n"


def run(library):
    rows = json.loads(API.read_text())[library]
    theirs = {place: name for name, places in rows.items() for place in places}
    with harness.Scratch(f"nulls-{library}") as cwd:
        words = [FERMATA, "run", "-n", RANKS, "--mpi", library, "--ckpt-dir", cwd / "ckpt", "--", *program(library, cwd)]
        code, found, err = once(words, cwd, [], harness.PATIENCE, {"REC_NULLS_ALL": "1"})
        wrong = [f"{place}: {name}, natively {theirs.get(place, 'ERR_ARG')}" for place, name in found.items()
                 if name != theirs.get(place, "ERR_ARG")]
        wrong += [f"{place}: not tried, natively {name}" for place, name in theirs.items() if place not in found]
        check(code == 0 and not wrong, f"exit status {code}; {len(wrong)} differ:\n" + "\n".join(wrong[:40]) + f"\n{err[-1500:]}")
        return f"{len(found)} places, {len(theirs)} with an answer of their own"


def main():
    if sys.argv[1:] == ["measure"]:
        sys.stdout.write(measured())
        return 0
    if len(sys.argv) != 3 or sys.argv[1] != "run":
        print(__doc__)
        return 2
    return harness.verdict(f"nulls {sys.argv[2]}", lambda: run(sys.argv[2]))


if __name__ == "__main__":
    sys.exit(main())
