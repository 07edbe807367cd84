#!/usr/bin/env python3
"""Real ranks in a narrow tree of node daemons: each rank on a "node" of its own of this machine (FERMATA_NODE), and
FERMATA_TREE_RADIX=1, so that daemon stands below daemon. Under mpiexec a script before the ranks pretends the nodes, under
Fermata's own launcher a script in the place of ssh.

    tree_test.py life|leaves_late|relay_dies openmpi|mpich [PHASE…]
"""
import json
import os
import shutil
import signal
import socket
import threading

import harness
from harness import PATIENCE, PROGRAMS, Job, Scratch, check

RANKS, STEPS, MIB = 4, 400, 1
PHASES = ("targets", "freeze", "drain", "suspend", "commit", "resume")
# Puts a word before the command of the ranks, which begins with the lower half.
MPIEXEC = """#!/usr/bin/env python3
import os, sys
words = sys.argv[1:]
at = next((i for i, word in enumerate(words) if "/lower-" in word), len(words))
# Hydra looks for its proxy beside argv[0]; Open MPI takes a path there for --prefix.
os.execv("{real}", ["{real}" if "{mpi}" == "mpich" else "mpiexec", *words[:at], *(["{spread}"] if at < len(words) else []), *words[at:]])
"""
SPREAD = """#!/bin/sh
export FERMATA_NODE="node$PMI_RANK$OMPI_COMM_WORLD_RANK" MPI_LOCALRANKID=0 OMPI_COMM_WORLD_LOCAL_RANK=0
exec "$@"
"""
RSH = """#!/bin/sh
export FERMATA_NODE="$1"
exec sh -c "$2"
"""


def script(path, text):
    path.write_text(text)
    path.chmod(0o755)


def environment(cwd, radix=1):
    (cwd / "bin").mkdir(exist_ok=True)
    script(cwd / "bin" / "spread", SPREAD)
    for mpi in ("openmpi", "mpich"):
        name = f"mpiexec.{mpi}"
        script(cwd / "bin" / name, MPIEXEC.format(real=shutil.which(name), mpi=mpi, spread=cwd / "bin" / "spread"))
    script(cwd / "bin" / "rsh", RSH)
    # Open MPI names its shared memory after host and place on it; ranks alone on their nodes think that each has a core.
    own = {"FERMATA_SSH": f"{cwd}/bin/rsh", "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_mpi_yield_when_idle": "1",
           **harness.BY_LOOPBACK}
    return dict(os.environ, PATH=f"{cwd}/bin:{os.environ['PATH']}", FERMATA_TREE_RADIX=str(radix), STEADY_PAUSE="2000",
                **(own if harness.LAUNCHER == "own" else {}))


def start(cwd, mpi):
    return Job.run(program(mpi), RANKS, cwd, mpi=mpi, env=environment(cwd), extra=spread())


def restart(cwd, mpi, radix=1, generation="latest"):
    return Job.restart(cwd, mpi=mpi, env=environment(cwd, radix), generation=generation, extra=spread())


def spread():
    hosts = ",".join(f"node{rank}:1" for rank in range(RANKS))
    return ["--mpiexec-args", f"--hosts {hosts}"] if harness.LAUNCHER == "own" else []


def program(mpi):
    return [PROGRAMS / f"steady.{mpi}", STEPS, MIB]


def same(found, wanted, what):
    check(found == wanted, f"{what}: {len(found)} lines for {len(wanted)}; the last: {found[-1:]} for {wanted[-1:]}")


def steps(job, number):
    job.wait_until(lambda: len(job.lines()) >= number, f"{number} lines")


def daemon_of(job, host):
    for pid in job.daemon_pids():
        with open(f"/proc/{pid}/environ", "rb") as file:
            if f"FERMATA_NODE={host}\0".encode() in file.read():
                return pid
    raise harness.Failure(f"no daemon of {host}")


def checkpoint_until(job, phase, act, stop=False):
    """Asks the root for a checkpoint, acts when it enters this phase, and returns its last word."""
    base = os.environ.get("FERMATA_RUN_DIR", "/tmp") + f"/fermata-{os.geteuid()}"
    with socket.socket(socket.AF_UNIX) as control:
        control.settimeout(PATIENCE)
        control.connect(f"{base}/{job.name}/control")
        control.sendall(json.dumps({"verb": "checkpoint", "stop": stop, "timeout": PATIENCE / 2}).encode() + b"\n")
        for line in control.makefile():
            said = json.loads(line)
            if said.get("phase") == phase:
                act()
            if said.get("done"):
                return said
    raise harness.Failure("the root has hung up")


def life(mpi, cwd):
    """Checkpointed and stopped in a chain of daemons, continued in a wider tree, at last on the other library in a flat
    one: the result of the undisturbed run."""
    wanted = harness.native(program(mpi), RANKS, mpi, cwd)
    other = "mpich" if mpi == "openmpi" else "openmpi"
    with start(cwd, mpi) as job:
        steps(job, 20)
        check(len(job.status()["nodes"]) == RANKS, job.status()["nodes"])
        job.checkpoint()
        job.checkpoint("--stop")
        lines = job.finish(expected=85)
    for library, radix in ((mpi, 2), (other, 64)):
        with restart(cwd, library, radix) as job:
            steps(job, 10)
            job.checkpoint("--stop")
            lines += job.finish(expected=85)
    with restart(cwd, other) as job:
        lines += job.finish()
    same(lines, wanted, "four lives")


def leaves_late(mpi, cwd):
    """A daemon that stands still while the job stops: its rank hears later than the others that the job leaves. The output
    is what the program has written, without a word of mpiexec that ranks were killed."""
    wanted = harness.native(program(mpi), RANKS, mpi, cwd)
    with start(cwd, mpi) as job:
        steps(job, 5)
        last = daemon_of(job, job.status()["nodes"][-1]["host"])
        threading.Timer(1, os.kill, (last, signal.SIGCONT)).start()
        checkpoint_until(job, "commit", lambda: os.kill(last, signal.SIGSTOP), stop=True)
        lines = job.finish(expected=85)
    same(lines, wanted[:len(lines)], "until the stop")
    with restart(cwd, mpi) as job:
        lines += job.finish()
    same(lines, wanted, "two lives")


def relay_dies(mpi, cwd, *phases):
    """SIGKILL to a daemon that has others below it, as soon as a phase of a checkpoint begins: the checkpoint is complete
    or given up with a line, the job goes on to the right result (under own, whose daemons are the parents of the ranks, it ends
    with a line), and what was committed can be continued."""
    wanted = harness.native(program(mpi), RANKS, mpi, cwd)
    for turn, phase in enumerate(phases or PHASES):
        shutil.rmtree(cwd / "ckpt", ignore_errors=True)
        with start(cwd, mpi) as job:
            steps(job, 5)
            hosts = [node["host"] for node in job.status()["nodes"]]
            relay = daemon_of(job, hosts[turn % (RANKS - 1)])
            job.checkpoint()
            steps(job, len(job.lines()) + 5)
            said = checkpoint_until(job, phase, lambda: os.kill(relay, signal.SIGKILL))
            check(said["ok"] or "node daemon of" in said["line"], said)
            if harness.LAUNCHER == "own":
                check(job.end() not in (0, 85) and "the node daemon of" in job.errors(), f"{job.process.returncode}: {job.errors()}")
            else:
                same(job.finish(), wanted, f"{phase}: not disturbed")
        newest = max(path.name for path in (cwd / "ckpt").glob("gen-*"))
        check(newest == ("gen-000002" if said["ok"] or "is complete" in said["line"] else "gen-000001"),
              f"{phase}: {newest}, {said}")
        with restart(cwd, mpi, generation=newest) as job:
            lines = job.finish()
        check(lines, f"{phase}: no line after the restart")
        same(lines, wanted[-len(lines):], f"{phase}: restarted")


CASES = {f.__name__: f for f in (life, leaves_late, relay_dies)}


def case(name, mpi, *rest):
    with Scratch(f"tree-{name}") as cwd:
        return CASES[name](mpi, cwd, *rest)


if __name__ == "__main__":
    raise SystemExit(harness.main(case, CASES))
