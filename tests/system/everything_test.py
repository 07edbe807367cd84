#!/usr/bin/env python3
"""The rule of docs/process-state.md: every kind of state is restored, or warned of by name, or refused.

A program that owns one of everything (tests/programs/everything.c) describes all its state as the kernel tells it: before
a checkpoint, after it, and after a restart. After the checkpoint nothing may differ; after the restart only what a warning
of the checkpoint or of the restart has named. What is refused is tests/programs/refused.c.

    everything_test.py state|ordinary|refused|below|forking openmpi|mpich
"""
import os
import re
import sys

import harness
from harness import PROGRAMS, Job, Scratch, check

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


REFUSED = [("userfaultfd", r"descriptor \d+ is \[userfaultfd\]"),
           ("descriptors-on-their-way", r"descriptor \d+: 1 descriptors that were sent to this socket \(SCM_RIGHTS\)"),
           ("aio", r"asynchronous I/O \(io_setup\)"),
           ("infiniband", r"descriptor \d+ is /dev/infiniband/fermata-test"),
           ("removed-mpi-file", r"the MPI file .*/gone\.dat was removed")]


def refused(mpi):
    with Scratch("refused") as cwd:
        with Job.run([PROGRAMS / f"refused.{mpi}"], 2, cwd, mpi=mpi) as job:
            met = 0
            for name, line in REFUSED:
                job.wait_until(lambda: any(f"{word} {name}" in job.lines() for word in ("READY", "WITHOUT")), name)
                if f"WITHOUT {name}" in job.lines():
                    continue
                done = job.ask("checkpoint", "--timeout", "60s")
                check(done.returncode != 0 and re.search(line, done.stdout + done.stderr),
                      f"{name}: {done.returncode}: {done.stdout}{done.stderr}")
                met += 1
                (cwd / f"go-{name}").touch()
            job.wait_line("READY nothing")
            job.checkpoint()
            (cwd / "go-nothing").touch()
            check("done" in job.finish(), job.output())
        check(met >= 3, f"only {met} kinds here")
        return f"{met} kinds"


def ordinary(mpi):
    """The same without root's rights."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        os.environ.update(HOME="/tmp", TMPDIR="/tmp")
    check(os.access(harness.FERMATA, os.X_OK), f"another user cannot run {harness.FERMATA}")
    return state(mpi)


def below(mpi):
    """What a library below opens before main is not the program's, UCX's memory hooks are nobody's choice, and what UCX
    says is not among the program's lines."""
    with Scratch("below") as cwd:
        env = dict(os.environ, UCX_LOG_FILE=str(cwd / "ucx.log"), UCX_MEM_MMAP_HOOK_MODE="bistro")
        with Job.run([PROGRAMS / f"everything.{mpi}"], 2, cwd, mpi=mpi, env=env) as job:
            job.wait_line("READY")
            job.checkpoint("--stop")
            job.finish(expected=85)
            check("UCX_MEM_MMAP_HOOK_MODE=bistro is not used" in job.errors(), job.errors())
        log = cwd / "ucx.log"
        opened = log.exists()
        log.unlink(missing_ok=True)
        (cwd / "go-resumed").touch()
        (cwd / "go-restarted").touch()
        env.pop("UCX_LOG_FILE")
        env["UCX_LOG_LEVEL"] = "info"
        with Job.restart(cwd, mpi=mpi, env=env) as job:
            check("described" in job.finish(), job.output())
            check("ucx.log" not in job.errors(), job.errors())
            check(" UCX " not in job.output(), job.output())
            said = job.errors()
        place = cwd / "native"
        place.mkdir()
        (place / "go-resumed").touch()
        (place / "go-restarted").touch()
        # What it says of its file system for people (UCX_VFS_ENABLE) is not meant: `fermata run` turns that off.
        native = harness.native([PROGRAMS / f"everything.{mpi}"], 2, mpi, place, env=dict(env, UCX_VFS_ENABLE="n"))
        check(" UCX " in said or not any(" UCX " in line for line in native), said)
        return "UCX had its log open" if opened else "no UCX here"


def forking(mpi):
    """Memory that the library below keeps from children is not the program's wish; what the program keeps is."""
    with Scratch("forking") as cwd:
        hold = cwd / "go"
        env = dict(os.environ, HOLD_FILE=str(hold))
        with Job.run([PROGRAMS / f"forking.{mpi}"], 2, cwd, mpi=mpi,
                     env=dict(env, FERMATA_LOWER_PRELOAD=str(PROGRAMS / f"libkeeping.{mpi}.so"))) as job:
            job.wait_line("READY")
            check("below: 1" in job.lines(), job.output())
            job.checkpoint("--stop")
            job.finish(expected=85)
        hold.touch()
        with Job.restart(cwd, mpi=mpi, env=env) as job:
            lines = job.finish()
            check("after: 1 0 0, child lives" in lines, f"{lines}")


if __name__ == "__main__":
    cases = {"state": state, "ordinary": ordinary, "refused": refused, "below": below, "forking": forking}
    sys.exit(harness.verdict(" ".join(sys.argv[1:]), lambda: cases[sys.argv[1]](*sys.argv[2:])))
