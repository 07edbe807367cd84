#!/usr/bin/env python3
"""Latency of single MPI calls, native and under Fermata in turns, as ratios of medians.

    latency.py [--rounds N] [--mpi openmpi|mpich|both] [--json FILE]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

from turns import FERMATA, ROOT, once, ratio

# Budgets of docs/performance.md: as a ratio, or as nanoseconds added.
BUDGETS = {"ping_pong_8B": "1.05x", "isend_irecv_waitall_8B": "1.15x", "allreduce_4B": "+40 ns", "bcast_4B": "+40 ns",
           "barrier": "+40 ns", "iallreduce_4B": "1.10x", "iprobe_self": "+30 ns"}


def latencies(words, cwd):
    lines = once(words, cwd)[0].splitlines()
    return {name: float(value) for name, value in (line.split() for line in lines)}


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
                runs["native"].append(latencies([f"mpiexec.{mpi}", "-n", "2", program, str(options.batches)], cwd))
                runs["fermata"].append(latencies([FERMATA, "run", "-n", "2", "--mpi", mpi, "--ckpt-dir", f"{cwd}/ckpt", "--",
                                             program, str(options.batches)], cwd))
            print(f"\n{mpi}: medians of {options.rounds} runs in turns, ns per operation")
            print(f"{'':24}{'native':>9}{'fermata':>9}{'ratio':>8}{'added':>8}  budget")
            for name in runs["native"][0]:
                native = statistics.median(run[name] for run in runs["native"])
                fermata = statistics.median(run[name] for run in runs["fermata"])
                of_native = ratio(*([run[name] for run in runs[which]] for which in ("fermata", "native")))
                table[f"{mpi} {name}"] = {"native_ns": native, "fermata_ns": fermata, "ratio": of_native}
                print(f"{name:24}{native:9.1f}{fermata:9.1f}{of_native:8.3f}{fermata - native:+8.1f}  {BUDGETS[name]}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
