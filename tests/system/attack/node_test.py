#!/usr/bin/env python3
"""What ranks, and others on the node, may do to a node daemon.

    node_test.py CASE
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Job, Scratch, check
from users import SOON

# Its launcher's socket is a script's own until the program begins.
ASKS = """#!/bin/bash
echo cmd=init pmi_version=1 pmi_subversion=1 >&$PMI_FD
block=$(printf 'cmd=get_maxes%.0s\\n' {1..500})
while printf '%s\\n' "$block" >&$PMI_FD; do :; done
sleep 1000
"""


def memory_of(pid):
    """Its resident memory, in MiB; 0 when it is gone."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmRSS:")), 0)


def unread(cwd):
    """A rank that asks its launcher without end, and never reads an answer, is ended, and one line says so."""
    (cwd / "asks").write_text(ASKS)
    (cwd / "asks").chmod(0o755)
    with Job(["run", "--launcher", "own", "--mpi", "mpich", "-n", 1, "--", "./asks"], cwd) as job:
        most = 0
        def over():
            nonlocal most
            most = max([most, *map(memory_of, job.daemon_pids())])
            return job.process.poll() is not None
        job.wait_until(over, "the end", timeout=SOON)
        code = job.end()
        said = [line for line in job.errors().splitlines() if "does not read the answers" in line]
        check(code not in (0, 85) and len(said) == 1 and "rank 0" in said[0], f"{code}: {job.errors()}")
        check(most < 100, f"the daemon took {most} MiB")
        return f"{most} MiB"


CASES = {"unread": unread}


def run(name):
    with Scratch(f"node-{name}") as cwd:
        return CASES[name](cwd)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
