#!/usr/bin/env python3
"""What a save by libfermata costs beside a plain copy (until the program goes on) and beside plain write and fsync of the same
bytes (until it is durable), in turns in one run: medians of the rounds' ratios, and where they lie with 95 %.

    bench/api.py [--mpi mpich|openmpi] [--ranks 2] [--mib 256] [--rounds 15] [--where DIR] [--options WORDS]… [--json FILE]

The goals: staged at most 1.2 times memcpy; a file per rank at most 1.1 times write + fsync.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from turns import BUILD, ENVIRONMENT, ROOT, interval, ratio


def measure(options, program, words):
    over = ["--oversubscribe"] if options.mpi == "openmpi" else []
    with tempfile.TemporaryDirectory(prefix="api-bench-", dir=options.where) as scratch:
        done = subprocess.run([f"mpiexec.{options.mpi}", *over, "-n", str(options.ranks), program, scratch, str(options.mib), str(options.rounds),
                               *([words] if words else [])], env=ENVIRONMENT, text=True, capture_output=True, timeout=1800, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise SystemExit(done.stderr or done.stdout)
    return list(zip(*([float(word) for word in line.split()] for line in done.stdout.splitlines())))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", choices=("mpich", "openmpi"), default="mpich")
    for name, value in {"ranks": 2, "mib": 256, "rounds": 15}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--where", default=os.environ.get("TMPDIR", "/tmp"))
    parser.add_argument("--options", action="append", help="of fermata_open(); several times: one measurement each")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        program = pathlib.Path(scratch) / "api"
        subprocess.run([f"mpicc.{options.mpi}", "-O2", f"-I{ROOT}/include", ROOT / "bench" / "api.c", f"-L{BUILD}/lib", "-lfermata",
                        f"-Wl,-rpath,{BUILD}/lib", "-o", program], check=True)
        print("| options | memcpy s | staged s | staged / memcpy | write + fsync s | durable s | durable / write + fsync |\n" + "| --- " * 7 + "|")
        for words in options.options or ["", "layout=shared"]:
            copied, staged, durable, written = measure(options, program, words)
            found[words or "files"] = {"memcpy": copied, "staged": staged, "durable": durable, "write+fsync": written}
            of = lambda mine, plain: f"{ratio(mine, plain):.2f} ({' to '.join(f'{end:.2f}' for end in interval(mine, plain))})"
            middle = lambda values: f"{statistics.median(values):.3f}"
            print(f"| {words or 'files'} | {middle(copied)} | {middle(staged)} | {of(staged, copied)} | {middle(written)} | {middle(durable)} | {of(durable, written)} |",
                  flush=True)
    if options.json:
        options.json.write_text(json.dumps({"ranks": options.ranks, "mib": options.mib, "mpi": options.mpi, "rounds": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
