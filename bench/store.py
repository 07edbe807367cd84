#!/usr/bin/env python3
"""Images against plain write and fsync of the same bytes, in turns in one run, and what a job sees of them.

    bench/store.py [--build DIR] [--disk DIR] [--memory DIR] [--rounds N] [--small] [--plot FILE.svg] [--json FILE]
    bench/store.py --job mapped|forked|incremental|none …    only that of real jobs (bench/restart.c); none of them
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

WAYS = {"disk": ["", "layout=shared", "compress=lz4", "compress=shuffle-lz4", "compress=auto", "encrypted", "encrypted compress=shuffle-lz4"],
        "memory": ["", "layout=shared", "compress=shuffle-lz4", "encrypted"]}


def cases(options):
    """Where and how large: name in the tables, kind of place, ranks, MiB of each, scratch directory."""
    for place, directory in (("disk", options.disk), ("memory", options.memory)):
        for ranks, mib in ((4, 256),) if options.small else ((2, 2048),) if options.large else ((4, 256), (2, 2048)):
            with tempfile.TemporaryDirectory(prefix="store-bench-", dir=directory) as scratch:
                yield f"{place}, {ranks} x {mib} MiB", place, ranks, mib, pathlib.Path(scratch)


def measure(options, scratch, ranks, mib, ways):
    done = subprocess.run([str(options.build / "bin" / "store-bench"), *map(str, (scratch, ranks, mib, options.rounds)), *ways],
                          check=True, capture_output=True, text=True, timeout=900)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Job:
    """bench/restart.c under Fermata: `ranks` with `mib` each."""

    def __init__(self, options, scratch, ranks, mib, dirty=0, save=""):
        self.fermata, self.scratch = options.build / "bin" / "fermata", pathlib.Path(scratch)
        self.name = f"store-bench-{os.getpid()}"
        program = self.scratch / "restart"
        subprocess.run(["mpicc.openmpi", "-O2", str(pathlib.Path(__file__).with_name("restart.c")), "-o", str(program)],
                       check=True)
        self.process = self.start("run", "-n", ranks, "--save-options", save, "--", program, mib, dirty)
        self.first_line()

    def start(self, verb, *words):
        self.out = self.scratch / "out"
        with open(self.out, "w") as out:
            return subprocess.Popen([str(self.fermata), verb, "--job", self.name, "--ckpt-dir", str(self.scratch / "ckpt"),
                                     *map(str, words)], stdout=out, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def first_line(self, timeout=170):
        """When the program said its first line."""
        end = time.time() + timeout
        while "\n" not in (text := self.out.read_text()):
            if time.time() > end or self.process.poll() is not None:
                raise RuntimeError(f"the job said nothing ({self.process.poll()})")
            time.sleep(0.002)
        return float(text.split()[1])

    def command(self, verb, *words):
        return subprocess.run([str(self.fermata), verb, "--job", self.name, *words], check=True, capture_output=True,
                              text=True, timeout=170).stdout

    def checkpoint(self, *words):
        return json.loads(self.command("checkpoint", "--json", *words))

    def forget_all_but_the_last(self):
        for old in sorted(self.scratch.glob("ckpt/gen-*"))[:-1]:
            shutil.rmtree(old)

    def restart(self, *words):
        """Seconds from the command to the program's first line."""
        begin = time.time()
        self.process = self.start("restart", *words)
        return self.first_line() - begin

    def longest_gap(self, since):
        """Between two lines of the program since then; it says one every 20 ms."""
        times = [float(line.split()[1]) for line in self.out.read_text().splitlines()[:-1]]
        return max((b - a for a, b in zip(times, times[1:]) if b > since), default=0)

    def end(self):
        self.command("cancel")
        self.process.wait(60)


def mapped(options, found):
    """Time to the first instruction, eager and mapped, with little and much memory."""
    print("| one rank with | restart | s to its first line |\n| --- | --- | --- |")
    for mib in (64, 4096):
        with tempfile.TemporaryDirectory(prefix="store-bench-", dir=options.disk) as scratch:
            job = Job(options, scratch, 1, mib)
            job.checkpoint("--stop")
            job.process.wait(60)
            times = {"--mapped": [], "eager": []}
            for _ in range(options.rounds):
                for way, seconds in times.items():
                    seconds.append(job.restart(*[way] if way != "eager" else []))
                    job.end()
        for way, seconds in times.items():
            if way == "--mapped":
                found.setdefault("mapped_s", []).append(round(statistics.median(seconds), 3))
            print(f"| {mib} MiB | {way} | {statistics.median(seconds):.3f} ({min(seconds):.3f} to {max(seconds):.3f}) |", flush=True)


def forked(options, found):
    """How long the job stands still while a child writes, as its phases say and as its own lines do."""
    print("| where, ranks x size | stands still s | longest gap between lines s | write s | share |\n| --- | --- | --- | --- | --- |")
    for name, _, ranks, mib, scratch in cases(options):
        job = Job(options, scratch, ranks, mib, save="forked")
        still, gaps, write = [], [], []
        for _ in range(options.rounds):
            begin = time.time()
            phases = job.checkpoint()["phases"]
            gaps.append(job.longest_gap(begin))
            still.append(sum(phases[phase] for phase in ("freeze", "drain", "suspend", "resume")))
            write.append(phases["save"])
            job.forget_all_but_the_last()
        job.end()
        a, gap, b = (statistics.median(seconds) for seconds in (still, gaps, write))
        found["rows"].setdefault(name, {})["still_percent"] = round(100 * a / b, 1)
        print(f"| {name} | {a:.3f} | {gap:.3f} | {b:.3f} | {100 * a / b:.1f} % |", flush=True)


def warm(directory, mib):
    """A page that the host of this machine has taken back costs ten times its copy: every checkpoint into memory finds
    pages that were used a moment ago."""
    with open(directory / "warm", "wb") as file:
        for _ in range(mib // 16):
            file.write(bytes(16 << 20))
    (directory / "warm").unlink()


def incremental(options, found):
    """1 % of all pages written since the last checkpoint, against all of it."""
    print("| where, ranks x size | full s, bytes | 1 % s, bytes | faster |\n| --- | --- | --- | --- |")
    save = lambda one: one["phases"]["suspend"] + one["phases"]["save"]
    for name, place, ranks, mib, scratch in cases(options):
        said = {}
        for kind, words in (("full", ""), ("part", "incremental=split")):
            job = Job(options, scratch, ranks, mib, dirty=1, save=words)
            said[kind] = []
            for _ in range(6):
                if place == "memory":
                    warm(scratch, ranks * mib * 9 // 8)
                said[kind].append(job.checkpoint())
                time.sleep(2)  # it writes its pages again every second
                if kind == "full":
                    job.forget_all_but_the_last()
            job.end()
            shutil.rmtree(scratch / "ckpt")
        # The first of each finds everything cold, and is a full one.
        seconds = {kind: [save(one) for one in all_of_it[1:]] for kind, all_of_it in said.items()}
        full, part = (statistics.median(seconds[kind]) for kind in ("full", "part"))
        found["rows"].setdefault(name, {})["increment"] = round(full / part)
        shown = {kind: f"{statistics.median(some):.4f} ({min(some):.4f} to {max(some):.4f}), "
                       f"{said[kind][-1]['bytes'] / 1e6:.1f} MB" for kind, some in seconds.items()}
        print(f"| {name} | {shown['full']} | {shown['part']} | {full / part:.0f}x |", flush=True)


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


def images(options, found):
    """All ways to write and read images, beside plain files."""
    bars = []
    print("| where, ranks x size | way | write s | of plain's speed | read s | of plain's speed | bytes |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, place, ranks, mib, scratch in cases(options):
        lines = measure(options, scratch, ranks, mib, options.ways.split(",") if options.ways else WAYS[place])
        # The first round only warms up: page tables, the file system's structures.
        write, read = ({line["way"]: statistics.median(line[key][1:] or line[key]) for line in lines} for key in ("write", "read"))
        row = found["rows"].setdefault(name, {})
        if "" in write:
            row |= {"write": round(write["plain"] / write[""], 2), "read": round(read["plain"] / read[""], 2)}
        if "" in write and "layout=shared" in write:
            row["one_file"] = round(write["layout=shared"] / write[""], 2)
        for line in lines:
            way, shown = line["way"], line["way"] or "image"
            print(f"| {name} | {shown} | {write[way]:.3f} | {write['plain'] / write[way]:.2f} | "
                  f"{read[way]:.3f} | {read['plain'] / read[way]:.2f} | {line['bytes'] / 1e6:.0f} MB |", flush=True)
            if way != "plain":
                bars.append((f"{name}, {shown}, write", write["plain"] / write[way]))
    if options.plot:
        svg(bars, options.plot)


def main():
    parser = argparse.ArgumentParser()
    root = pathlib.Path(__file__).resolve().parents[1]
    parser.add_argument("--build", type=pathlib.Path, default=root / "build")
    parser.add_argument("--disk", default=os.environ.get("TMPDIR", "/tmp"))
    parser.add_argument("--memory", default="/dev/shm")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="leave out 2 ranks x 2 GiB")
    parser.add_argument("--ways", help="only these, and plain: words, separated by commas")
    parser.add_argument("--large", action="store_true", help="only 2 ranks x 2 GiB")
    parser.add_argument("--plot", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    jobs = {way.__name__: way for way in (mapped, forked, incremental)}
    parser.add_argument("--job", choices=[*jobs, "none"])
    options = parser.parse_args()
    options.build = options.build.absolute()
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    # What bench/report.py adds to results/store.json.
    found = {"rows": {}}
    if options.job in jobs:
        jobs[options.job](options, found)
    else:
        images(options, found)
        for way in {} if options.job else jobs.values():
            print()
            way(options, found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
