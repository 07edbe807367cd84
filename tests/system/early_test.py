#!/usr/bin/env python3
"""A checkpoint that is asked for before the program has started waits for it, with its own timeout, and is then taken.

    early_test.py CASE
"""
import json
import os
import signal
import subprocess
import sys

import harness
from harness import BUILD, FERMATA, PROGRAMS, Job, Scratch, call, check

RANKS = 2


def slow_launch(cwd, hold):
    """A libexec folder whose lower half comes late on rank 1: rank 0 waits for it in the real MPI_Init."""
    real = BUILD / "libexec" / "fermata"
    ours = cwd / "libexec"
    ours.mkdir()
    os.symlink(real / "noded", ours / "noded")
    script = ours / "lower-openmpi"
    script.write_text(f"#!/bin/sh\n[ ${{PMIX_RANK:-$PMI_RANK}} = 0 ] || until [ -e {hold} ]; do sleep 0.05; done\n"
                      f"exec {real}/lower-openmpi \"$@\"\n")
    script.chmod(0o755)
    return dict(os.environ, FERMATA_LIBEXEC=str(ours))


def checkpoint_in_background(job, *options):
    return subprocess.Popen([str(FERMATA), "checkpoint", "--job", job.name, "--json", "--timeout", "90s", *options],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def waits(job):
    return json.loads(call("status", "--job", job.name, "--waits", "--json").stdout)["diagnosis"]


def stands_in_init(job):
    job.wait_until(lambda: call("status", "--job", job.name).returncode == 0, "the job")
    job.wait_until(lambda: "rank 0" in waits(job), "rank 0 in MPI_Init")


def asked(job):
    job.wait_until(lambda: job.status()["phase"] not in ("launcher", "ranks", "running"), "the request")


def committed(job, client):
    out, err = client.communicate(timeout=harness.PATIENCE)
    check(client.returncode == 0, f"exit status {client.returncode}: {out}{err}\n{job.errors()}")
    return json.loads(out)["generation"]


def both_continue(cwd, want, env=None):
    for mpi in ("openmpi", "mpich"):
        with Job.restart(cwd, mpi=mpi, generation=1, env=env) as job:
            got = [line for line in job.finish() if "right" in line]
            check(got == want, f"on {mpi}: {got}, wanted {want}")


def native_verdict(mode, cwd):
    lines = harness.native([PROGRAMS / "early.openmpi", mode], RANKS, "openmpi", cwd)
    want = [line for line in lines if "right" in line]
    check(len(want) == 1, f"the native run says {lines}")
    return want


def launching(cwd):
    """Ranks inside the real MPI_Init or not even there: in vain with a short timeout, then with success."""
    want, hold = native_verdict("launching", cwd), cwd / "go"
    with Job.run([PROGRAMS / "early.openmpi", "launching"], RANKS, cwd, mpi="openmpi", env=slow_launch(cwd, hold)) as job:
        job.wait_until(lambda: call("status", "--job", job.name).returncode == 0, "the job")
        done = call("checkpoint", "--job", job.name, "--timeout", "1s")
        check(done.returncode == 4 and "none of 2 ranks has reported" in done.stderr, f"{done.returncode} {done.stderr}")
        job.wait_until(lambda: "rank 0" in waits(job), "rank 0 in MPI_Init")
        client = checkpoint_in_background(job, "--stop")
        asked(job)
        hold.touch()
        committed(job, client)
        before = [line for line in job.finish(expected=85) if "right" in line]
    # Once begun it is quick: the checkpoint may find it waiting in MPI_Finalize.
    both_continue(cwd, [] if before else want)


def start_timeout(cwd):
    """A start that hangs ends in a diagnosis."""
    done = subprocess.run([str(FERMATA), "run", "-n", "2", "--start-timeout", "3s", "--", str(PROGRAMS / "early.openmpi"),
                           "x"], cwd=cwd, env=slow_launch(cwd, cwd / "never"), capture_output=True, text=True,
                          timeout=harness.PATIENCE, stdin=subprocess.DEVNULL)
    check(done.returncode == 1, f"exit status {done.returncode}: {done.stderr}")
    for words in ("did not start in 3 s", "none of 2 ranks has reported", "is in the library's MPI_Init"):
        check(words in done.stderr, f"'{words}' is not in: {done.stderr}")


def held_program(cwd, mode, late):
    """`late`: the program is let go while the checkpoint waits for it; else it is saved while it stands."""
    want, hold = native_verdict(mode, cwd), cwd / "go"
    env = dict(os.environ, HOLD_FILE=str(hold), SLOW_RANK="1")
    with Job.run([PROGRAMS / "early.openmpi", mode], RANKS, cwd, mpi="openmpi", env=env) as job:
        job.wait_until(lambda: job.lines().count("READY") == (2 if mode == "before_init" else 1), "READY")
        if late:
            if mode == "meanwhile":
                job.wait_until(lambda: "MPI_Barrier" in waits(job), "rank 0 in MPI_Barrier")
            done = call("checkpoint", "--job", job.name, "--timeout", "1s")
            check(done.returncode == 4, f"{done.returncode} {done.stderr}")
            if mode == "loading":
                check("rank 1" in done.stderr and "being loaded" in done.stderr, done.stderr)
            client = checkpoint_in_background(job)
            asked(job)
            hold.touch()
            committed(job, client)
        else:
            job.checkpoint()
            hold.touch()
        check([line for line in job.finish() if "right" in line] == want, job.output())
    if not late:
        both_continue(cwd, want, env)


def loading(cwd):
    held_program(cwd, "loading", True)


def before_init(cwd):
    held_program(cwd, "before_init", False)


def meanwhile(cwd):
    held_program(cwd, "meanwhile", True)


def sigterm(cwd):
    """From a batch system that is in a hurry: a program is saved as soon as it runs, a restart gives up at once what it
    has not begun. Both are to be continued."""
    want, hold = native_verdict("launching", cwd), cwd / "go"
    env = slow_launch(cwd, hold)
    with Job.run([PROGRAMS / "early.openmpi", "launching"], RANKS, cwd, mpi="openmpi", env=env) as job:
        stands_in_init(job)
        job.process.send_signal(signal.SIGTERM)
        asked(job)
        hold.touch()
        before = [line for line in job.finish(expected=85) if "right" in line]
    hold.unlink()
    with Job.restart(cwd, mpi="openmpi", env=env) as job:
        stands_in_init(job)
        job.process.send_signal(signal.SIGTERM)
        job.finish(expected=85)
        # Of tasks that are in MPI_Init, and hear nothing, srun writes two lines when it ends them.
        said = "".join(line for line in job.errors().splitlines(True) if harness.LAUNCHER != "srun" or line.startswith("fermata: "))
        check(said.endswith("fermata: stopped before it went on from gen-000001: `fermata restart` continues it\n"), job.errors())
    both_continue(cwd, [] if before else want)


def reading(pid):
    """Does the process read the image of rank 1?"""
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{fd}").endswith("rank-000001.img") for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:  # a descriptor, or the process, is gone
        return False


def restart_phase(cwd):
    """A rank that hangs while it loads its image: status says where the restart stands, and whom it waits for."""
    program, noted = [PROGRAMS / "steady.openmpi", "150", "192"], cwd / "pid"
    env = dict(os.environ, STEADY_PAUSE="20000")
    want = harness.native(program, RANKS, "openmpi", cwd)
    with Job.run(program, RANKS, cwd, mpi="openmpi", env=env) as job:
        job.wait_until(lambda: len(job.lines()) > 5, "the first steps")
        job.checkpoint("--stop")
        before = job.finish(expected=85)
    real, ours = BUILD / "libexec" / "fermata", cwd / "libexec"
    ours.mkdir()
    os.symlink(real / "noded", ours / "noded")
    script = ours / "lower-openmpi"
    script.write_text(f"#!/bin/sh\n[ ${{PMIX_RANK:-$PMI_RANK}} = 0 ] || {{ echo $$ > {noted}.new; mv {noted}.new {noted}; }}\n"
                      f"exec {real}/lower-openmpi \"$@\"\n")
    script.chmod(0o755)
    with Job.restart(cwd, mpi="openmpi", env=dict(env, FERMATA_LIBEXEC=str(ours))) as job:
        while not noted.exists():
            check(job.process.poll() is None, job.errors())
        pid = int(noted.read_text())
        while not reading(pid):
            check(job.process.poll() is None, job.errors())
        os.kill(pid, signal.SIGSTOP)
        try:
            job.wait_until(lambda: job.status()["phase"] == "load", "the phase")
            status = job.status()
            check(status["state"] == "starting" and status["behind"]["ranks"] == 2, status)
            job.wait_until(lambda: "in phase load" in job.status()["missing"], "who is missing")
        finally:
            os.kill(pid, signal.SIGCONT)
        job.wait_until(lambda: job.status()["phase"] == "running", "the job to run")
        check(before + job.finish() == want, f"{before} {job.output()}, wanted {want}")


CASES = {function.__name__: function for function in (launching, start_timeout, loading, before_init, meanwhile, sigterm,
                                                          restart_phase)}


def run(name):
    with Scratch(name) as cwd:
        CASES[name](cwd)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
