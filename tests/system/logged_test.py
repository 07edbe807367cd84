#!/usr/bin/env python3
"""Checkpoints of jobs with a message log (`run --message-log`, `--replicas`): taken at any moment, continued with native lines.

    logged_test.py inside openmpi|mpich HOW...        others wait for a rank that computes: tests/programs/computes.c
    logged_test.py held openmpi|mpich CASE...         tests/programs/trap.c
    logged_test.py random openmpi|mpich [SEED]
    logged_test.py ways openmpi|mpich WAY...          how images are kept and loaded: WAYS
    logged_test.py copies|unmasked|words openmpi|mpich
    logged_test.py threads_at_once MPI...             tests/programs/threads.c
"""
import json
import os
import random as randomness
import re
import signal
import subprocess
import sys
import time

import harness
from harness import PROGRAMS, Job, Scratch, check
from replicas_test import Copied, MASKED, children_of

OTHER = {"openmpi": "mpich", "mpich": "openmpi"}
LOG = ["--message-log"]


def continues(lines, printed, wanted, why):
    """`lines` of a restart are the rest of the native ones; `printed`: before the checkpoint, at least."""
    rest = wanted[len(wanted) - len(lines):]
    check(lines and lines == rest and len(lines) <= len(wanted) - printed,
          f"{why}: {len(lines)} lines, {printed} of {len(wanted)} were printed before;"
          f" {[pair for pair in zip(lines, rest) if pair[0] != pair[1]][:2]} {lines[-2:]}")


def inside(mpi, *how):
    """The checkpoint comes while one computes and the others wait for it inside of a call: no rank is waited for, the job goes
    on as if nothing had been, and a restart comes out of the call on the other library; --stop, too."""
    took = []
    for case in how:
        with Scratch(f"logged-{case}") as cwd:
            program = [PROGRAMS / f"computes.{mpi}", case]
            go = cwd / "go"
            wanted = harness.native(program, 3, mpi, cwd, env=dict(os.environ))
            env = dict(os.environ, HOLD_FILE=str(go))
            with Job.run(program, 3, cwd, mpi=mpi, env=env, extra=LOG) as job:
                job.wait_line("READY")
                took.append(job.checkpoint()["seconds"])
                go.touch()
                lines = job.finish()
            check(lines == wanted, f"{case}, after a checkpoint: {lines}, natively {wanted}")
            go.unlink()
            with Job.restart(cwd, mpi=OTHER[mpi]) as job:
                job.wait_until(lambda: job.ask("status").stdout.count("running"), "the job to run")
                job.checkpoint("--stop")
                check(job.finish(expected=85) == [], f"{case}, before it stopped: {job.output()}")
            go.touch()
            with Job.restart(cwd, mpi=mpi) as job:
                lines = job.finish()
            check(lines == [line for line in wanted if line != "READY"], f"{case}, restarted twice: {lines}, natively {wanted}")
    return f"{len(how)} ways, at most {max(took):.2f} s"


def held(mpi, *cases):
    """Programs that stand where it is hard (tests/programs/trap.c): saved there, continued on the other library, then let go."""
    for case in cases:
        with Scratch(f"logged-{case}") as cwd:
            program = [PROGRAMS / f"trap.{mpi}", case]
            go = cwd / "go"
            env = dict(os.environ, HOLD_FILE=str(go))
            wanted = [line for line in harness.native(program, 2, mpi, cwd, env=dict(os.environ)) if line != "READY"]
            with Job.run(program, 2, cwd, mpi=mpi, env=env, extra=LOG) as job:
                job.wait_line("READY")
                job.checkpoint("--stop")
                job.finish(expected=85)
            go.touch()
            with Job.restart(cwd, mpi=OTHER[mpi]) as job:
                lines = [line for line in job.finish() if line != "READY"]
            check(lines == wanted, f"{case}: {lines[-3:]}, natively {wanted[-3:]}")
    return f"{len(cases)} programs"


def mix(mpi, steps="400", work="2000"):
    return [PROGRAMS / f"mix.{mpi}", steps, work]


def synchronous(mpi, *cases):
    """Synchronous sends and receives that wait for each other, with nothing else happening (tests/programs/synchronous.c)."""
    for case in cases:
        with Scratch(f"logged-{case}") as cwd:
            program = [PROGRAMS / f"trap.{mpi}", case]
            wanted = harness.native(program, 2, mpi, cwd)
            with Job.run(program, 2, cwd, mpi=mpi, extra=LOG) as job:
                lines = job.finish()
            check(lines == wanted, f"{case}: {lines[-3:]}, natively {wanted[-3:]}")


def random(mpi, seed="1", ranks=3):
    """Killed after a checkpoint at a random moment, continued on either library, renewed there, saved and continued again."""
    draw = randomness.Random(f"{seed} {mpi}")
    with Scratch("logged-random") as cwd:
        program = mix(mpi)
        wanted = harness.native(program, ranks, mpi, cwd)
        with Job.run(program, ranks, cwd, mpi=mpi, extra=LOG) as job:
            job.wait_until(lambda: len(job.lines()) >= len(wanted) // 4, "a quarter")
            time.sleep(draw.uniform(0, 0.05))
            printed = len(job.lines())
            job.checkpoint()
            job.kill_ranks()
        with Job.restart(cwd, mpi=OTHER[mpi]) as job:
            job.wait_until(lambda: len(job.lines()) > 30, "some lines")
            check(job.ask("renew").returncode == 0, "renew")
            first = len(job.lines())
            job.checkpoint()
            lines = job.finish()
        continues(lines, printed, wanted, "restarted")
        with Job.restart(cwd, mpi=mpi) as job:
            continues(job.finish(), len(wanted) - len(lines) + first, wanted, "restarted again")


def steady(mpi):
    """Half a second of steps, and more of rest."""
    return [PROGRAMS / f"steady.{mpi}", "400", "2"], dict(os.environ, STEADY_PAUSE="2000")


# Options of run, and of restart.
WAYS = {
    "plain": ([], []),
    "incremental": (["--save-options", "incremental"], []),
    "one_file": (["--save-options", "layout=shared"], []),
    "compressed": (["--save-options", "compress=auto"], []),
    "mapped": ([], ["--mapped"]),
    "memory": (["--levels", "memory 0.2s"], []),
    "local": (["--levels", "local 0.2s"], []),
    "interval": (["--interval", "0.3s"], []),
}


def ways(mpi, *names):
    program, env = steady(mpi)
    for name in names or WAYS:
        run, restart = WAYS[name]
        with Scratch(f"logged-{name}") as cwd:
            wanted = harness.native(program, 2, mpi, cwd)
            with Job.run(program, 2, cwd, mpi=mpi, env=env, extra=[*LOG, *run]) as job:
                job.wait_until(lambda: len(job.lines()) > 30, "some lines")
                if "levels" not in str(run) and "interval" not in str(run):
                    job.checkpoint()
                    job.wait_until(lambda: len(job.lines()) > 60, "more lines")
                    printed = len(job.lines())
                    job.checkpoint()
                else:
                    printed = 0
                    job.wait_until(lambda: generations(cwd), "a generation")
                job.kill_ranks()
            with Job.restart(cwd, mpi=OTHER[mpi], env=env, extra=restart) as job:
                lines = job.finish()
            continues(lines, printed, wanted, name)
    return f"{len(names or WAYS)} ways"


def kept_on(mpi):
    """Signals and --continue: checkpointed and stopped by SIGTERM, continued by the same words; a log cannot begin later."""
    program, env = steady(mpi)
    with Scratch("logged-continue") as cwd:
        wanted = harness.native(program, 2, mpi, cwd)
        lines = []
        for turn in range(3):
            with Job.run(program, 2, cwd, mpi=mpi, env=env, extra=[*LOG, "--continue"]) as job:
                if turn == 2:
                    lines += job.finish()
                    break
                job.wait_until(lambda: len(job.lines()) > 50, "some lines")
                job.process.send_signal(signal.SIGTERM)
                lines += job.finish(expected=85)
        check(lines == wanted, f"{len(lines)} lines, natively {len(wanted)}; {lines[-2:]}")
        with Job.run(program, 2, cwd, mpi=mpi, env=env, ckpt="plain", extra=["--launcher", "own"]) as job:
            job.wait_until(lambda: job.lines(), "a line")
            job.checkpoint("--stop")
            job.finish(expected=85)
        for words, said in ((["--replicas", "all"], "has no message logs"), (["--launcher", "mpiexec"], "")):
            done = harness.call("restart", "--ckpt-dir", "plain" if said else "ckpt", "--generation", "latest", *words, cwd=cwd)
            check(done.returncode == 2 and (said or "--launcher own") in done.stderr, f"{words}: {done.returncode} {done.stderr}")


def standby(mpi):
    """The next life stands by while this one, which has a log, runs."""
    program, env = steady(mpi)
    program = [program[0], "1500", "2"]
    with Scratch("logged-standby") as cwd:
        wanted = harness.native(program, 2, mpi, cwd)
        with Job.run(program, 2, cwd, mpi=mpi, env=env, extra=[*LOG, "--launcher", "own", "--standby", "--max-restarts", "1"]) as job:
            job.wait_until(lambda: len(job.lines()) > 30, "some lines")
            job.checkpoint()
            job.wait_until(lambda: json.loads(job.ask("status", "--json").stdout).get("standby") == "ready", "a life that stands by")
            pids = job.rank_pids()
            os.kill(pids[1], signal.SIGKILL)
            lines = job.finish()
        check(lines[-50:] == wanted[-50:], f"{lines[-2:]}, natively {wanted[-2:]}; {job.errors()}")


def copies(mpi):
    """Leaders are saved while copies follow them; after the restart there are copies again, and one takes a rank's place."""
    with Scratch("logged-copies") as cwd:
        program, env = steady(mpi)  # rests: on no machine it is over before it has copies
        program = [program[0], "1300", "1"]
        wanted = harness.native(program, 2, mpi, cwd)
        with Job.run(program, 2, cwd, mpi=mpi, env=env, extra=["--replicas", "all"]) as job:
            copied = Copied(job)
            copied.pids()
            printed = len(job.lines())
            job.checkpoint("--stop")
            job.finish(expected=85)
            copied.check_gone()
        with Job.restart(cwd, mpi=mpi) as job:
            copied = Copied(job)
            os.kill(copied.pids()[0][1], signal.SIGKILL)
            lines = job.finish()
            check(len(MASKED.findall(job.errors())) == 1, job.errors())
            copied.check_gone()
        continues(lines, printed, wanted, "restarted")


def kill_in(draw, pids, delay):
    time.sleep(draw.uniform(0, delay))
    try:
        os.kill(draw.choice(pids), signal.SIGKILL)
    except ProcessLookupError:
        pass


def generations(cwd):
    return {path.parent.name for path in (cwd / "ckpt").glob("gen-*/manifest.json")}


def check_lines(lines, wanted, errors):
    """Each line came, in order; after a death some came again."""
    at = 0
    for line in lines:
        if at < len(wanted) and line == wanted[at]:
            at += 1
            continue
        check(line in wanted[:at], f"line {line} after {wanted[at - 1]}\n{errors[-3000:]}")
        at = wanted.index(line) + 1
    check(at == len(wanted), f"ended after {at} of {len(wanted)} lines\n{errors[-3000:]}")


def settled(copied):
    """Leaders, once copies are neither made nor lost: seen twice, since a look takes its time."""
    while True:
        found = copied.pids()
        time.sleep(0.1)
        if copied.pids() == found:
            return found[0]


def masked(mpi, times="4", seed="1"):
    """A rank that has a copy is killed while the job is saved: what was begun is given up or committed, the lines are native ones."""
    draw = randomness.Random(f"{seed} {mpi}")
    with Scratch("logged-masked") as cwd:
        program = mix(mpi, "1200", "1000")
        wanted = harness.native(program, 2, mpi, cwd)
        said = []
        with Job.run(program, 2, cwd, mpi=mpi, extra=["--replicas", "all"]) as job:
            copied = Copied(job)
            for turn in range(int(times)):
                job.wait_until(lambda: len(MASKED.findall(job.errors())) == turn, "the copy to go on")
                lead = settled(copied)
                asked = subprocess.Popen([str(harness.FERMATA), "checkpoint", "--job", job.name], stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True)
                kill_in(draw, lead, 0.15)
                said.append(asked.communicate(timeout=60)[0].strip())
            lines = job.finish()
            errors = job.errors()
        check(lines == wanted, f"{len(lines)} lines, natively {len(wanted)}; {said}\n{errors[-3000:]}")
        check(len(MASKED.findall(errors)) == int(times), errors)
        copied.check_gone()
        for generation in sorted(generations(cwd))[-1:]:
            with Job.restart(cwd, mpi=mpi, generation=int(generation.split("-")[1]), extra=["--replicas", "none"]) as job:
                continues(job.finish(), 0, wanted, generation)
    return "; ".join(said)


def rolled_back(mpi, times="4", seed="1"):
    """Ranks without copies are killed at any moment, in checkpoints and restarts, too: the job goes on from its newest generation."""
    draw = randomness.Random(f"{seed} {mpi}")
    program, env = steady(mpi)
    program = [program[0], "1200", "2"]
    with Scratch("logged-rolled-back") as cwd:
        wanted = harness.native(program, 2, mpi, cwd)
        with Job.run(program, 2, cwd, mpi=mpi, env=env, extra=[*LOG, "--interval", "0.15s", "--max-restarts", "50"]) as job:
            for turn in range(int(times)):
                # Three deaths without a generation between them, and the job is given up.
                seen = generations(cwd)
                job.wait_until(lambda: turn % 2 == 1 or generations(cwd) - seen, "another generation")
                time.sleep(draw.uniform(0, 0.4))
                processes = [pid for pid, name in job.processes().items() if name.startswith("steady") or name.startswith("lower")]
                if processes:
                    kill_in(draw, processes, 0.05)
            lines = job.finish()
            errors = job.errors()
        check_lines(lines, wanted, errors)
    return f"{errors.count('restarting from')} times"


def writers(mpi, times="5", seed="1"):
    """The child that writes an image is killed: that checkpoint fails with a line, and the job goes on."""
    draw = randomness.Random(f"{seed} {mpi}")
    program, env = steady(mpi)
    program = [program[0], "1200", "64"]
    with Scratch("logged-writers") as cwd:
        wanted = harness.native(program, 2, mpi, cwd)
        failed = 0
        with Job.run(program, 2, cwd, mpi=mpi, env=env, extra=LOG) as job:
            job.wait_until(lambda: len(job.lines()) > 30, "some lines")
            ranks = job.rank_pids()
            for _ in range(int(times)):
                asked = subprocess.Popen([str(harness.FERMATA), "checkpoint", "--job", job.name], stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True)
                while asked.poll() is None:
                    children = children_of(ranks)
                    if children:
                        kill_in(draw, children, 0.01)
                        break
                said = asked.communicate(timeout=60)[0]
                failed += asked.returncode != 0
                check(asked.returncode == 0 or "ended by signal 9" in said, said)
            lines = job.finish()
        check(lines == wanted and failed > 0, f"{len(lines)} lines, {failed} failed; {job.errors()}")
    return f"{failed} of {times} failed"


def unmasked(mpi):
    """A rank dies that has no copy: the job goes back to its newest generation, and says so."""
    with Scratch("logged-unmasked") as cwd:
        program = mix(mpi, "800", "1000")
        wanted = harness.native(program, 2, mpi, cwd)
        with Job.run(program, 2, cwd, mpi=mpi, extra=["--replicas", "0", "--max-restarts", "1"]) as job:
            copied = Copied(job)
            job.wait_until(lambda: len(job.lines()) > 20, "some lines")
            generation = job.checkpoint()["generation"]
            os.kill(job.rank_pids()[1], signal.SIGKILL)
            job.wait_until(lambda: f"restarting from {generation}" in job.errors(), "the restart")
            time.sleep(1)
            lines = job.finish()
        tail = lines[-20:]
        check(tail == wanted[-20:] and len(lines) >= len(wanted), f"{len(lines)} lines; {tail[-2:]}, natively {wanted[-2:]}")


def threads_at_once(*libraries):
    """A program that does not look at what MPI_Init_thread has provided: refused, where the log would be wrong."""
    for mpi in libraries:
        with Scratch("logged-threads") as cwd:
            env = dict(os.environ, THREADS_ANYWAY="1")
            with Job.run([PROGRAMS / f"threads.{mpi}", 5, 20, 1000], 2, cwd, mpi=mpi, env=env, extra=LOG) as job:
                job.finish(expected=70)
            check("MPI calls of two threads at once" in job.errors(), job.errors())
    return f"{len(libraries)} libraries"


CASES = {f.__name__: f for f in (threads_at_once, inside, held, synchronous, random, ways, kept_on, standby, copies, masked, rolled_back, writers, unmasked)}

if __name__ == "__main__":
    sys.exit(harness.main(lambda name, *rest: CASES[name](*rest), CASES))
