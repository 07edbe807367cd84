#!/usr/bin/env python3
"""Mean useful time until a rank has no process left, over the share of ranks that have copies, beside formula and simulation.

    mtti.py [--programs cg,lammps] [--degrees 0,25,50,100] [--seeds 6] [--ranks 4] [--mtbf 20] [--shape 1] [--horizon 60]
            [--kept] [--minutes 10] [--json FILE] [--svg FILE]

Each run is a job under `fermata run --inject` (docs/usage.md): every process has a time of its own (--mtbf seconds on average, per
process, Weibull's law with --shape), and dead copies are not replaced, as the formula has it; --kept adds a row in which all ranks have
copies that are made again. A run ends when a rank dies that has no copy, or is censored at the horizon, or ends before that with the
right result. Useful time: until the end, without the time in which ranks stood still for a recovery (the journal's `masked`). The mean is
sum of useful time over number of ends (the exponential law's estimate with censored runs); its error is a bootstrap's over seeds.

Beside it: `fermata predict` (the integral over the same law), and the end that the same draws give without recovery, run by run.
Degrees and programs take turns seed by seed, so that a machine that gets busy hits all of them; the load is in the file.
"""
import argparse
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "system"))
import harness  # noqa: E402
from draws import MASK, Draws, mixed  # noqa: E402
from harness import PROGRAMS, Job, Scratch  # noqa: E402

PROGRAMS_OF = {
    "cg": (lambda ranks: [PROGRAMS / "cg.mpich", "100000", "384", "200"], "mpich"),
    "lammps": (lambda ranks: ["lmp", "-in", ROOT / "examples" / "in.melt", "-log", "none", "-nocite", "-var", "steps", "1000000"], "openmpi"),
}


# ---- the same draws as src/root/plan/injection.cpp

def lifetime(seed, rank, nth, scale, shape):
    """Seconds that the rank's nth process lives: 0 leads, 1 is its first copy, …"""
    u = Draws((mixed((seed + rank * 0x10001) & MASK) + nth) & MASK).next()
    return scale * (-math.log1p(-u)) ** (1 / shape)


def drawn_end(seed, ranks, copied, scale, shape):
    """When a rank has no process left, if a death costs no time and dead ones are not replaced."""
    return min(max(lifetime(seed, rank, nth, scale, shape) for nth in range(2 if rank in copied else 1)) for rank in range(ranks))


def copied_ranks(ranks, degree):
    count = -(-ranks * degree // 100)
    return {i * ranks // count for i in range(count)}


# ---- one run

def events(cwd):
    try:
        lines = (cwd / "ckpt" / "journal.jsonl").read_text().splitlines()
    except OSError:
        return []
    return [json.loads(line) for line in lines]


def one(program, degree, kept, seed, options):
    words, mpi = PROGRAMS_OF[program]
    law = f"weibull:shape={options.shape},scale={options.scale},seed={seed},per=process,replace={'yes' if kept else 'no'}"
    with Scratch("mtti") as cwd:
        extra = ["--replicas", f"{degree}%", "--inject", law] if degree else ["--message-log", "--inject", law]
        began = time.monotonic()
        with Job.run(words(options.ranks), options.ranks, cwd, mpi=mpi, extra=extra) as job:
            ended = None
            while job.process.poll() is None and time.monotonic() - began < options.horizon + 5:
                time.sleep(0.1)
            if job.process.poll() is None:
                job.ask("cancel")
                job.end()
            else:
                ended = job.process.returncode
            errors = job.errors()
        noted = events(cwd)
    clock = [one for one in noted if one["event"] == "injected"]
    masked = [one for one in noted if one["event"] == "masked"]
    last = clock[-1]["seconds"] if clock else 0.0
    how = "censored" if ended is None else "done" if ended == 0 else "unmasked" if "was killed by signal 9 (Killed)" in errors else "failed"
    running = next((one["time"] for one in noted if one["event"] == "running"), None)
    seconds = last if how in ("unmasked", "failed") else since(running, noted[-1]["time"]) if running else 0.0
    standing = sum(one["seconds"] for one in masked)
    return {"program": program, "degree": degree, "kept": kept, "seed": seed, "end": how, "seconds": seconds, "recovering": standing,
            "useful": max(0.0, seconds - standing), "injected": len(clock), "masked": len(masked),
            "drawn": drawn_end(seed, options.ranks, copied_ranks(options.ranks, degree) if degree else set(), options.scale, options.shape),
            "load": os.getloadavg()[0], "line": "" if how != "failed" else errors.strip().splitlines()[-1][:300]}


def since(begin, end):
    import datetime
    at = [datetime.datetime.fromisoformat(text) for text in (begin, end)]
    return (at[1] - at[0]).total_seconds()


# ---- what they add up to

def mean_until(runs):
    ends = sum(run["end"] in ("unmasked", "failed") for run in runs)
    return sum(run["useful"] for run in runs) / ends if ends else None


def with_error(runs, draw, rounds=2000):
    mean = mean_until(runs)
    if mean is None or len(runs) < 3:
        return mean, None
    again = [mean_until(draw.choices(runs, k=len(runs))) for _ in range(rounds)]
    again = sorted(one for one in again if one is not None)
    return mean, [again[int(len(again) * 0.16)], again[int(len(again) * 0.84)]]


def predicted(options):
    """Mean times by `fermata predict`, by degree."""
    shares = ",".join(f"{degree}%" for degree in options.degrees if degree > 0)
    words = ["predict", "-n", options.ranks, "--rank-mtbf", f"{options.mtbf}s", "--shape", options.shape, "--replicas", shares,
             "--checkpoint", "1s", "--json"]
    said = subprocess.run([harness.FERMATA, *map(str, words)], capture_output=True, text=True)
    harness.check(said.returncode == 0, said.stderr)
    return {round(100 * one["share"]): one["mtti"] for one in json.loads(said.stdout)["replication"]["shares"]}


def integral(ranks, pairs, mtbf, shape):
    """The same by another program, also without copies."""
    scale = mtbf / math.gamma(1 + 1 / shape)
    step, total, t = scale / 2000, 0.0, 0.0
    while t < 60 * scale:
        dead = -math.expm1(-((t + step / 2) / scale) ** shape)
        total += (1 - dead * dead) ** pairs * (1 - dead) ** (ranks - pairs) * step
        t += step
    return total


def plot(rows, options, path):
    left, bottom, width, height = 60, 330, 560, 290
    top = 1.15 * max([row["formula"] for row in rows if not row["kept"]] + [row["error"][1] if row["error"] else row["mean"] or 0 for row in rows])

    def x(degree): return left + 30 + (width - 60) * degree / 100
    def y(value): return bottom - height * value / top
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="760" height="390" font-family="sans-serif" font-size="12">'
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{left}" y="20" font-weight="600">Useful seconds until a rank has no process left; {options.ranks} ranks, '
           f'a process lives {options.mtbf:g} s on average</text>']
    for i in range(5):
        value = top * i / 4
        out.append(f'<line x1="{left}" x2="{left + width}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.0f}</text>')
    plain = sorted({(row["degree"], row["formula"]) for row in rows if not row["kept"]})
    out.append('<polyline fill="none" stroke="#666" stroke-dasharray="5 3" points="'
               + " ".join(f"{x(degree):.1f},{y(value):.1f}" for degree, value in plain) + '"/>')
    for degree, _ in plain:
        out.append(f'<text x="{x(degree):.1f}" y="{bottom + 18}" text-anchor="middle">{degree} %</text>')
    colours = dict(zip(dict.fromkeys((row["program"], row["kept"]) for row in rows), ["#3f6fb5", "#c2571a", "#0b6e6e", "#9b7fc1"]))
    for k, ((program, kept), colour) in enumerate(colours.items()):
        for row in rows:
            if (row["program"], row["kept"]) != (program, kept) or row["mean"] is None:
                continue
            at = x(row["degree"]) + 6 * k - 6
            if row["error"]:
                out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{y(row["error"][0]):.1f}" y2="{y(row["error"][1]):.1f}" stroke="{colour}"/>')
            out.append(f'<circle cx="{at:.1f}" cy="{y(row["mean"]):.1f}" r="4" fill="{colour}"/>')
        out.append(f'<circle cx="{left + width + 20}" cy="{60 + 20 * k}" r="4" fill="{colour}"/>'
                   f'<text x="{left + width + 30}" y="{64 + 20 * k}">{program}{", made again" if kept else ""}</text>')
    out.append(f'<line x1="{left + width + 14}" x2="{left + width + 26}" y1="{60 + 20 * len(colours)}" y2="{60 + 20 * len(colours)}" stroke="#666" '
               f'stroke-dasharray="5 3"/><text x="{left + width + 30}" y="{64 + 20 * len(colours)}">formula</text>')
    out.append(f'<text x="{left + width / 2}" y="{bottom + 40}" text-anchor="middle">ranks with a copy; bars: 68 %</text></svg>\n')
    pathlib.Path(path).write_text("".join(out))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default="cg,lammps")
    parser.add_argument("--degrees", default="0,25,50,100")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--mtbf", type=float, default=20)
    parser.add_argument("--shape", type=float, default=1)
    parser.add_argument("--horizon", type=float, default=60)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--svg")
    options = parser.parse_args()
    options.degrees = [int(word) for word in options.degrees.split(",")]
    options.scale = options.mtbf / math.gamma(1 + 1 / options.shape)
    kinds = [(program, degree, False) for program in options.programs.split(",") for degree in options.degrees]
    if options.kept:
        kinds += [(program, 100, True) for program in options.programs.split(",")]
    runs, end = [], time.monotonic() + 60 * options.minutes
    for seed in range(1, options.seeds + 1):
        for program, degree, kept in kinds:
            if time.monotonic() > end:
                break
            runs.append(one(program, degree, kept, seed, options))
            print(json.dumps(runs[-1]), flush=True)
    rows, draw = [], random.Random(1)
    for program, degree, kept in kinds:
        mine = [run for run in runs if (run["program"], run["degree"], run["kept"]) == (program, degree, kept)]
        if not mine:
            continue
        mean, error = with_error(mine, draw)
        pairs = len(copied_ranks(options.ranks, degree)) if degree else 0
        spent = sum(run["seconds"] for run in mine)
        rows.append({"program": program, "degree": degree, "kept": kept, "runs": len(mine), "mean": mean, "error": error,
                     "ends": sum(run["end"] == "unmasked" for run in mine), "failed": sum(run["end"] == "failed" for run in mine),
                     "censored": sum(run["end"] in ("censored", "done") for run in mine),
                     "masked": sum(run["masked"] for run in mine),
                     "recovering": sum(run["recovering"] for run in mine) / spent if spent else 0,
                     "formula": integral(options.ranks, pairs, options.mtbf, options.shape),
                     "drawn": None if kept else statistics.mean(run["drawn"] for run in mine),
                     "load": [min(run["load"] for run in mine), max(run["load"] for run in mine)]})
        print(json.dumps(rows[-1]))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({
            "options": {name: getattr(options, name) for name in ("ranks", "mtbf", "shape", "horizon", "seeds")},
            "when": time.strftime("%Y-%m-%d %H:%M"), "cores": os.cpu_count(), "predict": predicted(options), "rows": rows, "runs": runs}, indent=1) + "\n")
    if options.svg:
        plot(rows, options, options.svg)


if __name__ == "__main__":
    main()
