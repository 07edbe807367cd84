#!/usr/bin/env python3
"""Dynamic processes: what they compute is what it is natively; a checkpoint is refused in one line while the job is
connected to processes outside of it, and works, with restarts on both libraries, when it is not any more.

    dynamic_test.py CASE [openmpi|mpich]      the cases are in tests/programs/dynamic.c; and fortran, jobs

Open MPI 4.1.4 itself stands still now and then while it connects processes, natively too (docs/internals/objects.md):
a run that stands in such a call of the library for 40 s is begun again, twice at most, and that is said.

Fermata's own launcher connects no processes (docs/limits.md): under it each case is refused in one line.
"""
import os
import subprocess
import sys
import time

import harness
from harness import PROGRAMS, Job, Scratch, call, check

RANKS = 2
LIBRARY_STANDS = 40.0
# Case: (line at which a checkpoint has to be refused, variable that lets it go on, what the refusal says).
REFUSED = {
    "spawn": ("CONNECTED", "HOLD_CONNECTED", ["connected to processes outside of the job by MPI_Comm_spawn"]),
    "ports": ("PORT", "HOLD_PORT", ["a port is open (MPI_Open_port)", "MPI_Close_port"]),
    "accepting": ("ACCEPTING", "HOLD_ACCEPT", ["inside MPI_Comm_accept"]),
}
# What a restart on the other library says otherwise: children run without Fermata, so on the program's own library only.
ELSEWHERE = {"again: worked": "again: refused"}


class Stands(Exception):
    """The library stands still in a call that connects processes."""


def patiently(job, done):
    """Until done(), or the job has ended."""
    end = time.monotonic() + LIBRARY_STANDS
    while not done() and job.process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    if not done() and job.process.poll() is None:
        where = call("status", "--job", job.name, "--waits", timeout=30).stdout
        if any(f"in MPI_Comm_{name}" in where for name in ("spawn", "accept", "connect", "join")):
            raise Stands(where.strip())


def finish(job):
    patiently(job, lambda: False)
    return job.finish()


def wait_line(job, line):
    patiently(job, lambda: line in job.lines())
    job.wait_line(line)


def native_results(program, built_for, cwd):
    harness.PATIENCE = LIBRARY_STANDS
    try:
        return results(harness.native(program, RANKS, built_for, cwd))
    except subprocess.TimeoutExpired as error:
        raise Stands(f"the native run: {error}") from error


def results(lines):
    return [line for line in lines if "right" in line or "again" in line or "missing" in line]


def refused(job, words):
    done = call("checkpoint", "--job", job.name, "--timeout", "60s")
    said = done.stderr.strip().splitlines()
    check(done.returncode == 3 and len(said) == 1 and all(word in said[0] for word in words),
          f"not refused in one line with {words}: {done.returncode} {done.stdout}{done.stderr}")


def run(case, built_for):
    with Scratch(f"dynamic-{case}") as cwd:
        program = [PROGRAMS / f"dynamic.{built_for}", case]
        native = native_results(program, built_for, cwd)
        check(any("right" in line for line in native), f"the native run says {native}")
        hold = cwd / "go"
        env = dict(os.environ, HOLD_FILE=str(hold))
        line, variable, words = REFUSED.get(case, (None, None, None))
        if line:
            env[variable] = str(cwd / "go-on")
        extra = ["--mpiexec-args=--oversubscribe"] if built_for == "openmpi" else []
        with Job.run(program, RANKS, cwd, mpi=built_for, env=env, extra=extra) as job:
            if line:
                wait_line(job, line)
                for _ in range(3):
                    refused(job, words)
                (cwd / "go-on").touch()
            wait_line(job, "READY")
            job.checkpoint()
            hold.touch()
            got = results(finish(job))
            check(got == native, f"after the checkpoint: {got}, wanted {native}")
        for mpi in ("openmpi", "mpich"):
            # Said before the checkpoint.
            want = [said for said in native if said != "missing: 2"]
            if mpi != built_for:
                want = [ELSEWHERE.get(said, said) for said in want]
            with Job.restart(cwd, mpi=mpi, generation=1, extra=extra if mpi == built_for else []) as job:
                got = results(finish(job))
                check(got == want, f"on {mpi}: {got}, wanted {want}; stderr: {job.errors()}")


def fortran(built_for):
    """Arguments of spawned programs, as Fortran passes them."""
    with Scratch("dynamic-fortran") as cwd:
        program = [PROGRAMS / f"dynamic_mpif.{built_for}"]
        native = native_results(program, built_for, cwd)
        check(len(native) == 3, f"the native run says {native}")
        with Job.run(program, RANKS, cwd, mpi=built_for, extra=["--mpiexec-args=--oversubscribe"]) as job:
            got = results(finish(job))
            check(got == native, f"{got}, wanted {native}")


def jobs():
    """Two jobs connect, by Open MPI's name server; each is checkpointed afterwards and continued."""
    with Scratch("dynamic-jobs") as cwd:
        uri, program = cwd / "server.uri", PROGRAMS / "dynamic.openmpi"
        extra = [f"--mpiexec-args=--oversubscribe --ompi-server file:{uri}"]
        env = dict(os.environ, HOLD_FILE=str(cwd / "go"), HOLD_CONNECTED=str(cwd / "go-on"))
        server = subprocess.Popen(["ompi-server", "--no-daemonize", "-r", str(uri)], stdin=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 30
            while not (uri.exists() and uri.stat().st_size) and time.monotonic() < end:
                time.sleep(0.05)
            with Job.run([program, "server"], RANKS, cwd, "openmpi", "server", extra, env) as one, \
                 Job.run([program, "client"], RANKS, cwd, "openmpi", "client", extra, env) as other:
                both = {"server": one, "client": other}
                for job in both.values():
                    wait_line(job, "CONNECTED")
                    refused(job, ["connected to processes outside of the job by MPI_Comm_"])
                (cwd / "go-on").touch()
                for job in both.values():
                    wait_line(job, "READY")
                    job.checkpoint()
                (cwd / "go").touch()
                wanted = {name: results(finish(job)) for name, job in both.items()}
            check(all(len(lines) == 1 for lines in wanted.values()), f"the jobs say {wanted}")
            for name, lines in wanted.items():
                with Job.restart(cwd, mpi="mpich", ckpt=name) as job:
                    got = results(finish(job))
                    check(got == lines, f"{name} continued: {got}, wanted {lines}")
        finally:
            server.terminate()
            server.wait()


def not_by_own(case):
    """One line says why, and what to do; the job ends at once where the program takes errors as fatal."""
    program, extra = [PROGRAMS / "dynamic.openmpi", case], []
    if case == "fortran":
        program = [PROGRAMS / "dynamic_mpif.openmpi"]
    if case == "jobs":
        program[1], extra = "server", ["--mpiexec-args=--ompi-server file:none"]
    with Scratch(f"dynamic-{case}") as cwd, Job.run(program, RANKS, cwd, mpi="openmpi", extra=extra) as job:
        code = job.end()
        said = [line for line in job.errors().splitlines() if "--launcher mpiexec" in line]
        ranks = {line.split(":")[1] for line in said}
        check(code != 0 and 1 <= len(said) <= RANKS and len(ranks) == len(said), f"{case}: {code}: {job.errors()}")


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    case = sys.argv[1]
    if harness.LAUNCHER == "own" and case != "missing":
        return harness.verdict(case, lambda: not_by_own(case))

    def again():
        for more in (2, 1, 0):
            try:
                if case == "fortran":
                    return fortran("openmpi")
                if case == "jobs":
                    return jobs()
                return run(case, sys.argv[2] if len(sys.argv) > 2 else "openmpi")
            except Stands as stands:
                print(f"the library stands still; {more} more: {stands}", flush=True)
        raise harness.Failure("the library stood still each time")

    return harness.verdict(case, again)


if __name__ == "__main__":
    sys.exit(main())
