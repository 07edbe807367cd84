#!/usr/bin/env python3
"""bench/gpu without a GPU: it says so; and with a pretended driver (tests/programs/pretended_cuda.c), whose device is host
memory, all of its steps go through, checkpoints and restarts by Fermata included.

    gpu_test.py
"""
import os
import pathlib
import subprocess
import sys

import harness
from harness import Scratch, check

HERE = pathlib.Path(__file__).resolve()
RUN = HERE.parents[2] / "bench" / "gpu" / "run.py"


def experiment(*words, **env):
    return subprocess.run([sys.executable, RUN, "--mib", "2", "--patience", str(harness.PATIENCE), *words], capture_output=True, text=True,
                          env=dict(os.environ, FERMATA_BUILD=str(harness.BUILD), **env), stdin=subprocess.DEVNULL)


def main():
    with Scratch("gpu") as cwd:
        done = experiment()
        # (There may be a driver.)
        check(done.returncode in (0, 1) or (done.returncode == 77 and done.stdout.startswith("skipped: no GPU: ")),
              f"{done.returncode}: {done.stdout}{done.stderr}")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", cwd / "libcuda.so.1", HERE.parents[1] / "programs" / "pretended_cuda.c"],
                       check=True)
        for mpi in ("openmpi", "mpich"):
            (cwd / mpi).mkdir()
            done = experiment("--mpi", mpi, LD_LIBRARY_PATH=str(cwd), PRETENDED_CUDA=str(cwd / mpi))
            check(done.returncode == 0 and "6 of 6 steps hold" in done.stdout, f"{mpi}: {done.returncode}: {done.stdout}{done.stderr}")
        # What does not come back is noticed.
        done = experiment("--mpi", "mpich", LD_LIBRARY_PATH=str(cwd), PRETENDED_CUDA=str(cwd / "nowhere"))
        check(done.returncode != 0, done.stdout)


if __name__ == "__main__":
    sys.exit(harness.verdict("gpu", main))
