#!/usr/bin/env python3
"""`--mpi PATH`: a library with MPICH's ABI somewhere else, here Debian's under the names it has elsewhere; what is missing there is said.
What a library does in atexit(), as MPICH 5 does, is done."""
import os
import pathlib
import shutil
import subprocess
import sys

import harness
from harness import PROGRAMS, Job, Scratch, check


def library():
    """Debian's libmpich.so.12, as the loader finds it."""
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return next(line.split("=> ")[1] for line in cache.splitlines() if line.strip().startswith("libmpich.so.12"))


def refused(cwd, path, words):
    done = harness.call("run", "-n", 2, "--mpi", path, "--", PROGRAMS / "random.mpich", cwd=cwd)
    check(done.returncode == 2 and words in done.stderr, f"{path}: {done.returncode} {done.stderr}")


AT_EXIT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int PMPI_Init_thread(int*, char***, int, int*);
static void gone(void) { FILE* file = fopen(getenv("GONE"), "a"); fprintf(file, "%d\n", getpid()); fclose(file); }
int MPI_Init_thread(int* c, char*** v, int wanted, int* got) { atexit(gone); return PMPI_Init_thread(c, v, wanted, got); }
"""


def at_exit(cwd):
    """The lower half calls MPI_Init_thread, the program MPI_Init; the preloaded one stands for the library."""
    (cwd / "gone.c").write_text(AT_EXIT)
    subprocess.run(["gcc", "-shared", "-fPIC", cwd / "gone.c", "-o", cwd / "gone.so"], check=True)
    with Job.run([PROGRAMS / "trap.mpich", "dup_of_world"], 2, cwd, mpi="mpich",
                 env=dict(os.environ, FERMATA_LOWER_PRELOAD=str(cwd / "gone.so"), GONE=str(cwd / "gone"))) as job:
        job.finish()
    lines = (cwd / "gone").read_text().split()
    check(len(lines) == len(set(lines)) == 2, f"exit handlers: {lines}")


def run():
    with Scratch("mpi-path") as cwd:
        tree = cwd / "elsewhere"
        refused(cwd, tree, "no MPI library at")
        (tree / "lib").mkdir(parents=True)
        (tree / "bin").mkdir()
        refused(cwd, tree, "lib/libmpi.so.12 (MPICH's ABI)")
        (tree / "lib" / "libmpi.so.12").symlink_to(pathlib.Path(library()).resolve())
        if harness.LAUNCHER != "srun":  # which is no part of the library
            refused(cwd, tree, "has no launcher")
        launcher = tree / "bin" / "mpiexec"  # not a link: Hydra looks for its other half beside itself
        launcher.write_text(f'#!/bin/sh\nexec {shutil.which("mpiexec.mpich")} "$@"\n')
        launcher.chmod(0o755)
        program = [PROGRAMS / "random.mpich", "3", "200", "4000"]
        native = harness.native(program, 2, "mpich", cwd)
        with Job.run(program, 2, cwd, mpi=tree) as job:
            job.wait_until(job.lines, "a line")
            job.checkpoint("--stop")
            check(job.end() == 85, f"not stopped: {job.errors()}")
        with Job.restart(cwd, mpi=tree) as job:
            lines = job.finish()
        check(lines[-1] == native[-1], f"{lines[-1]}, native {native[-1]}")
        at_exit(cwd)
        return lines[-1]


if __name__ == "__main__":
    sys.exit(harness.verdict("mpi_path", run))
