#!/usr/bin/env python3
"""What copies of ranks cost while nothing fails: programs natively and under Fermata, turn by turn.

    replicas.py [--programs lammps,cg,ssor,hydro] [--ways apart,core,shared] [--turns 50,20,15] [--json FILE] [--svg FILE]

FILE of --json gets one more run; the picture is of the newest numbers in it (--programs '': no others).

All jobs of a program are there at once. In each round every one has a turn, in random order: its ranks go on (SIGCONT), compute up to the
next line that rank 0 prints, some 0.3 s, and stand again (SIGSTOP). So neighbours in time are compared, and neither the start nor the
making of copies is in it. The number of a job is the median over rounds of its turn's time by the native job's; its interval is where that
median lies with 95 % probability (bootstrap over rounds).

native: mpiexec. plain: `fermata run`. log: `--message-log`. 25, 50, 100: `--replicas` so many per cent. In three ways:

apart   Two ranks, each on a core of its own, and as if each copy had one, too: this machine has two. While the ranks compute the copies
        stand. Then the ranks stand and the copies do the same; they need no more from the ranks than what is in the stream, which has
        room for all of a turn. The time is the ranks'. What is not in it: what caches and memory lose to a copy that runs at the same time.
        `copies` is the processor's time that the slowest copy took, by the native turn: above 1 it would hold its rank up. `stream`
        is the bytes that the rank wrote into it, by second of the native turn.
core    Four ranks on core 0, their copies on core 1 at the same time; each process has a quarter of a core at least. Open MPI, whose
        ranks leave the core while they wait (mpi_yield_when_idle, native runs, too); MPICH's do not, and four of them on one core wait for
        the scheduler.
shared  Two ranks on two cores, and their copies on the same two: they take the cores from the ranks. The time is until the copies have
        done the same.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time

from turns import FERMATA, ROOT, interval, ratio

sys.path.insert(0, str(ROOT / "tests" / "system"))
from harness import PROGRAMS, Scratch, call, check  # noqa: E402

# name: (library but for `core`, words, the lines that end a turn)
KINDS = {
    "lammps": ("openmpi", lambda mpi: ["lmp", "-in", "in.melt", "-log", "none", "-nocite", "-var", "steps", "1000000"], r"^\s+\d+(\s+-?[\d.]+){5}"),
    "cg": ("mpich", lambda mpi: [PROGRAMS / f"cg.{mpi}", "1000000", "1024", "120"], r"^cg "),
    "ssor": ("mpich", lambda mpi: [PROGRAMS / f"ssor.{mpi}", "1000000", "64", "64", "24"], r"^ssor "),
    "hydro": ("mpich", lambda mpi: [PROGRAMS / f"hydro.{mpi}", "1000000", "512", "16"], r"^hydro "),
}
RANKS = {"apart": 2, "core": 4, "shared": 2}
JOBS = {"apart": ["native", "plain", "log", "50", "100"], "core": ["native", "twice", "plain", "log", "25", "50", "100"],
        "shared": ["native", "50", "100"]}
OPTIONS = {"plain": [], "log": ["--message-log"], "25": ["--replicas", "25%"], "50": ["--replicas", "50%"], "100": ["--replicas", "all"]}
ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
PATIENCE = 60


def tasks(pid):
    return [int(task.name) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]


def pin(pid, cores):
    for task in tasks(pid):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(task, cores)


class Stream:
    """The stream that a copy reads, as its memory has it: src/base/stream_ring.h."""

    SIZE = (64 << 20) + 4096

    def __init__(self, pid):
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            low, high = (int(word, 16) for word in line.split()[0].split("-"))
            if high - low == self.SIZE and line.split()[1] == "rw-s":
                self.at = low
                break
        else:
            raise RuntimeError(f"{pid} has no stream")
        self.memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)

    def written(self):
        return int.from_bytes(os.pread(self.memory, 8, self.at), "little")

    def is_read(self):
        return int.from_bytes(os.pread(self.memory, 8, self.at + 64), "little") == self.written()


def on_cpu(pid):
    """Seconds that all of its threads have computed."""
    return sum(int(pathlib.Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0]) for task in tasks(pid)) / 1e9


def below(pid):
    """Processes that it has started, and theirs."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            children.setdefault(int(stat.read_text().rsplit(")", 1)[1].split()[1]), []).append(int(stat.parent.name))
    found, next_ones = [], [pid]
    while next_ones:
        next_ones = [child for one in next_ones for child in children.get(one, [])]
        found += next_ones
    return found


class Lane:
    """One job, whose ranks and copies stand but in its turns."""

    count = 0

    def __init__(self, program, way, kind, cwd):
        Lane.count += 1
        self.way, self.kind, self.name = way, kind, f"replicas-{os.getpid()}-{Lane.count}"
        library, words, line = KINDS[program]
        mpi, self.line = "openmpi" if way == "core" else library, re.compile(line)
        words, ranks = words(mpi), RANKS[way]
        self.native = kind in ("native", "twice")
        begin = [f"mpiexec.{mpi}", "-n", ranks, *(["--oversubscribe", "--bind-to", "none"] if mpi == "openmpi" else [])] if self.native else [
            FERMATA, "run", "--job", self.name, "-n", ranks, "--mpi", mpi, "--launcher", "own", "--ckpt-dir", f"ckpt-{self.name}", *OPTIONS[kind], "--"]
        env = dict(ENVIRONMENT, OMPI_MCA_mpi_yield_when_idle="1") if way == "core" else ENVIRONMENT
        alone = ["taskset", "-c", "0"] if way == "core" else []
        self.said = (cwd / f"{self.name}.err").open("w+")
        self.process = subprocess.Popen([*map(str, [*alone, *begin, *words])], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.said, bufsize=0)
        self.second = subprocess.Popen([*map(str, ["taskset", "-c", "1", *begin, *words])], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=self.said) if kind == "twice" else None
        self.ranks, self.copies, self.streams, self.begun = [], [], [], b""
        try:
            self.stand_ready(pathlib.Path(words[0]).name, ranks)
        except BaseException:
            self.close()
            raise

    def stand_ready(self, program, ranks):
        """Waits until all processes are there and have computed for a while, and stops them."""
        self.next_line()
        end = time.monotonic() + PATIENCE
        wanted = ranks if self.second else -(-ranks * int(self.kind) // 100) if self.kind.isdigit() else 0
        while True:
            if self.native:
                self.ranks, self.copies = ([pid for pid in below(one.pid) if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == program[:15]]
                                           if one else [] for one in (self.process, self.second))
            else:
                status = json.loads(call("status", "--job", self.name, "--json").stdout)
                self.ranks = [one["pid"] for one in status["ranks"]]
                self.copies = [one["pid"] for one in (status["replicas"] or {}).get("ranks", []) if one["copy"] == "follows"]
            if len(self.ranks) == ranks and len(self.copies) == wanted:
                break
            check(time.monotonic() < end, f"{self.name}, {self.kind}: {self.ranks} {self.copies}")
            self.next_line()
        for place, pid in enumerate(self.ranks):
            if self.way == "apart":
                pin(pid, {place % 2})
        for place, pid in enumerate(self.copies):
            pin(pid, {1} if self.way == "core" else {place % 2} if self.way == "apart" else {0, 1})
        self.streams = [] if self.second else [Stream(pid) for pid in self.copies]
        for _ in range(2):
            self.next_line()
        self.signal(self.ranks, signal.SIGSTOP)
        self.follow()

    @staticmethod
    def signal(pids, number):
        for pid in pids:
            os.kill(pid, number)

    def next_line(self):
        """Reads up to the line that ends a turn."""
        end = time.monotonic() + PATIENCE
        while True:
            *lines, self.begun = self.begun.split(b"\n")
            if any(self.line.match(line.decode(errors="replace")) for line in lines):
                return
            if not select.select([self.process.stdout], [], [], 1)[0] and time.monotonic() < end:
                continue
            more = os.read(self.process.stdout.fileno(), 1 << 16) if time.monotonic() < end else b""
            if not more:
                self.said.seek(0)
                raise RuntimeError(f"{self.process.args}: no line, exit code {self.process.poll()}\n{self.said.read()}")
            self.begun += more

    def follow(self):
        """Lets the copies come to where the ranks stand, and stops them."""
        self.signal(self.copies, signal.SIGCONT)
        end = time.monotonic() + PATIENCE
        while not all(stream.is_read() for stream in self.streams):
            check(time.monotonic() < end, f"{self.name}: a copy does not follow")
            time.sleep(0.0005)
        self.signal(self.copies, signal.SIGSTOP)

    def turn(self):
        """Seconds that count, those that the slowest copy has computed, and bytes of the longest stream."""
        before, written = [on_cpu(pid) for pid in self.copies], [stream.written() for stream in self.streams]
        start = time.perf_counter()
        if self.way != "apart":
            self.signal(self.copies, signal.SIGCONT)
        self.signal(self.ranks, signal.SIGCONT)
        self.next_line()
        end = time.perf_counter()
        self.signal(self.ranks, signal.SIGSTOP)
        self.follow()
        if self.way == "shared" and self.copies:
            end = time.perf_counter()
        return (end - start, max([on_cpu(pid) - was for pid, was in zip(self.copies, before)], default=0.0),
                max([stream.written() - was for stream, was in zip(self.streams, written)], default=0))

    def close(self):
        for stream in self.streams:
            os.close(stream.memory)
        for pid in [*self.ranks, *self.copies]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        if self.second:
            self.second.terminate()
            self.second.wait()
        if self.native:
            self.process.terminate()
        else:
            call("cancel", "--job", self.name)
        try:
            while os.read(self.process.stdout.fileno(), 1 << 16):
                pass
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.said.close()


def measured(program, way, turns, draw):
    rounds = {kind: [] for kind in JOBS[way]}
    with Scratch("replicas") as cwd, contextlib.ExitStack() as stack:
        text = (ROOT / "examples" / "in.melt").read_text()
        (cwd / "in.melt").write_text(re.sub(r"^thermo( +)20$", r"thermo\g<1>30", text, flags=re.M))
        lanes = {kind: stack.enter_context(contextlib.closing(Lane(program, way, kind, cwd))) for kind in JOBS[way]}
        load = os.getloadavg()[0]
        for nth in range(turns + 1):
            for kind in draw.sample(JOBS[way], len(JOBS[way])):
                found = lanes[kind].turn()
                if nth > 0:  # the first is cold
                    rounds[kind].append(found)
    native = [seconds for seconds, *_ in rounds["native"]]
    for kind in JOBS[way]:
        times, copies, stream = zip(*rounds[kind])
        yield {"program": program, "way": way, "job": kind, "turns": len(times), "seconds": statistics.median(times), "ratio": ratio(times, native),
               "interval": interval(times, native), "copies": ratio(copies, native),
               "stream": statistics.median(stream) / statistics.median(native), "load": load, "all": " ".join(f"{one:.5f}" for one in times)}


def plot(rows, path):
    programs = list(dict.fromkeys(row["program"] for row in rows))
    ways = [way for way in JOBS if any(row["way"] == way for row in rows)]
    panels = [(way, [row for row in rows if row["way"] == way and row["job"] != "native"]) for way in ways]
    height, colours = 190, ["#3f6fb5", "#c2571a", "#0b6e6e", "#9b7fc1"]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{height * len(panels) + 30}" font-family="sans-serif" font-size="12">'
           '<rect width="100%" height="100%" fill="white"/>']
    titles = {"apart": "Two ranks, a core for each process: more time than natively, per cent",
              "core": "Four ranks on one core, copies on another", "shared": "Two ranks, copies on the same two cores"}
    for nth, (way, mine) in enumerate(panels):
        bottom, left, width = height * (nth + 1) - 10, 60, 540
        ends = [100 * (row["interval"][side] - 1) for row in mine for side in (0, 1)]
        low, high = min(0, *ends), max(1, *ends)
        scale = (height - 60) / (high - low)

        def y(value): return bottom - (value - low) * scale
        out.append(f'<text x="{left}" y="{bottom - height + 30}" font-weight="600">{titles[way]}</text>')
        for value in (low, 0, high):
            out.append(f'<line x1="{left}" x2="{left + width}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>'
                       f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.1f}</text>')
        jobs = [job for job in JOBS[way] if job != "native"]
        for row in mine:
            x = left + width * (jobs.index(row["job"]) + 0.5) / len(jobs) + 22 * (programs.index(row["program"]) - (len(programs) - 1) / 2)
            colour = colours[programs.index(row["program"]) % len(colours)]
            out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y(100 * row["interval"][0] - 100):.1f}" y2="{y(100 * row["interval"][1] - 100):.1f}" '
                       f'stroke="{colour}"/><circle cx="{x:.1f}" cy="{y(100 * row["ratio"] - 100):.1f}" r="4" fill="{colour}"/>')
        for job in jobs:
            x = left + width * (jobs.index(job) + 0.5) / len(jobs)
            out.append(f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{job}{" %" if job.isdigit() else ""}</text>')
    for nth, program in enumerate(programs):
        out.append(f'<circle cx="640" cy="{60 + 20 * nth}" r="4" fill="{colours[nth % len(colours)]}"/><text x="650" y="{64 + 20 * nth}">{program}</text>')
    pathlib.Path(path).write_text("\n".join(out) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default="lammps,cg,ssor,hydro")
    parser.add_argument("--ways", default="apart,core,shared")
    parser.add_argument("--turns", default="50,20,15", help="in each way")
    parser.add_argument("--json")
    parser.add_argument("--svg")
    options = parser.parse_args()
    draw, rows, began = random.Random(1), [], time.strftime("%Y-%m-%d %H:%M")
    file = pathlib.Path(options.json or os.devnull)
    runs = json.loads(file.read_text())["runs"] if file.is_file() else []
    for way, turns in zip(options.ways.split(","), map(int, options.turns.split(","))):
        for program in filter(None, options.programs.split(",")):
            for row in measured(program, way, turns, draw):
                rows.append(row)
                print(f"{way:7} {program:7} {row['job']:7} {row['seconds']:.4f} s  {100 * row['ratio'] - 100:+6.2f} % "
                      f"({100 * row['interval'][0] - 100:+.2f} to {100 * row['interval'][1] - 100:+.2f})  copies {row['copies']:.3f}, "
                      f"{row['stream'] / 1e6:.2f} MB/s  load {row['load']:.1f}", flush=True)
            file.write_text(json.dumps({"runs": [*runs, {"when": began, "until": time.strftime("%H:%M"), "rows": rows}]}, indent=1) + "\n")
    newest = {(row["way"], row["program"], row["job"]): row for run in [*runs, {"rows": rows}] for row in run["rows"]}
    if options.svg:
        plot(list(newest.values()), options.svg)


if __name__ == "__main__":
    main()
