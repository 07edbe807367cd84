#!/usr/bin/env python3
"""Latency of single MPI calls, native and under Fermata in turns, as ratios of medians.

    latency.py [--rounds N] [--mpi openmpi|mpich|both] [--json FILE]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FERMATA = ROOT / "build" / "bin" / "fermata"
# Budgets of docs/performance.md: as a ratio, or as nanoseconds added.
BUDGETS = {"ping_pong_8B": "1.05x", "isend_irecv_waitall_8B": "1.15x", "allreduce_4B": "+40 ns", "bcast_4B": "+40 ns",
           "barrier": "+40 ns", "iallreduce_4B": "1.10x", "iprobe_self": "+30 ns"}


def once(words, cwd):
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=True,
                          stdin=subprocess.DEVNULL)
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--mpi", default="both")
    parser.add_argument("--json")
    options = parser.parse_args()
    table = {}
    with tempfile.TemporaryDirectory(prefix="fermata-bench-") as cwd:
        for mpi in ["openmpi", "mpich"] if options.mpi == "both" else [options.mpi]:
            program = f"{cwd}/latency.{mpi}"
            subprocess.run([f"mpicc.{mpi}", "-O2", "-Wno-stringop-overflow", ROOT / "bench" / "latency.c", "-o", program], check=True)
            runs = {"native": [], "fermata": []}
            for _ in range(options.rounds):
                runs["native"].append(once([f"mpiexec.{mpi}", "-n", "2", program, str(options.batches)], cwd))
                runs["fermata"].append(once([FERMATA, "run", "-n", "2", "--mpi", mpi, "--ckpt-dir", f"{cwd}/ckpt", "--",
                                             program, str(options.batches)], cwd))
            print(f"\n{mpi}: medians of {options.rounds} runs in turns, ns per operation")
            print(f"{'':24}{'native':>9}{'fermata':>9}{'ratio':>8}{'added':>8}  budget")
            for name in runs["native"][0]:
                native = statistics.median(run[name] for run in runs["native"])
                fermata = statistics.median(run[name] for run in runs["fermata"])
                # Ratios of neighbours in time: noise of the machine cancels.
                ratio = statistics.median(f[name] / n[name] for f, n in zip(runs["fermata"], runs["native"]))
                table[f"{mpi} {name}"] = {"native_ns": native, "fermata_ns": fermata, "ratio": ratio}
                print(f"{name:24}{native:9.1f}{fermata:9.1f}{ratio:8.3f}{fermata - native:+8.1f}  {BUDGETS[name]}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
