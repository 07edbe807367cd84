#!/usr/bin/env python3
"""The rule of docs/process-state.md: every kind of state is restored, or warned of by name, or refused.

A program that owns one of everything (tests/programs/everything.c) describes all its state as the kernel tells it: before
a checkpoint, after it, and after a restart. After the checkpoint nothing may differ; after the restart only what a warning
of the checkpoint or of the restart has named. What is refused: one program each.

    everything_test.py state|refused openmpi|mpich
"""
import os
import re
import sys

import harness
from harness import PROGRAMS, Job, Scratch, call, check

# Lines that may differ after a restart, and the warning that must be there then; fd and its number are in both.
NAMED = [
    (r"fd (\d+) waits: ", r"descriptor {0}: a message for .* are gone"),
    (r"fd (\d+) address: ", r"descriptor {0}: a socket of family 16 comes back without its state"),
    (r"fd (\d+) ", r"descriptor {0} \(anon_inode:\[?fanotify\]?\) cannot be saved"),
    (r"fd (\d+) ", r"descriptor {0}: device /dev/p(ts/)?tmx is opened again"),
    (r"keyring: ", r"thread one-of-all has a keyring of its process"),
]


def description(cwd, when, rank):
    """Lines as name -> values: a name may come more than once."""
    lines = {}
    for line in (cwd / f"{when}.{rank}").read_text(errors="replace").splitlines():
        name, _, value = line.partition(": ")
        lines.setdefault(name, []).append(value)
    return lines


def differences(before, after, warnings):
    found = []
    for name in sorted(set(before) | set(after)):
        one, other = sorted(before.get(name, ["(nothing)"])), sorted(after.get(name, ["(nothing)"]))
        if name.startswith("clock "):
            one = ["goes on"]
        if one == other:
            continue
        for pattern, warning in NAMED:
            match = re.match(pattern, name + ": ")
            if match and re.search(warning.format(*match.groups()), warnings):
                break
        else:
            found.append(f"{name}: {one} became {other}")
    return found


def state(mpi):
    with Scratch("everything") as cwd:
        with Job.run([PROGRAMS / f"everything.{mpi}", "an argument"], 2, cwd, mpi=mpi) as job:
            job.wait_line("READY")
            job.checkpoint()
            (cwd / "go-resumed").touch()
            job.wait_line("AGAIN")
            job.checkpoint("--stop")
            job.finish(expected=85)
            warnings = job.errors()
        (cwd / "go-restarted").touch()
        with Job.restart(cwd, mpi=mpi) as job:
            check("described" in job.finish(), job.errors())
            warnings += job.errors()
        bad = []
        for rank in range(2):
            before = description(cwd, "before", rank)
            check(len(before) > 400, f"only {len(before)} lines of description")
            bad += [f"rank {rank}, resumed: {line}" for line in differences(before, description(cwd, "resumed", rank), "")]
            said = "\n".join(line for line in warnings.splitlines() if f"rank {rank}: " in line)
            bad += [f"rank {rank}, restarted: {line}"
                    for line in differences(before, description(cwd, "restarted", rank), said)]
        check(not bad, "\n".join(bad) + "\nwarnings:\n" + warnings)
        return f"{len(before)} lines a rank"


if __name__ == "__main__":
    cases = {"state": state}
    sys.exit(harness.verdict(" ".join(sys.argv[1:]), lambda: cases[sys.argv[1]](*sys.argv[2:])))
