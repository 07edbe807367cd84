#!/usr/bin/env python3
"""A Java program with MPI by JNI (tests/programs/java): natively, resumed, and restarted on both libraries.

    java_test.py openmpi|mpich
"""
import os
import pathlib
import shutil
import subprocess
import sys

import harness
from harness import Job, Scratch, check

SOURCES = pathlib.Path(__file__).resolve().parents[1] / "programs" / "java"


def build(mpi, cwd):
    """The words of the program."""
    home = pathlib.Path(shutil.which("javac")).resolve().parents[1]
    subprocess.run([home / "bin" / "javac", "-d", cwd, SOURCES / "Ring.java"], check=True)
    subprocess.run([f"mpicc.{mpi}", "-shared", "-fPIC", f"-I{home}/include", f"-I{home}/include/linux", SOURCES / "ring.c", "-o",
                    cwd / "libring.so"], check=True)
    return [home / "bin" / "java", "-Xmx256m", "-cp", cwd, "Ring", cwd / "libring.so"]


def run(mpi):
    with Scratch("java") as cwd:
        program = build(mpi, cwd)
        want = ["READY", "right"]
        # Natively UCX (MPICH) catches SIGSEGV, which the JVM uses to find null pointers.
        native = harness.native(program, 2, mpi, cwd, env=dict(os.environ, UCX_ERROR_SIGNALS=""))
        check(native == want, f"native: {native}")
        hold = cwd / "go"
        env = dict(os.environ, HOLD_FILE=str(hold))
        Job.stopped_at_ready(program, 2, cwd, mpi, env)
        hold.touch()
        for to in ("openmpi", "mpich"):
            with Job.restart(cwd, mpi=to, env=env) as job:
                check(job.finish() == ["right"], f"on {to}: {job.output()}")
        hold.unlink()
        with Job.run(program, 2, cwd, mpi=mpi, ckpt="resumed", env=env) as job:
            job.wait_line("READY")
            job.checkpoint()
            hold.touch()
            check(job.finish() == want, f"resumed: {job.output()}")


if __name__ == "__main__":
    if shutil.which("javac") is None:
        print("skipped: no javac")
        sys.exit(77)
    sys.exit(harness.verdict("java", lambda: run(sys.argv[1])))
