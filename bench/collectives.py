#!/usr/bin/env python3
"""Collectives, native, under Fermata (cc-d) and under the two-phase protocol (2pc), batch by batch in turns, as medians
of ratios.

    collectives.py [--rounds N] [--batches N] [--bytes MOST] [--mpi openmpi|mpich|both] [--json FILE] [--svg FILE]

2pc has no non-blocking collectives. Overlap is the share of the pure communication time that computation hid.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

from turns import FERMATA, ROOT, in_turns, interval, ratio


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
    parser.add_argument("--rounds", type=int, default=5, help="jobs of each kind")
    parser.add_argument("--batches", type=int, default=100, help="of each call in each job")
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
            fermata = [FERMATA, "run", "-n", "2", "--mpi", mpi, "--ckpt-dir"]
            program = [program, str(options.batches), options.bytes]
            found = in_turns({"native": [f"mpiexec.{mpi}", "-n", "2", *program],
                              "cc-d": [*fermata, f"{cwd}/cc-d", "--", *program],
                              "2pc": [*fermata, f"{cwd}/2pc", "--protocol", "2pc", "--", *program, "blocking"]}, 2, cwd, options.rounds)
            print(f"\n{mpi}: medians of {options.rounds} x {options.batches} batches in turns")
            print(f"{'':12}{'bytes':>8}{'native ns':>12}{'fermata ns':>12}{'ratio':>7}{'95 %':>16}{'2pc ratio':>10}{'overlap %':>11}"
                  f"{'native':>8}")
            for (name, size), times in found.items():
                if name.endswith(":overlap"):
                    continue
                row = {"native_ns": statistics.median(times["native"]), "ccd_ns": statistics.median(times["cc-d"]),
                       "ccd_ratio": ratio(times["cc-d"], times["native"]), "ccd_interval": interval(times["cc-d"], times["native"])}
                text = (f"{name:12}{size:8}{row['native_ns']:12.1f}{row['ccd_ns']:12.1f}{row['ccd_ratio']:7.3f}"
                        "{:8.3f} ..{:6.3f}".format(*row["ccd_interval"]))
                if times["2pc"]:
                    row["2pc_ratio"] = ratio(times["2pc"], times["native"])
                    text += f"{row['2pc_ratio']:10.3f}"
                else:
                    hidden = found[f"{name}:overlap", size]
                    row["ccd_overlap"], row["native_overlap"] = (statistics.median(hidden[which]) for which in ("cc-d", "native"))
                    text += f"{'':10}{row['ccd_overlap']:11.1f}{row['native_overlap']:8.1f}"
                table[mpi, name, size] = row
                print(text, flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(
            json.dumps({" ".join(map(str, key)): row for key, row in table.items()}, indent=1) + "\n")
    if options.svg:
        plot(table, options.svg)


if __name__ == "__main__":
    main()
