#!/usr/bin/env python3
"""Real-time TDDFT that saves itself in several ways, in turns in one run: what a checkpoint and a recovery cost over how
often it is taken, and how fast this machine moves the same bytes otherwise.

    bench/rt_tddft.py [--ranks 2] [--n 64] [--bands 8] [--steps 20] [--every 1,5] [--rounds 3] [--where DIR] [--json FILE] [--page FILE]
    bench/rt_tddft.py --from FILE [--page FILE]      only the tables and the plots of what was measured
    bench/rt_tddft.py --long                         an hour at a quiet time: 96^3 points, 16 orbitals (432 MiB of state), 30 steps,
                                                     every 1, 2, 3, 5, 10 steps, 5 rounds; into results/rt_tddft.{json,md,svg}

The checkpoint time is what the program spends in its calls, the last wait included; the share is of the program's time.
Modes are examples/rt_tddft's; `transparent` is `fermata run --interval`, at the program's time without checkpoints divided by
as many checkpoints. A recovery is the program's own restore, with the page cache dropped before.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

from turns import BUILD, ENVIRONMENT, FERMATA, ROOT

WAYS = ("own-file", "own-files", "shared", "files", "memory")
LABELS = {"none": "none", "own-file": "single file, collective MPI-IO (program's own)", "own-files": "file per rank (program's own)",
          "shared": "libfermata, one file", "files": "libfermata, file per rank", "memory": "libfermata, memory + buddy",
          "transparent": "fermata run --interval"}
SPEED = r"""
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void say(const char* what, double began, double mib, int rank) {
    MPI_Barrier(MPI_COMM_WORLD);
    double s = MPI_Wtime() - began;
    if (rank == 0) printf("%s %.1f\n", what, mib / s);
}
#define START (MPI_Barrier(MPI_COMM_WORLD), MPI_Wtime())
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long mib = atol(argv[1]);
    size_t n = (size_t)mib << 20;
    char *a = malloc(n), *b = malloc(n), name[64];
    memset(a, rank + 1, n);
    memset(b, 7, n);
    double at = START, all = (double)mib * size;
    memcpy(b, a, n);
    say("memcpy", at, all, rank);
    at = START;
    MPI_Sendrecv(a, (int)n, MPI_BYTE, (rank + 1) % size, 0, b, (int)n, MPI_BYTE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    say("Sendrecv", at, all, rank);
    snprintf(name, sizeof name, "own-%d", rank);
    at = START;
    int f = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0666);
    for (size_t done = 0; done < n;) { ssize_t w = write(f, a + done, n - done); if (w <= 0) MPI_Abort(MPI_COMM_WORLD, 1); done += (size_t)w; }
    if (fsync(f)) MPI_Abort(MPI_COMM_WORLD, 1);
    close(f);
    say("write+fsync", at, all, rank);
    at = START;
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, "shared", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, (MPI_Offset)n * rank, a, (int)n, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_File_close(&file);
    say("MPI-IO", at, all, rank);
    MPI_Finalize();
    return b[n / 2] == 42;
}
"""
PAGE = """# What checkpoints cost a real-time TDDFT

Made by `bench/rt_tddft.py` from [rt_tddft.json](rt_tddft.json); do not edit. examples/rt_tddft, {ranks} ranks, {n}^3 points, \
{bands} orbitals, {mib:.0f} MiB of state, {steps} steps; medians of {rounds} rounds in turns; Open MPI 4.1.4, ext4 on one virtual \
disk, two cores. The research: Qbox, 640 tasks on 5 nodes, 4 GB.

{tables}
{plot}
## Beside the research, every step checkpointed

{gains}

Research: one file per task against a single file cuts the checkpoint time by 85.93 %, memory against files by another 26.9 %. \
Here two ranks share one node and one local disk, and its memory mode writes once to files when the job ends, which is counted.

How far to trust it: times of one run with other work on the machine are noise where a row with checkpoints is faster than the \
program without. `checkpoints` of `fermata run` are the generations that are still there at the end.

## Transfer speeds, MiB/s of all ranks together

{speeds}
"""


# Every rank is a node of its own, with its own folder of memory.
NODE = ["sh", "-c", 'export FERMATA_MEMORY_DIR=$BENCH_MEMORY/$OMPI_COMM_WORLD_RANK; mkdir -p $FERMATA_MEMORY_DIR; exec "$@"', "sh"]


def mpiexec(ranks, *words, cwd, code=0):
    done = subprocess.run(["mpiexec.openmpi", "--oversubscribe", "-n", str(ranks), *map(str, words)], cwd=cwd, env=ENVIRONMENT, text=True,
                          capture_output=True, timeout=1800, stdin=subprocess.DEVNULL)
    if code is not None and done.returncode != code:
        raise SystemExit(f"{words}: {done.stderr or done.stdout}")
    return done.stdout


def forget(cwd):
    os.sync()
    for path in cwd.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(out):
    seconds, count, saving = re.search(r"seconds (\S+) checkpoints (\d+) in (\S+)", out).groups()
    return {"seconds": float(seconds), "checkpoints": int(count), "saving": float(saving), "end": re.search(r"end .*", out)[0]}


def once(options, program, mode, every, cwd):
    base = [f"n={options.n}", "length=24", f"bands={options.bands}", "rounds=1", "dt=0.02", f"mode={mode}", f"every={every}"]
    words = [*NODE, program, *base, f"steps={options.steps}"]
    found = timed(mpiexec(options.ranks, *words, cwd=cwd))
    if mode != "none":
        if mode == "memory":  # it ends with a job that ends well
            mpiexec(options.ranks, *words, f"die={options.steps}", cwd=cwd, code=None)
        forget(cwd)
        again = mpiexec(options.ranks, *words, "every=0", cwd=cwd)
        found["recovery"] = float(re.search(r"restored step \d+ in (\S+)", again)[1])
        if timed(again)["end"] != found["end"]:
            raise SystemExit(f"{mode}: restored to another end")
    return found


def transparent(options, program, seconds, count, cwd):
    base = [f"n={options.n}", "length=24", f"bands={options.bands}", "rounds=1", "dt=0.02", f"steps={options.steps}"]
    done = subprocess.run([FERMATA, "run", "--job", f"rt-bench-{os.getpid()}", "--ckpt-dir", "ckpt", "--mpi", "openmpi", "-n", str(options.ranks),
                           "--interval", f"{max(50, int(1000 * seconds / count))}ms", "--", program, *base], cwd=cwd, env=ENVIRONMENT, text=True,
                          capture_output=True, timeout=1800, stdin=subprocess.DEVNULL, check=True)
    return timed(done.stdout) | {"checkpoints": len(re.findall(r"gen-\d+", subprocess.run(
        [FERMATA, "list", "--ckpt-dir", "ckpt"], cwd=cwd, env=ENVIRONMENT, text=True, capture_output=True, check=True).stdout))}


def measure(options):
    rows, speeds, mib = {}, {}, 2 * 16 * options.bands * options.n**3 / 2**20
    with tempfile.TemporaryDirectory(prefix="rt-tddft-", dir=options.where) as scratch:
        scratch = pathlib.Path(scratch)
        program, speed = scratch / "rt_tddft", scratch / "speed"
        subprocess.run(["mpicxx.openmpi", "-std=c++17", "-O2", "-DOMPI_SKIP_MPICXX", f"-I{ROOT}/include", ROOT / "examples/rt_tddft/rt_tddft.cpp",
                        f"-L{BUILD}/lib", "-lfermata", f"-Wl,-rpath,{BUILD}/lib", "-lfftw3_mpi", "-lfftw3", "-lm", "-o", program], check=True)
        (scratch / "speed.c").write_text(SPEED)
        subprocess.run(["mpicc.openmpi", "-O2", scratch / "speed.c", "-o", speed], check=True)
        memory = tempfile.TemporaryDirectory(prefix="rt-tddft-", dir="/dev/shm")
        ENVIRONMENT["BENCH_MEMORY"] = memory.name
        ways, ends = [way for way in WAYS if way in options.ways], set()
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory(dir=scratch) as cwd:
                for line in mpiexec(options.ranks, speed, int(mib / options.ranks), cwd=cwd).splitlines():
                    speeds.setdefault(line.split()[0], []).append(float(line.split()[1]))
            for mode, every in [("none", 0), *((way, every) for every in options.every for way in ways)]:
                with tempfile.TemporaryDirectory(dir=scratch) as cwd:
                    found = once(options, program, mode, every, pathlib.Path(cwd))
                ends.add(found.pop("end"))
                rows.setdefault(f"{mode} {every}", []).append(found)
            plain = rows["none 0"][-1]["seconds"]
            for every in options.every:
                with tempfile.TemporaryDirectory(dir=scratch) as cwd:
                    found = transparent(options, program, plain, options.steps / every, pathlib.Path(cwd))
                ends.add(found.pop("end"))
                rows.setdefault(f"transparent {every}", []).append(found)
        memory.cleanup()
        if len(ends) != 1:
            raise SystemExit(f"different ends: {ends}")
    middle = lambda runs: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    return {"ranks": options.ranks, "n": options.n, "bands": options.bands, "steps": options.steps, "rounds": options.rounds, "mib": mib,
            "speeds": {what: statistics.median(each) for what, each in speeds.items()}, "rows": {name: middle(runs) for name, runs in rows.items()}}


def table(head, rows):
    line = lambda cells: "| " + " | ".join(map(str, cells)) + " |"
    return "\n".join([line(head), line(["---"] * len(head)), *map(line, rows)])


def page(found, plot):
    rows = found["rows"]
    frequencies = sorted({int(name.split()[1]) for name in rows} - {0})
    plain, tables = rows["none 0"]["seconds"], [f"Without checkpoints the program takes {rows['none 0']['seconds']:.2f} s.\n"]
    for every in frequencies:
        cells = []
        for way in (*WAYS, "transparent"):
            row = rows.get(f"{way} {every}")
            if row:
                saving = None if way == "transparent" else row["saving"]
                cells.append([LABELS[way], f"{row['checkpoints']:g}", f"{saving / row['checkpoints'] * 1000:.0f}" if saving else "", f"{row['seconds']:.2f}",
                              f"{100 * saving / row['seconds']:.1f}" if saving else "", f"{100 * (row['seconds'] / plain - 1):.1f}",
                              f"{row['recovery'] * 1000:.0f}" if "recovery" in row else ""])
        tables.append(f"## A checkpoint every {every} step{'s' if every > 1 else ''}\n\n" + table(
            ["way", "checkpoints", "ms each", "program s", "share %", "longer by %", "recovery ms"], cells) + "\n")
    first = {way: rows.get(f"{way} {frequencies[0]}") for way in WAYS}
    gains = []
    for a, b in (("own-file", "own-files"), ("own-file", "files"), ("shared", "files"), ("files", "memory"), ("own-file", "memory")):
        if first[a] and first[b]:
            less = lambda key: f"{100 * (first[b][key] / first[a][key] - 1):+.1f} %" if key in first[a] and key in first[b] else ""
            gains.append([f"{LABELS[a]} -> {LABELS[b]}", less("saving"), less("seconds"), less("recovery")])
    return PAGE.format(**found | {"tables": "\n".join(tables), "plot": f"![costs over how often]({plot})\n" if plot else "",
                                  "gains": table(["from -> to", "checkpoint time", "program time", "recovery"], gains),
                                  "speeds": table(found["speeds"], [[f"{speed:.0f}" for speed in found["speeds"].values()]])})


PANELS = {"program time, times that without checkpoints": lambda row, plain: row["seconds"] / plain,
          "checkpoint time in all, s": lambda row, plain: row.get("saving"),
          "share of the program's time, %": lambda row, plain: 100 * row["saving"] / row["seconds"] if "saving" in row else None,
          "recovery, ms": lambda row, plain: 1000 * row["recovery"] if "recovery" in row else None}


def draw(found, path):
    """Four panels over checkpoints a step: what PANELS say, 0 at the bottom, the largest at the top."""
    rows, plain = found["rows"], found["rows"]["none 0"]["seconds"]
    ways = [way for way in (*WAYS, "transparent") if any(name.split()[0] == way for name in rows)]
    colours = dict(zip((*WAYS, "transparent"), ("#b03a2e", "#ca6f1e", "#1e8449", "#1f5fa8", "#6c3483", "#555555")))
    marks = []
    for panel, (title, value) in enumerate(PANELS.items()):
        left, top_edge = 50 + 400 * (panel % 2), 40 + 270 * (panel // 2)
        lines = {way: sorted((1 / int(name.split()[1]), value(row, plain)) for name, row in rows.items()
                             if name.split()[0] == way and name != "none 0" and value(row, plain) is not None) for way in ways}
        highest = max(y for line in lines.values() for _, y in line)
        spot = lambda x, y: f"{left + 320 * x:.0f},{top_edge + 200 - 190 * y / highest:.0f}"
        marks.append(f'<path d="M{left},{top_edge} v200 h330" fill="none" stroke="black"/><text x="{left}" y="{top_edge - 8}">{title} '
                     f'(top: {highest:.3g})</text><text x="{left + 165}" y="{top_edge + 218}" text-anchor="middle">checkpoints a step, 0 to 1</text>')
        marks += [f'<polyline points="{" ".join(spot(*point) for point in line)}" fill="none" stroke="{colours[way]}" stroke-width="2"/>'
                  + "".join(f'<circle cx="{spot(*point).split(",")[0]}" cy="{spot(*point).split(",")[1]}" r="3" fill="{colours[way]}"/>' for point in line)
                  for way, line in lines.items() if line]
    marks += [f'<text x="{50 + 270 * (i % 3)}" y="{580 + 18 * (i // 3)}" fill="{colours[way]}">{LABELS[way]}</text>' for i, way in enumerate(ways)]
    path.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="860" height="620" font-family="sans-serif" font-size="12"><rect width="100%" height="100%" '
                    f'fill="white"/>{"".join(marks)}</svg>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {"ranks": 2, "n": 64, "bands": 8, "steps": 20, "rounds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--every", type=lambda text: [int(word) for word in text.split(",")], default=[1, 5])
    parser.add_argument("--ways", type=lambda text: text.split(","), default=list(WAYS))
    parser.add_argument("--where", default=os.environ.get("TMPDIR", "/tmp"))
    for name in ("json", "page", "plot", "from"):
        parser.add_argument(f"--{name}", type=pathlib.Path)
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    if options.long:
        options.n, options.bands, options.steps, options.rounds, options.every = 96, 16, 30, 5, [1, 2, 3, 5, 10]
        options.json, options.page, options.plot = (ROOT / "results" / f"rt_tddft.{kind}" for kind in ("json", "md", "svg"))
    old = getattr(options, "from")
    found = json.loads(old.read_text()) if old else measure(options)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.plot:
        draw(found, options.plot)
    text = page(found, options.plot and os.path.relpath(options.plot, options.page.parent if options.page else "."))
    if options.page:
        options.page.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
