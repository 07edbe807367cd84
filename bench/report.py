#!/usr/bin/env python3
"""docs/performance.md, made from results/*.json: the newest run of each kind beside its budget.

    report.py                                  writes the page
    report.py --check                          says whether the page is what results/ make of it
    report.py add KIND FILE --machine NAME     appends a run: FILE is what the bench script wrote with --json
                                               (calls: latency.py, collectives, safe_state, store, programs: applications.py)
"""
import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import textwrap

from latency import BUDGETS

ROOT = pathlib.Path(__file__).resolve().parents[1]
KINDS = ("calls", "collectives", "safe_state", "store", "programs")

# Goals that are no ratio of a single call (those are latency.BUDGETS).
BLOCKING, NON_BLOCKING, SAFE_STATE_MS, PROGRAM = 1.05, 1.10, 50, 1.01
WRITE, ONE_FILE, READ, INCREMENT, STILL, MAPPED = 0.9, 1.1, 0.9, 20, 10, 1.2

CALLS = {"ping_pong 8": "ping-pong 8 B", "isend_irecv_waitall 8": "Isend + Irecv + Waitall 8 B", "allreduce 4": "Allreduce 4 B",
         "bcast 4": "Bcast 4 B, in a pipeline", "barrier 0": "Barrier", "iallreduce 4": "Iallreduce + Wait 4 B",
         "iprobe_self 0": "Iprobe on MPI_COMM_SELF"}
PLACES = {"disk, 4 x 256 MiB": "ext4, 4 x 256 MiB", "disk, 2 x 2048 MiB": "ext4, 2 x 2 GiB",
          "memory, 4 x 256 MiB": "tmpfs, 4 x 256 MiB", "memory, 2 x 2048 MiB": "tmpfs, 2 x 2 GiB"}
PROGRAMS = {"LAMMPS melt": "LAMMPS", "FFTW waves": "FFTW", "conjugate gradients": "conjugate gradients",
            "conjugate gradients, MPICH": "on MPICH", "conjugate gradients, small": "small ones",
            "conjugate gradients, small, MPICH": "on MPICH"}
MISSED = " **missed**"


def runs(results, kind):
    return json.loads((results / f"{kind}.json").read_text())["runs"]


def table(head, rows):
    line = lambda cells: "| " + " | ".join(map(str, cells)) + " |"
    return [line(head), line(["---"] * len(head)), *map(line, rows)]


def held(value, good):
    """A number, marked when it missed its budget."""
    return value if good else value + MISSED


def within(row, budget):
    """Does a call hold `1.05x` or `+40 ns`?"""
    return row["ratio"] <= float(budget[:-1]) if budget.endswith("x") else row["added_ns"] <= int(budget.split()[0])


def calls(results):
    rows = runs(results, "calls")[-1]["rows"]
    shown = []
    for name, label in CALLS.items():
        budget, cells = BUDGETS[name.split()[0]], [label]
        for mpi in ("openmpi", "mpich"):
            row = rows[f"{mpi} {name}"]
            cells += [row["native_ns"], f"{row['added_ns']:+}", held(f"{row['ratio']:.3f}", within(row, budget))]
        shown.append([*cells, budget])
    return table(["", "Open MPI: native ns", "added", "ratio", "MPICH: native ns", "added", "ratio", "budget"], shown)


def programs(results):
    """The last ratio of each program, as one sentence."""
    last = {}
    for run in runs(results, "programs"):
        last.update(run["rows"])
    return ", ".join(f"{label} {held(format(last[name]['ratio'], '.3f'), last[name]['ratio'] <= PROGRAM)}"
                     for name, label in PROGRAMS.items())


def collectives(results):
    """Each blocking one beside its non-blocking sibling."""
    rows = runs(results, "collectives")[-1]["rows"]
    blocking = dict.fromkeys(key.split()[1] for key in rows if not key.split()[1].startswith("i"))

    def cell(name, mpi, size):
        row = rows.get(f"{mpi} {name} {size}")
        good = lambda: row["ratio"] <= (NON_BLOCKING if name.startswith("i") else BLOCKING)
        return row and held(f"{row['ratio']:.3f}", size > 4 or good())

    shown = []
    for name in blocking:
        cells = [" ".join(filter(None, (cell(each, mpi, size) for each in (name, "i" + name))))
                 for size in (4, 1024, 1 << 20) for mpi in ("openmpi", "mpich")]
        two = [rows[f"{mpi} {name} 4"]["2pc_ratio"] for mpi in ("openmpi", "mpich")]
        shown.append([name, *cells, f"{two[0]:.1f} {two[1]:.1f}"])
    shown.append(["budget", *[f"{BLOCKING:.2f} {NON_BLOCKING:.2f}"] * 2, *[""] * 5])
    return table(["", "4 B: Open MPI", "MPICH", "1 KiB: Open MPI", "MPICH", "1 MiB: Open MPI", "MPICH", "2PC, 4 B"], shown)


def safe_state(results):
    rows = runs(results, "safe_state")[-1]["rows"]
    shown = []
    for name in dict.fromkeys(key.split(" ", 1)[1] for key in rows):
        cells = [name]
        for mpi in ("openmpi", "mpich"):
            median, worst = rows[f"{mpi} {name}"]["sum"]
            cells += [f"{median:.1f}", held(f"{worst:.1f}", worst <= SAFE_STATE_MS)]
        shown.append([*cells, SAFE_STATE_MS])
    return table(["load", "Open MPI: median ms", "worst", "MPICH: median ms", "worst", "budget"], shown)


def store(results):
    """The newest run; in brackets the least and the greatest of all runs."""
    every = runs(results, "store")

    def cell(place, what, good, form="{:.2f}"):
        newest = every[-1]["rows"][place][what]
        seen = [run["rows"][place][what] for run in every if what in run["rows"].get(place, ())]
        return f"{held(form.format(newest), good(newest))} ({form.format(min(seen))}–{form.format(max(seen))})"

    shown = [[label, cell(place, "write", lambda v: v >= WRITE), cell(place, "one_file", lambda v: v <= ONE_FILE),
              cell(place, "read", lambda v: v >= READ), cell(place, "increment", lambda v: v >= INCREMENT, "{:.0f}"),
              cell(place, "still_percent", lambda v: v <= STILL, "{:.1f}").split(" (")[0]] for place, label in PLACES.items()]
    shown.append(["budget", f"≥ {WRITE}", f"≤ {ONE_FILE}", f"≥ {READ}", f"≥ {INCREMENT}", f"≤ {STILL}"])
    return table(["ranks x size", "write", "one file", "read", "increment", "still, %"], shown)


def mapped(results):
    little, much = next(run["mapped_s"] for run in reversed(runs(results, "store")) if "mapped_s" in run)
    return f"{much:.2f} s with 4 GiB, {little:.2f} s with 64 MiB" + ("" if much <= MAPPED * little else MISSED)


def sizes(results):
    rows = runs(results, "sizes")[-1]["rows"]
    return table(["what is saved", "MiB", "of its memory"],
                 [[name, ", ".join(f"{mib:g}" for mib in row["mib"]),
                   f"{100 * row['mib'][0] / row['of_mib']:.0f} %" if "of_mib" in row else ""] for name, row in rows.items()])


def machines(results):
    known = json.loads((results / "machines.json").read_text())
    used = {kind: runs(results, kind)[-1]["machine"] for kind in ("calls", "collectives", "safe_state", "store")}
    return "; ".join(f"{', '.join(kind.replace('_', ' ') for kind, on in used.items() if on == name)} on {text}"
                     for name, text in known.items() if name in used.values())


def missed(results):
    """What missed a budget in some run, every time it did."""
    found = {}
    for one in json.loads((results / "missed.json").read_text()):
        found.setdefault((one["what"], one["goal"]), []).append(one["found"].split(" (")[0])
    return "; ".join(f"{what} {', '.join(times)} ({goal})" for (what, goal), times in found.items()) + "."


PAGE = """# Performance

Made by `bench/report.py` from [results/](../results); do not edit. Each table is the newest run; **missed** marks what is \
outside of its budget. Methods, older runs, causes: [history](../results/performance-history.md). Two virtual cores \
(Firecracker), Linux 6.18.44, Debian 12, Open MPI 4.1.4, MPICH 4.0.2; {machines}. \
Ratios are Fermata to native, medians of neighbours in time; 2 ranks, shared memory.

## What does a call cost?

{calls}

Whole programs without checkpoints (budget {program}): {programs}.

## What does a collective cost?

Ratios of blocking and non-blocking ones, one at a time. The budget is for 4 bytes. 2PC: barrier before.

{collectives}

## How long does it take to the safe state?

From the request until all ranks stand still; the program's longest time between two calls may be added.

{safe_state}

## What do saving and restoring cost?

Write, read: against plain write with fsync, and read. One file: against a file per rank. Increment: times \
faster, 1 % of the pages written. Still: share of a forked write with the job stopped. In brackets: all runs.

{store}

A mapped restart says its first line after {mapped} (budget: within 20 %).

## How large is an image?

{sizes}

## What missed its budget in [some run](../results/missed.json)

{missed}
"""


def wrapped(text):
    """Sentences at 110; tables as they are."""
    return "\n".join(line if line.startswith("|") or len(line) <= 110 else
                     textwrap.fill(line, 110, break_long_words=False, break_on_hyphens=False) for line in text.split("\n"))


def page(results):
    fill = {part.__name__: "\n".join(part(results)) for part in (calls, collectives, safe_state, store, sizes)}
    fill |= {part.__name__: part(results) for part in (programs, mapped, machines, missed)}
    return wrapped(PAGE.format(program=PROGRAM, **fill))


def taken(kind, measured):
    """What a bench script wrote, as rows of results/."""
    if kind == "store":
        return measured
    rows = {}
    for name, row in measured.items():
        if kind == "calls":
            kept = {"native_ns": round(row["native_ns"]), "added_ns": round(row["fermata_ns"] - row["native_ns"]),
                    "ratio": round(row["ratio"], 3), "interval": [round(end, 3) for end in row["interval"]]}
        elif kind == "collectives":
            kept = {"ratio": round(row["ccd_ratio"], 3), "interval": [round(end, 3) for end in row["ccd_interval"]],
                    "added_ns": round(row["ccd_ns"] - row["native_ns"])}
            kept |= {"2pc_ratio": round(row["2pc_ratio"], 2)} if "2pc_ratio" in row else {}
        elif kind == "safe_state":
            kept = {"checkpoints": len(row["sum"])}
            kept |= {phase: [round(statistics.median(ms), 1), round(max(ms), 1)] for phase, ms in row.items()}
        else:
            kept = {"ratio": round(row["ratio"], 3), "interval": [round(end, 3) for end in row["interval"]]}
        rows[name] = kept
    return {"rows": rows}


def compact(value, pad="\n"):
    """JSON with a row of numbers a line, so that a diff shows which ones changed."""
    parts = list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else [])
    nested = [part for part in parts if isinstance(part, dict) or isinstance(part, list) and part and isinstance(part[0], dict)]
    if not nested:
        return json.dumps(value, ensure_ascii=False)
    names = [json.dumps(name) + ": " for name in value] if isinstance(value, dict) else [""] * len(parts)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    inside = (pad + " " + name + compact(part, pad + " ") for name, part in zip(names, parts))
    return opening + ",".join(inside) + pad + closing


def add(results, kind, file, machine, command):
    if machine not in json.loads((results / "machines.json").read_text()):
        raise SystemExit(f"{results}/machines.json does not say what machine '{machine}' is")
    # Empty outside of a checkout.
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout
    run = {"date": datetime.date.today().isoformat(), "commit": commit.strip(), "machine": machine, "command": command,
           **taken(kind, json.loads(pathlib.Path(file).read_text()))}
    numbers = lambda rows: {f"{name}: {number}" for name, row in rows.items() for number in row}
    lacking = numbers(runs(results, kind)[-1]["rows"]) - numbers(run["rows"])
    if lacking:
        raise SystemExit(f"not a whole run, so the page cannot be made of it; it lacks: {', '.join(sorted(lacking))}")
    whole = {"runs": [*runs(results, kind), run]}
    (results / f"{kind}.json").write_text(compact(whole) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    verbs = parser.add_subparsers(dest="verb")
    adding = verbs.add_parser("add")
    adding.add_argument("kind", choices=KINDS)
    adding.add_argument("file")
    adding.add_argument("--machine", required=True)
    adding.add_argument("--command", default="")
    options = parser.parse_args()
    results, target = options.root / "results", options.root / "docs" / "performance.md"
    if options.verb == "add":
        add(results, options.kind, options.file, options.machine, options.command)
    made = page(results)
    if options.check:
        if target.read_text() != made:
            sys.exit(f"{target} is not what bench/report.py makes of results/: run it")
        return
    target.write_text(made)


if __name__ == "__main__":
    main()
