#!/usr/bin/env python3
"""The main job: Debian's LAMMPS, checkpointed at a random moment, killed, continued on Open MPI and on MPICH.

Runs natively first, prints the final thermodynamic table of all three beside each other with the checkpoint's phases,
and fails unless they are identical to the last digit.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FERMATA = ROOT / "build" / "bin" / "fermata"
THERMO = re.compile(r"^\s+\d+(\s+-?[\d.]+(e[-+]\d+)?){5}\s*$")
LIMIT = 600  # seconds; nothing here takes a tenth of it

os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")


def thermo(text):
    return [line for line in text.splitlines() if THERMO.match(line)]


def fermata(*words, cwd):
    done = subprocess.run([str(FERMATA), *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=LIMIT,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"fermata {' '.join(map(str, words))} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stdout


def interrupted_run(lmp, ranks, cwd, expected_lines, rng):
    """Runs under Fermata, checkpoints at a random moment, kills every rank with SIGKILL."""
    name = f"melt-{os.getpid()}"
    words = [str(FERMATA), "run", "-n", str(ranks), "--job", name, "--ckpt-dir", "ckpt", "--", *lmp]
    with open(cwd / "run.out", "w") as out, open(cwd / "run.err", "w") as err:
        job = subprocess.Popen(words, cwd=cwd, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
    when = rng.uniform(0.1, 0.8)
    deadline = time.monotonic() + LIMIT
    while len(thermo((cwd / "run.out").read_text())) < when * expected_lines:
        if job.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"the run ended ({job.poll()}) before its checkpoint:\n{(cwd / 'run.err').read_text()}")
        time.sleep(0.002)
    time.sleep(rng.uniform(0, 0.1))
    said = json.loads(fermata("checkpoint", "--job", name, "--json", cwd=cwd))
    for rank in json.loads(fermata("status", "--job", name, "--json", cwd=cwd))["ranks"]:
        os.kill(rank["pid"], signal.SIGKILL)
    code = job.wait(LIMIT)
    print(f"checkpoint {said['generation']}: {said['bytes'] / 2**20:.1f} MiB; every rank killed, the run ended with {code}")
    print("phases: " + "  ".join(f"{phase} {seconds * 1e3:.1f} ms" for phase, seconds in said["phases"].items()))
    return thermo((cwd / "run.out").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 30)
    rng = random.Random(seed)
    cwd = pathlib.Path(tempfile.mkdtemp(prefix="fermata-demo-"))
    shutil.copy(ROOT / "examples" / "in.melt", cwd)
    lmp = ["lmp", "-in", "in.melt", "-log", "none", "-nocite", "-var", "steps", str(options.steps)]
    print(f"LAMMPS, Lennard-Jones melt, 32,000 atoms, {options.steps} steps, {options.ranks} ranks; seed {seed}")

    done = subprocess.run(["mpiexec.openmpi", "--oversubscribe", "-n", str(options.ranks), *lmp], cwd=cwd, text=True,
                          capture_output=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
    tables = {"native": thermo(done.stdout)}
    if done.returncode != 0 or not tables["native"]:
        sys.exit(f"the native run failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    interrupted_run(lmp, options.ranks, cwd, len(tables["native"]), rng)
    for mpi in ("openmpi", "mpich"):
        start = time.monotonic()
        out = fermata("restart", "--ckpt-dir", "ckpt", "--generation", 1, "--mpi", mpi, cwd=cwd)
        tables[f"restart, {mpi}"] = thermo(out)
        print(f"continued on {mpi}: {len(thermo(out))} of {len(tables['native'])} lines in {time.monotonic() - start:.1f} s")

    print("\nstep, temperature, potential, kinetic, total energy, pressure at the end:")
    for name, table in tables.items():
        for line in table[-3:]:
            print(f"{name:>18} {line}")
    for name, table in tables.items():
        if not table or table != tables["native"][-len(table):]:
            sys.exit(f"DIFFERENT: {name}; files are in {cwd}")
    print("identical to the last digit")
    shutil.rmtree(cwd)


if __name__ == "__main__":
    main()
