#!/usr/bin/env python3
"""What ranks of one node share by other means than MPI (tests/programs/shared_state.c): the lines of a run without
Fermata, of one that is checkpointed and goes on, of one that is stopped and restarted, and of one that is killed
after it went on.

    shared_state_test.py CASE openmpi|mpich [RANKS]
    shared_state_test.py apart|foreign|once|told openmpi|mpich
"""
import os
import pathlib
import re
import subprocess
import sys

import harness
from harness import PROGRAMS, Job, Scratch, check

# By the case: System V objects that may be left.
LEFT = {"segment_kept": "-m", "segment_detached": "-m", "semaphores": "-s", "messages": "-q"}


def program(mpi, case, cwd, way):
    (cwd / way).mkdir()
    return [PROGRAMS / f"shared_state.{mpi}", case, cwd / way]


def left_of(kind):
    if not kind:
        return set()
    lines = subprocess.run(["ipcs", kind], capture_output=True, text=True, check=True).stdout.splitlines()
    # Others of this machine make some, too: ours are of one size and nobody's by now.
    ours = {"-m": r"0x\w+ +(\d+) +\w+ +600 +1048576 +0 ", "-s": r"0x\w+ +(\d+) +\w+ +600 +3 *$",
            "-q": r"0x\w+ +(\d+) +\w+ +600 +\d+ +[1-9]"}[kind]
    return {found[1] for found in (re.match(ours, line) for line in lines) if found}


def same(found, wanted, what):
    found = [line for line in found if line != "READY"]
    check(found == wanted, f"{what}:\n" + "\n".join(found) + "\ninstead of\n" + "\n".join(wanted))


def case(name, mpi, ranks="2"):
    ranks = int(ranks)
    with Scratch(f"shared-{name}") as cwd:
        wanted = harness.native(program(mpi, name, cwd, "native"), ranks, mpi, cwd)
        check(wanted, "the native run says nothing")
        warned = []
        before = left_of(LEFT.get(name))
        for way, options in (("resumed", ()), ("stopped", ("--stop",)), ("killed", ())):
            hold = cwd / f"go-{way}"
            env = dict(os.environ, HOLD_FILE=str(hold))
            with Job.run(program(mpi, name, cwd, way), ranks, cwd, mpi=mpi, ckpt=way + "-ckpt", env=env) as job:
                job.wait_line("READY")
                warned += job.checkpoint(*options)["warnings"]
                hold.touch()
                if way == "resumed":
                    same(job.finish(), wanted, way)
                    continue
                if way == "stopped":
                    job.finish(expected=85)
                else:
                    # Somewhere after the checkpoint: what it did since is to be undone.
                    job.wait_until(lambda: len(job.lines()) > ranks, "a line after the checkpoint")
                    job.kill_ranks()
            for other in (mpi,) if way == "killed" else ("mpich", "openmpi"):
                with Job.restart(cwd, mpi=other, ckpt=way + "-ckpt", env=env) as job:
                    same(job.finish(), wanted, f"{way}, restarted on {other}")
                    check("warning" not in job.errors() and "cannot" not in job.errors(), job.errors())
        left = left_of(LEFT.get(name)) - before
        check(not left, f"left behind: {LEFT.get(name)} {left}")
        return "; ".join(warned)


def held(cwd):
    (cwd / "go").touch(exist_ok=True)
    return dict(os.environ, HOLD_FILE=str(cwd / "go"))


def stopped(name, mpi, cwd, env=None, **how):
    """A job of two ranks, stopped while it holds."""
    env = env or dict(os.environ, HOLD_FILE=str(cwd / "go"))
    with Job.run(program(mpi, name, cwd, "held"), 2, cwd, mpi=mpi, env=env, **how) as job:
        job.wait_line("READY")
        job.checkpoint("--stop")
        job.finish(expected=85)
    return held(cwd)


def refused(job, *words):
    code = job.end(harness.PATIENCE)
    check(code not in (0, 85), f"exit status {code}: {job.errors()}")
    check(all(word in job.errors() for word in words), f"{words} in {job.errors()}")


def apart(mpi):
    """Ranks that share memory on two nodes: refused with their names; on one node, another one, they go on."""
    import nodes_test
    with Scratch("shared-apart") as cwd, nodes_test.Cluster(cwd) as cluster:
        wanted = harness.native(program(mpi, "posix_unlinked", cwd, "native"), 2, mpi, cwd)
        on = cluster.nodes[0].on
        where = lambda nodes: ["--mpiexec-args", cluster.over(mpi, 2, nodes)]  # noqa: E731
        env = dict(stopped("posix_unlinked", mpi, cwd, on=on, extra=where((0,))), FERMATA_SSH=f"{cwd}/rsh")
        with Job.restart(cwd, mpi=mpi, on=on, extra=where((0, 1)), env=env) as job:
            refused(job, "shared memory /dev/shm/fermata-test-", "ranks 0 and 1", *nodes_test.NAMES)
        with Job.restart(cwd, mpi=mpi, on=on, extra=where((1,)), env=env) as job:
            same(job.finish(), wanted, "on the other node")


def foreign(mpi):
    """The name is another user's by the time of the restart: neither read nor written to."""
    check(os.geteuid() == 0, "needs root, to be another user as well")
    with Scratch("shared-foreign") as cwd:
        wanted = harness.native(program(mpi, "posix_named", cwd, "native"), 2, mpi, cwd)
        before = set(pathlib.Path("/dev/shm").iterdir())
        env = stopped("posix_named", mpi, cwd)
        (path,) = [one for one in pathlib.Path("/dev/shm").iterdir()
                   if one not in before and one.name.startswith("fermata-test-")]
        aside = cwd / "aside"
        aside.write_bytes(path.read_bytes())
        path.unlink()
        for trap in (f"umask 0; head -c {1 << 20} /dev/zero > {path}", f"ln -s {aside} {path}",
                     f"mkfifo -m 666 {path}"):
            subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", trap],
                           check=True)
            with Job.restart(cwd, mpi=mpi, env=env) as job:
                refused(job, str(path), "65534", "remove it")
            if path.is_file() and not path.is_symlink():
                check(path.read_bytes() == bytes(1 << 20), "written to")
            path.unlink()
        path.write_bytes(bytes(1 << 20))  # our own, but open to others
        path.chmod(0o666)
        with Job.restart(cwd, mpi=mpi, env=env) as job:
            refused(job, str(path), "666")
        path.unlink()
        with Job.restart(cwd, mpi=mpi, env=env) as job:
            same(job.finish(), wanted, "made anew")
        check(not path.exists(), "left behind")


def once(mpi):
    """What several ranks have in common is saved by one of them."""
    with Scratch("shared-once") as cwd:
        hold = dict(os.environ, HOLD_FILE=str(cwd / "go"))
        sizes = []
        for ranks in (1, 3):
            with Job.run(program(mpi, "large", cwd, f"of-{ranks}"), ranks, cwd, mpi=mpi, ckpt=f"ckpt-{ranks}",
                         env=hold) as job:
                job.wait_line("READY")
                sizes.append(job.checkpoint("--stop")["bytes"])
                job.finish(expected=85)
        check(sizes[1] - sizes[0] < 20 << 20, f"bytes {sizes}")
        return f"1 rank {sizes[0] >> 20} MiB, 3 ranks {sizes[1] >> 20} MiB"


def told(mpi):
    """What does not come back is said in the answer of the checkpoint, once for all ranks."""
    with Scratch("shared-told") as cwd:
        hold = dict(os.environ, HOLD_FILE=str(cwd / "go"))
        wanted = harness.native(program(mpi, "event", cwd, "native"), 2, mpi, cwd)
        with Job.run(program(mpi, "event", cwd, "held"), 2, cwd, mpi=mpi, env=hold) as job:
            job.wait_line("READY")
            said = job.checkpoint()["warnings"]
            check(len(said) == 1, f"{said} {job.errors()}")
            (line,) = said
            check(line.startswith("ranks 0-1: an eventfd is shared by 2 ranks"), line)
            said = job.ask("checkpoint", "--stop")
            check(said.returncode == 0 and said.stderr == f"fermata: warning: {line}\n", said.stderr)
            check("an eventfd is shared" not in said.stdout, said.stdout)
            job.finish(expected=85)
        (cwd / "go").touch()
        with Job.restart(cwd, mpi=mpi, env=hold) as job:
            same(job.finish(), wanted, "restarted")


def run(name, *rest):
    others = {"apart": apart, "foreign": foreign, "once": once, "told": told}
    return others[name](*rest) if name in others else case(name, *rest)


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(harness.verdict(f"shared_state {words[0]}", lambda: run(*words)))
