#!/usr/bin/env python3
"""Ranks that are killed leave nothing in /dev/shm, and nobody else's files go with theirs.

    litter_test.py deaths|daemon mpiexec|own openmpi|mpich [DEATHS]
"""
import contextlib
import json
import os
import pathlib
import signal
import sys
import time

import harness
from harness import PROGRAMS, Job, Scratch, check

MEMORY = pathlib.Path("/dev/shm")
PAUSE = dict(os.environ, STEADY_PAUSE="3000")


def wait_for(condition, what):
    end = time.monotonic() + 20 * max(1.0, harness.PATIENCE / 120)
    while not condition():
        check(time.monotonic() < end, f"waited in vain for {what()}")
        time.sleep(0.02)


def mapped(pids):
    """Names in /dev/shm that these processes share memory by, and their inodes. (Other tests have theirs there.)"""
    found = set()
    for pid in pids:
        try:
            lines = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
        except OSError:
            continue
        words = [line.split(maxsplit=5) for line in lines if str(MEMORY) in line and "(deleted)" not in line]
        found |= {(pathlib.Path(word[5]).name, int(word[4])) for word in words if pathlib.Path(word[5]).parent == MEMORY}
    return found


def left_of(names):
    return [name for name, inode in names if (MEMORY / name).exists() and (MEMORY / name).stat().st_ino == inode]


def others():
    """Files of this user's that no rank has made, with the names that a library gives to its own."""
    made = [MEMORY / f"vader_segment.{os.uname().nodename}.{os.getuid()}.{os.getpid():x}.{number}" for number in range(2)]
    for path in made:
        path.write_bytes(b"mine")
    return made


def job(launcher, mpi, cwd, restarts):
    return Job.run([PROGRAMS / f"steady.{mpi}", "1000000", "1"], 3, cwd, mpi=mpi, env=PAUSE,
                   extra=["--launcher", launcher, "--max-restarts", restarts])


def ranks_of(run):
    """Of a job that runs; else none."""
    done = run.ask("status", "--json")
    said = json.loads(done.stdout) if done.returncode == 0 else {}
    ranks = [rank["pid"] for rank in said.get("ranks", [])]
    return ranks if said.get("state") == "running" and len(ranks) == 3 else []


def deaths(launcher, mpi, cwd, count="2"):
    """A rank is killed again and again, at any moment of its life; the job goes on, and at its end none of the names is there."""
    count, seen, dead = int(count), set(), set()
    with job(launcher, mpi, cwd, count + 1) as run:
        for death in range(count + 1):
            pids = []
            def all_anew():
                pids[:] = ranks_of(run)
                return pids and not dead & set(pids)
            run.wait_until(all_anew, "three ranks")
            lines = len(run.lines())
            run.wait_until(lambda: len(run.lines()) > lines, "a line")
            if death == 0:
                run.checkpoint()
            before, seen = seen, seen | mapped(pids)
            if death == count:
                break
            time.sleep(0.1 * death)
            dead |= set(pids)
            os.kill(pids[death % 3], signal.SIGKILL)
        # Of the lives that are over nothing is there, while the newest one runs.
        wait_for(lambda: not left_of(before), lambda: f"the names of dead ranks to go: {left_of(before)}")
        check(set(left_of(mapped(pids))) == {name for name, _ in mapped(pids)}, "names of living ranks are gone")
        run.ask("cancel")
        run.end()
    wait_for(lambda: not left_of(seen), lambda: f"the names to go: {left_of(seen)}")
    check(seen or mpi == "mpich", "no rank has a file there: this test finds nothing")
    return f"seen and gone: {len(seen)}"


def daemon(launcher, mpi, cwd):
    """The node daemon is killed with its ranks: the next job of this user removes what they left."""
    with job(launcher, mpi, cwd, 0) as run:
        run.wait_until(lambda: len(run.lines()) >= 2, "two lines")
        daemons, ranks = run.daemon_pids(), run.rank_pids()
        seen = mapped(ranks)
        # All stand first: the launcher, too, removes what ranks leave.
        launched = pathlib.Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children").read_text().split()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in (run.process.pid, *map(int, launched), *daemons, *ranks):
                with contextlib.suppress(ProcessLookupError):  # ranks end with their daemon
                    os.kill(pid, number)
        run.end()
    left = left_of(seen)
    check(left, f"nothing is left: this test finds nothing ({seen})")
    wait_for(lambda: not mapped(ranks), lambda: f"killed ranks to go: {ranks}")
    with job(launcher, mpi, cwd, 0) as run:
        run.wait_until(lambda: len(run.lines()) >= 2, "two lines")
        run.ask("cancel")
        run.end()
    wait_for(lambda: not left_of(seen), lambda: f"what was left to go: {left_of(seen)}")
    return f"left and gone: {len(left)}"


CASES = {"deaths": deaths, "daemon": daemon}


def run(name, launcher, mpi, *more):
    mine = others()
    try:
        with Scratch(f"litter-{name}") as cwd:
            said = CASES[name](launcher, mpi, cwd, *more)
        for path in mine:
            check(path.exists() and path.read_bytes() == b"mine", f"{path}, nobody's of the job, is gone")
        return said
    finally:
        for path in mine:
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
