#!/usr/bin/env python3
"""Collectives, native, under Fermata (cc-d) and under the two-phase protocol (2pc), in turns, as ratios of medians.

    collectives.py [--rounds N] [--batches N] [--bytes MOST] [--mpi openmpi|mpich|both] [--json FILE] [--svg FILE]

2pc has no non-blocking collectives. Overlap is the share of the pure communication time that computation hid.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

from turns import FERMATA, ROOT, once, ratio


def collectives(words, cwd):
    """{(name, bytes): (ns, overlap or None)}"""
    found = {}
    for line in once(words, cwd)[0].splitlines():
        name, size, ns, *overlap = line.split()
        found[name, int(size)] = (float(ns), float(overlap[0]) if overlap else None)
    return found


def middle(runs, key, what):
    return statistics.median(run[key][what] for run in runs if key in run)


def of_native(runs, native, key):
    return ratio(*([run[key][0] for run in some] for some in (runs, native)))


def plot(table, path):
    """Bars: ratio to native of every call, one group per library."""
    width, row, left = 760, 15, 190
    bars = [(f"{mpi} {name} {size} B", r.get("ccd_ratio"), r.get("2pc_ratio")) for (mpi, name, size), r in table.items()]
    height = 40 + len(bars) * (2 * row + 4)
    scale = (width - left - 60) / 4
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="10">',
           f'<text x="{left}" y="14">time of a call, native = 1 (line); blue: Fermata, grey: two-phase commit; cut at 4</text>']
    y = 24
    for label, ccd, two in bars:
        out.append(f'<text x="{left - 6}" y="{y + row - 3}" text-anchor="end">{label}</text>')
        for value, colour in ((ccd, "#3070b0"), (two, "#999999")):
            if value is not None:
                out.append(f'<rect x="{left}" y="{y}" width="{min(value, 4) * scale:.1f}" height="{row - 2}" fill="{colour}"/>'
                           f'<text x="{left + min(value, 4) * scale + 3:.1f}" y="{y + row - 4}">{value:.2f}</text>')
            y += row
        y += 4
    out.append(f'<line x1="{left + scale}" x2="{left + scale}" y1="20" y2="{height}" stroke="black" stroke-width="0.5"/></svg>')
    pathlib.Path(path).write_text("\n".join(out) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--bytes", default=str(1 << 20))
    parser.add_argument("--mpi", default="both")
    parser.add_argument("--json")
    parser.add_argument("--svg")
    options = parser.parse_args()
    table = {}
    with tempfile.TemporaryDirectory(prefix="fermata-bench-") as cwd:
        for mpi in ["openmpi", "mpich"] if options.mpi == "both" else [options.mpi]:
            program = f"{cwd}/collectives.{mpi}"
            subprocess.run([f"mpicc.{mpi}", "-O2", ROOT / "bench" / "collectives.c", "-o", program], check=True)
            fermata = [FERMATA, "run", "-n", "2", "--mpi", mpi, "--ckpt-dir", f"{cwd}/ckpt"]
            program = [program, str(options.batches), options.bytes]
            turns = {"native": [f"mpiexec.{mpi}", "-n", "2", *program],
                     "cc-d": [*fermata, "--", *program],
                     "2pc": [*fermata, "--protocol", "2pc", "--", *program, "blocking"]}
            runs = {name: [] for name in turns}
            for _ in range(options.rounds):
                for name, words in turns.items():
                    runs[name].append(collectives(words, cwd))
            print(f"\n{mpi}: medians of {options.rounds} runs in turns")
            print(f"{'':12}{'bytes':>8}{'native ns':>12}{'fermata ns':>12}{'ratio':>7}{'2pc ratio':>10}{'overlap %':>11}"
                  f"{'native':>8}")
            for key in runs["native"][0]:
                row = {"native_ns": middle(runs["native"], key, 0), "ccd_ns": middle(runs["cc-d"], key, 0),
                       "ccd_ratio": of_native(runs["cc-d"], runs["native"], key)}
                text = (f"{key[0]:12}{key[1]:8}{row['native_ns']:12.1f}{row['ccd_ns']:12.1f}{row['ccd_ratio']:7.3f}")
                if key in runs["2pc"][0]:
                    row["2pc_ratio"] = of_native(runs["2pc"], runs["native"], key)
                    text += f"{row['2pc_ratio']:10.3f}"
                else:
                    row["ccd_overlap"], row["native_overlap"] = (middle(runs[name], key, 1) for name in ("cc-d", "native"))
                    text += f"{'':10}{row['ccd_overlap']:11.1f}{row['native_overlap']:8.1f}"
                table[mpi, *key] = row
                print(text)
    if options.json:
        pathlib.Path(options.json).write_text(
            json.dumps({" ".join(map(str, key)): row for key, row in table.items()}, indent=1) + "\n")
    if options.svg:
        plot(table, options.svg)


if __name__ == "__main__":
    main()
