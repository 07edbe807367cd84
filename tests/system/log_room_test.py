#!/usr/bin/env python3
"""Message logs that are larger than --message-log-memory: what is beyond it is in files, and nothing is lost.

    log_room_test.py spilled|restarted|killed|full openmpi|mpich      tests/programs/late_tag.c
"""
import json
import os
import re
import signal
import sys
import tempfile

import harness
from harness import PROGRAMS, Job, Scratch, check
from logged_test import OTHER
from replicas_test import MASKED, Copied

BOUND = 1 << 20
LOG = ["--message-log", "--message-log-memory", "1MiB"]
SPILLS = re.compile(r"rank (\d+): other ranks have not taken what it sent: what .* goes to a file in (\S+)")
MESSAGES = 3000  # 6 MB, and as much in large ones


def started(cwd, mpi, turns, extra, on=()):
    """(native lines, job, function that lets a turn go)"""
    program = [PROGRAMS / f"late_tag.{mpi}", MESSAGES, turns]
    wanted = harness.native(program, 2, mpi, cwd)
    env = dict(os.environ, HOLD_FILE=str(cwd / "go"), TMPDIR="/var/tmp")
    job = Job.run(program, 2, cwd, mpi=mpi, env=env, extra=extra, on=on)
    return [line for line in wanted if line != "READY"], job, lambda turn: (cwd / f"go{turn}").touch()


def results(lines):
    return [line for line in lines if line != "READY"]


def ready(job, turn):
    job.wait_until(lambda: job.lines().count("READY") > turn, "READY")


def size(job, files=1):
    """What the status says of the logs, once it knows of this many bytes in files (ranks say it now and then)."""
    found = {}

    def known():
        status = job.ask("status", "--json")
        if status.returncode == 0:
            found.update(json.loads(status.stdout)["replicas"]["log"])
        return found.get("spilled", 0) >= files
    job.wait_until(known, "a log in files")
    return found


def check_size(job):
    log = size(job, files=8 * BOUND)
    check(log["largest"] == 0 and log["ranks"][0]["held"] <= BOUND, f"{log}")
    text = job.ask("status").stdout
    check(re.search(r"message log  .* in memory, .* MiB in files; most of rank 0", text), text)
    check("message log" in job.ask("replicas").stdout, "replicas")


def spilled(mpi):
    """Renewed twice with most of the log in files, on either library; what was taken leaves no file."""
    with Scratch("room-spilled") as cwd:
        wanted, job, go = started(cwd, mpi, 3, LOG)
        with job:
            for turn in range(3):
                ready(job, turn)
                if turn == 0:
                    check_size(job)
                for words in ([], ["--mpi", OTHER[mpi]])[:2 - turn if turn < 2 else 0]:
                    done = job.ask("renew", *words)
                    check(done.returncode == 0, f"{words}: {done.stderr}")
                go(turn)
            lines = results(job.finish())
            errors = job.errors()
        check(lines == wanted, f"{lines}, natively {wanted}\n{errors}")
        check([found[0] for found in SPILLS.findall(errors)] == ["0"] and "/var/tmp" in errors, errors)


def restarted(mpi):
    """Saved with most of the log in files, killed, continued on the other library; saved and stopped there, continued again.
    Restarts keep the bound."""
    with Scratch("room-restarted") as cwd:
        wanted, job, go = started(cwd, mpi, 2, LOG)
        env = dict(os.environ, TMPDIR="/var/tmp")
        with job:
            ready(job, 0)
            job.checkpoint()
            job.kill_ranks()
        with Job.restart(cwd, mpi=OTHER[mpi], env=env) as job:
            check_size(job)
            job.wait_until(lambda: any("(deleted)" in line and "/var/tmp" in line for line in open(f"/proc/{job.rank_pids()[0]}/maps")),
                           "files of the log", 20)
            job.checkpoint("--stop")
            job.finish(expected=85)
        go(0)
        go(1)
        with Job.restart(cwd, mpi=mpi, env=env) as job:
            lines = results(job.finish())
        check(lines == wanted, f"{lines}, natively {wanted}; {job.errors()}")


def killed(mpi):
    """Ranks with copies: the receiver's copy gets what is in the sender's files, and so it is when the sender has died before."""
    with Scratch("room-killed") as cwd:
        wanted, job, go = started(cwd, mpi, 2, ["--replicas", "all", *LOG[1:]])
        with job:
            ready(job, 0)
            copied = Copied(job)
            lead, _ = copied.pids()
            go(0)  # the second turn has copies from its beginning
            ready(job, 1)
            size(job)
            lead = job.rank_pids()
            os.kill(lead[0], signal.SIGKILL)
            job.wait_until(lambda: len(MASKED.findall(job.errors())) == 1, "the copy to lead")
            copied.pids()
            os.kill(job.rank_pids()[1], signal.SIGKILL)
            job.wait_until(lambda: len(MASKED.findall(job.errors())) == 2, "the other copy to lead")
            go(1)
            lines = results(job.finish())
            errors = job.errors()
        check(lines == wanted, f"{lines}, natively {wanted}\n{errors}")
        copied.check_gone()


SMALL_DISKS = "mount -t tmpfs -o size=3m none /tmp && mount -t tmpfs -o size=1m none /var/tmp && exec \"$@\""


def full(mpi):
    """There is no room for files: the log stays in memory, with one line, and nothing is lost."""
    if os.geteuid() != 0:
        return "needs root, for small disks"
    tempfile.tempdir = "/dev/shm"  # the others are hidden
    with Scratch("room-full") as cwd:
        wanted, job, go = started(cwd, mpi, 2, LOG, ["unshare", "-m", "sh", "-c", SMALL_DISKS, "sh"])
        with job:
            job.on = ["nsenter", "-m", "-t", str(job.process.pid)]
            for turn in range(2):
                ready(job, turn)
                check(job.ask("renew").returncode == 0, "renew")
                go(turn)
            lines = results(job.finish())
            errors = job.errors()
        check(lines == wanted, f"{lines}, natively {wanted}\n{errors}")
        said = re.findall(r"rank 0: its message log stays in memory, .*: no space is left", errors)
        check(len(said) == 1, errors)


CASES = {f.__name__: f for f in (spilled, restarted, killed, full)}
if __name__ == "__main__":
    sys.exit(harness.main(lambda name, *rest: CASES[name](*rest), CASES))
