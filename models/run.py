#!/usr/bin/env python3
"""Checks the Promela models with SPIN: `run.py [--all] [--only NAME]`.

Each case names a model, its switches and what SPIN must find: nothing, or the fault that the switch plants. A model
that no longer notices a planted fault is as wrong as one that fails. Memory (1 GB) and time are bounded.
"""
import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HOLDS, ASSERTION, DEADLOCK = "holds", "assertion violated", "invalid end state"

# (model, switches, expectation, in CI)
CASES = [
    ("convergence", "", HOLDS, True),
    ("convergence", "SYNC", HOLDS, False),
    ("convergence", "NODEMAND", DEADLOCK, True),
    ("convergence", "NOVERSION", ASSERTION, True),
    ("convergence", "OPENGATE", DEADLOCK, False),
    ("gate", "", HOLDS, True),
    ("gate", "NOFENCE", ASSERTION, False),
    ("gate", "OWNFENCE", ASSERTION, True),
    ("gate", "LOOKFIRST", ASSERTION, False),
    ("gate", "ORDER", ASSERTION, False),
    ("creation", "", HOLDS, True),
    ("creation", "FORGET", DEADLOCK, True),
    ("creation", "LATE", ASSERTION, False),
    ("restart", "", HOLDS, True),
    ("restart", "NOPULL", DEADLOCK, False),
    ("restart", "SUMEARLY", ASSERTION, False),
    ("restart", "NOREISSUE", DEADLOCK, False),
    ("restart", "REISSUEALL", ASSERTION, True),
    ("free", "", HOLDS, True),
    ("free", "NOBARRIER", ASSERTION, False),
    ("finalize", "", HOLDS, True),
    ("finalize", "EARLY", ASSERTION, False),
    ("finalize", "NOHOLD", ASSERTION, False),
    ("replay", "", HOLDS, True),
    ("replay", "NOCOMMIT", ASSERTION, False),
    ("replay", "NOSUPPRESS", ASSERTION, False),
    ("replay", "TRUNCACTUAL", DEADLOCK, False),
    ("replay", "RMAX", DEADLOCK, True),
    ("replay", "NOLOG", DEADLOCK, False),
    ("replay", "NORESEND", DEADLOCK, False),
    ("redo", "", HOLDS, True),
    ("redo", "ENTERED", ASSERTION, False),
    ("redo", "INPUTS", ASSERTION, False),
    ("redo", "NODEBT", DEADLOCK, False),
    ("redo", "NOTBINDING", ASSERTION, True),
    ("redo", "CUTACTUAL", ASSERTION, False),
    ("redo", "PASTRING", DEADLOCK, False),
]
MEMORY_MB = 1024


def bounded():
    resource.setrlimit(resource.RLIMIT_AS, (2 * MEMORY_MB << 20, 2 * MEMORY_MB << 20))


def check(here, model, switch, seconds):
    """Returns (what SPIN found, states)."""
    work = tempfile.mkdtemp(prefix="fermata-model-")
    try:
        defines = [f"-D{switch}"] if switch else []
        subprocess.run(["spin", "-a", *defines, os.path.join(here, model + ".pml")], cwd=work, check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
        subprocess.run(["gcc", "-O1", "-w", "-DSAFETY", "-DNOFAIR", f"-DMEMLIM={MEMORY_MB}", "-o", "pan", "pan.c"],
                       cwd=work, check=True, timeout=300)
        out = subprocess.run(["./pan", "-m200000", "-n"], cwd=work, timeout=seconds, text=True, capture_output=True,
                             preexec_fn=bounded).stdout
    finally:
        shutil.rmtree(work)
    states = re.search(r"(\d+) states, stored", out)
    states = int(states.group(1)) if states else 0
    if re.search(r"^pan:\d+: invalid end state", out, re.M):
        return DEADLOCK, states
    if re.search(r"^pan:\d+: assertion violated", out, re.M):
        return ASSERTION, states
    if re.search(r"errors: 0\b", out) and "max search depth too small" not in out and "out of memory" not in out:
        return HOLDS, states
    return "no verdict:\n" + out, states


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--all", action="store_true", help="also the cases that CI leaves out")
    options.add_argument("--only", help="one model")
    options.add_argument("--seconds", type=int, default=300, help="limit of one search")
    options = options.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    bad = 0
    for model, switch, expected, in_ci in CASES:
        if not (options.all or options.only or in_ci) or (options.only and options.only != model):
            continue
        start = time.time()
        try:
            found, states = check(here, model, switch, options.seconds)
        except subprocess.TimeoutExpired as error:
            found, states = f"no verdict: {error}", 0
        verdict = "ok " if found == expected else "BAD"
        bad += found != expected
        wanted = "" if found == expected else f" (expected: {expected})"
        print(f"{verdict} {model:12} {switch:10} {found}{wanted}, {states} states, {time.time() - start:.1f} s",
              flush=True)
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
