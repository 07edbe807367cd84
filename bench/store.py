#!/usr/bin/env python3
"""Images against plain write and fsync of the same bytes, in turns in one run: a table for docs/performance.md.

    bench/store.py [--build DIR] [--disk DIR] [--memory DIR] [--rounds N] [--small] [--plot FILE.svg]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

WAYS = {"disk": ["", "compress=lz4", "compress=shuffle-lz4", "compress=auto"], "memory": ["", "compress=shuffle-lz4"]}


def measure(build, directory, ranks, mib, rounds, ways):
    with tempfile.TemporaryDirectory(prefix="store-bench-", dir=directory) as scratch:
        done = subprocess.run([str(build / "bin" / "store-bench"), scratch, str(ranks), str(mib), str(rounds), *ways],
                              check=True, capture_output=True, text=True, timeout=900)
    return [json.loads(line) for line in done.stdout.splitlines()]


def svg(rows, path):
    """One bar per row: ratio to plain; the line is 0.9."""
    height, out = 22 * len(rows) + 40, []
    for i, (name, ratio) in enumerate(rows):
        y = 20 + 22 * i
        out.append(f'<text x="300" y="{y + 12}" text-anchor="end">{name}</text>'
                   f'<rect x="310" y="{y}" width="{ratio * 120:.0f}" height="16" fill="#47a"/>'
                   f'<text x="{316 + ratio * 120:.0f}" y="{y + 12}">{ratio:.2f}</text>')
    out.append(f'<line x1="418" x2="418" y1="10" y2="{height - 10}" stroke="#c33"/>')
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="{height}" font-family="sans-serif" '
                    f'font-size="12">{"".join(out)}</svg>\n')


def main():
    parser = argparse.ArgumentParser()
    root = pathlib.Path(__file__).resolve().parents[1]
    parser.add_argument("--build", type=pathlib.Path, default=root / "build")
    parser.add_argument("--disk", default=os.environ.get("TMPDIR", "/tmp"))
    parser.add_argument("--memory", default="/dev/shm")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="leave out 2 ranks x 2 GiB")
    parser.add_argument("--plot", type=pathlib.Path)
    options = parser.parse_args()
    bars = []
    print("| where, ranks x size | way | write s | of plain's speed | read s | of plain's speed | bytes |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for place, directory in (("disk", options.disk), ("memory", options.memory)):
        for ranks, mib in ((4, 256),) if options.small else ((4, 256), (2, 2048)):
            lines = measure(options.build, directory, ranks, mib, options.rounds, WAYS[place])
            # The first round only warms up: page tables, the file system's structures.
            write, read = ({line["way"]: statistics.median(line[key][1:] or line[key]) for line in lines}
                           for key in ("write", "read"))
            for line in lines:
                way, name = line["way"], line["way"] or "image"
                print(f"| {place}, {ranks} x {mib} MiB | {name} | {write[way]:.3f} | {write['plain'] / write[way]:.2f} | "
                      f"{read[way]:.3f} | {read['plain'] / read[way]:.2f} | {line['bytes'] / 1e6:.0f} MB |", flush=True)
                if way != "plain":
                    bars.append((f"{place} {ranks} x {mib} MiB, {name}, write", write["plain"] / write[way]))
    if options.plot:
        svg(bars, options.plot)


if __name__ == "__main__":
    main()
