#!/usr/bin/env python3
"""From the request of a checkpoint to the moment all ranks stand still, phase by phase, under load.

    safe_state.py [--interval T] [--mpi openmpi|mpich] [--json FILE]      uses the programs in build/tests/programs

Each program runs with checkpoints at an interval; `fermata list --json` tells the phases of each.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("FERMATA_BUILD", ROOT / "build"))
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
    parser.add_argument("--mpi", default="openmpi")
    parser.add_argument("--json")
    options = parser.parse_args()
    fermata = BUILD / "bin" / "fermata"
    table = {}
    print(f"{'milliseconds: median, worst':32}{'count':>6} {'sum':>15}" + "".join(f"{p:>15}" for p in REACHING))
    for name, (program, *arguments) in PROGRAMS.items():
        cwd = pathlib.Path(tempfile.mkdtemp(prefix="fermata-bench-"))
        subprocess.run([fermata, "run", "-n", "2", "--mpi", options.mpi, "--ckpt-dir", cwd / "ckpt", "--interval",
                        options.interval, "--keep", "all", "--", BUILD / "tests" / "programs" / f"{program}.{options.mpi}",
                        *arguments], cwd=cwd, capture_output=True, timeout=600, check=True, stdin=subprocess.DEVNULL)
        said = subprocess.run([fermata, "list", "--ckpt-dir", cwd / "ckpt", "--json"], capture_output=True, text=True,
                              check=True).stdout
        listed = json.loads(said)
        phases = [dict(g["phases"]) for g in (listed if isinstance(listed, list) else listed["generations"])]
        shutil.rmtree(cwd)
        row = {p: [1000 * g.get(p, 0) for g in phases] for p in REACHING}
        row["sum"] = [sum(values) for values in zip(*row.values())]
        table[name] = row
        print(f"{name:32}{len(phases):6} " + "".join(
            f"{statistics.median(row[p]):8.2f}{max(row[p]):7.2f}" for p in ("sum", *REACHING)), flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
