#!/usr/bin/env python3
"""Latency of single MPI calls, native and under Fermata, batch by batch in turns, as medians of ratios.

    latency.py [--rounds N] [--batches N] [--mpi openmpi|mpich|both] [--json FILE]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

from turns import FERMATA, ROOT, in_turns, interval, ratio

# Budgets, which docs/performance.md shows: a ratio, or nanoseconds added.
BUDGETS = {"ping_pong": "1.05x", "isend_irecv_waitall": "1.15x", "allreduce": "+40 ns", "bcast": "+40 ns",
           "barrier": "+40 ns", "iallreduce": "1.10x", "iprobe_self": "+30 ns"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="jobs of each kind")
    parser.add_argument("--batches", type=int, default=100, help="of each call in each job")
    parser.add_argument("--mpi", default="both")
    parser.add_argument("--json")
    options = parser.parse_args()
    table = {}
    with tempfile.TemporaryDirectory(prefix="fermata-bench-") as cwd:
        for mpi in ["openmpi", "mpich"] if options.mpi == "both" else [options.mpi]:
            program = f"{cwd}/latency.{mpi}"
            subprocess.run([f"mpicc.{mpi}", "-O2", "-Wno-stringop-overflow", ROOT / "bench" / "latency.c", "-o", program], check=True)
            words = [program, str(options.batches)]
            found = in_turns({"native": [f"mpiexec.{mpi}", "-n", "2", *words],
                              "fermata": [FERMATA, "run", "-n", "2", "--mpi", mpi, "--ckpt-dir", f"{cwd}/ckpt", "--", *words]},
                             2, cwd, options.rounds)
            print(f"\n{mpi}: medians of {options.rounds} x {options.batches} batches in turns, ns per operation")
            print(f"{'':24}{'native':>9}{'fermata':>9}{'ratio':>8}{'95 %':>16}{'added':>8}  budget")
            for (name, size), times in found.items():
                native, fermata = (statistics.median(times[which]) for which in ("native", "fermata"))
                pair = times["fermata"], times["native"]
                row = {"native_ns": native, "fermata_ns": fermata, "ratio": ratio(*pair), "interval": interval(*pair)}
                table[f"{mpi} {name} {size}"] = row
                print(f"{name:20}{size:4}{native:9.1f}{fermata:9.1f}{row['ratio']:8.3f}"
                      "{:8.3f} ..{:6.3f}".format(*row["interval"]) + f"{fermata - native:+8.1f}  {BUDGETS[name]}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
