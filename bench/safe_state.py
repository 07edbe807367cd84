#!/usr/bin/env python3
"""From the request of a checkpoint to the moment all ranks stand still, phase by phase, under load.

    safe_state.py [--interval T] [--mpi openmpi|mpich|both] [--json FILE]      uses the programs in build/tests/programs

Each program runs with checkpoints at an interval; `fermata list --json` tells the phases of each.
"""
import argparse
import json
import pathlib
import statistics
import tempfile

from turns import BUILD, FERMATA, once

PROGRAMS = {
    "messages, collectives, gaps": ["mix", "40", "20000"],
    "non-blocking collectives": ["cg", "40", "384", "40"],
    "non-blocking, small": ["cg", "40", "64", "1500"],
    "4 threads calling MPI": ["threads", "20", "40", "500000"],
    "OpenMP, long computing": ["hybrid", "30", "300"],
}
REACHING = ("targets", "converge", "freeze", "drain", "suspend")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interval", default="0.2s")
    parser.add_argument("--mpi", default="both")
    parser.add_argument("--json")
    options = parser.parse_args()
    table = {}
    print(f"{'milliseconds: median, worst':40}{'count':>6} {'sum':>15}" + "".join(f"{p:>15}" for p in REACHING))
    for mpi in ["openmpi", "mpich"] if options.mpi == "both" else [options.mpi]:
        for name, (program, *arguments) in PROGRAMS.items():
            with tempfile.TemporaryDirectory(prefix="fermata-bench-") as cwd:
                once([FERMATA, "run", "-n", "2", "--mpi", mpi, "--ckpt-dir", "ckpt", "--interval", options.interval,
                      "--keep", "all", "--", BUILD / "tests" / "programs" / f"{program}.{mpi}", *arguments], cwd)
                listed = json.loads(once([FERMATA, "list", "--ckpt-dir", "ckpt", "--json"], cwd)[0])
            phases = [dict(g["phases"]) for g in (listed if isinstance(listed, list) else listed["generations"])]
            row = {p: [1000 * g.get(p, 0) for g in phases] for p in REACHING}
            row["sum"] = [sum(values) for values in zip(*row.values())]
            table[f"{mpi} {name}"] = row
            print(f"{mpi + ' ' + name:40}{len(phases):6} " + "".join(
                f"{statistics.median(row[p]):8.2f}{max(row[p]):7.2f}" for p in ("sum", *REACHING)), flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
