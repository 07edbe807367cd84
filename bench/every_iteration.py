#!/usr/bin/env python3
"""Every iteration of a program checkpointed: one file by collective MPI-IO and a file per rank, written by the program itself,
against Fermata's layouts, in turns. The comparison of research (results/performance-history.md).

    bench/every_iteration.py [--ranks 4] [--mib 256] [--iterations 6] [--rounds 3] [--mpi openmpi|mpich] [--where DIR]
                             [--json FILE]

A checkpoint lasts from the program's word that it is ready to its word that it goes on; a recovery from the command to the
program's first word. FILE keeps what was measured; what it holds from before is counted, too. All ways must end with the same result, whether interrupted or not.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

from turns import FERMATA

# name: who takes the checkpoints (bench/iterations.c), words for `fermata run`, words for `fermata restart`
WAYS = {
    "no checkpoints": ("none", None, None),
    "program: one file, collective MPI-IO": ("collective", None, None),
    "program: file per rank": ("files", None, None),
    "Fermata: file per rank": ("outside", [], []),
    "Fermata: one file": ("outside", ["--layout", "shared"], []),
    "Fermata: file per rank, restart --mapped": ("outside", [], ["--mapped"]),
}


class Run:
    """A started program: its lines as they come."""

    def __init__(self, words, cwd, deadline=170):
        self.began, self.end = time.time(), time.time() + deadline
        self.path, self.errors = cwd / "out", cwd / "err"
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        with open(self.path, "w") as out, open(self.errors, "w") as errors:
            self.process = subprocess.Popen(list(map(str, words)), cwd=cwd, env=env, stdout=out, stderr=errors,
                                            stdin=subprocess.DEVNULL)

    def wait(self, *word):
        """The first line that begins with these words, split."""
        while True:
            ended = self.process.poll()
            for line in self.path.read_text().splitlines(True):
                if line.endswith("\n") and line.split()[:len(word)] == list(word):
                    return line.split()
            if ended is not None or time.time() > self.end:
                self.process.terminate()
                raise RuntimeError(f"no '{' '.join(word)}' ({ended}): {self.errors.read_text()}")
            time.sleep(0.001)

    def finish(self):
        """Seconds and hash."""
        done = self.wait("done")
        self.process.wait(60)
        return float(done[1]), done[2]

    def checkpoint_times(self, iterations):
        return [float(self.wait("at", str(k))[2]) - float(self.wait("ready", str(k))[2]) for k in range(1, iterations)]


def forget(cwd):
    """A recovery is rarely on the node that wrote: what can go leaves the page cache."""
    for path in cwd.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def once(options, program, way, run_words, restart_words, cwd):
    """Checkpoint, recovery and program times of one run, and its results."""
    arguments = [way, options.mib, options.iterations]
    native = [f"mpiexec.{options.mpi}", *(["--oversubscribe"] if options.mpi == "openmpi" else []), "-n", options.ranks, program]
    if run_words is None:
        run = Run([*native, *arguments], cwd)
        seconds, result = run.finish()
        if way == "none":
            return [], None, seconds, {result}
        times = run.checkpoint_times(options.iterations)
        forget(cwd)
        again = Run([*native, *arguments, "recover"], cwd)
    else:
        job = ["--job", f"every-{os.getpid()}", "--ckpt-dir", cwd / "ckpt"]
        run = Run([FERMATA, "run", *job, "--mpi", options.mpi, "-n", options.ranks, "--keep", "2", *run_words, "--", program, *arguments], cwd)
        for k in range(1, options.iterations):
            run.wait("ready", str(k))
            subprocess.run([str(FERMATA), "checkpoint", *job[:2]], check=True, capture_output=True, timeout=120)
            (cwd / f"go-{k}").touch()
        seconds, result = run.finish()
        times = run.checkpoint_times(options.iterations)
        forget(cwd)
        again = Run([FERMATA, "restart", *job, *restart_words], cwd)
    recovery = float(again.wait("at", str(options.iterations - 1))[2]) - again.began
    return times, recovery, seconds, {result, again.finish()[1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mpi", default="openmpi")
    parser.add_argument("--where", default=os.environ.get("TMPDIR", "/tmp"))
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    found = {name: ([], [], []) for name in WAYS}
    if options.json and options.json.exists():
        found.update(json.loads(options.json.read_text()))
    results = set()
    with tempfile.TemporaryDirectory(prefix="every-iteration-", dir=options.where) as scratch:
        program = pathlib.Path(scratch) / "iterations"
        subprocess.run([f"mpicc.{options.mpi}", "-O2", pathlib.Path(__file__).with_name("iterations.c"), "-o", program], check=True)
        for _ in range(options.rounds):
            for name, (way, run_words, restart_words) in WAYS.items():
                with tempfile.TemporaryDirectory(dir=scratch) as cwd:
                    times, recovery, seconds, ends = once(options, program, way, run_words, restart_words, pathlib.Path(cwd))
                results |= ends
                found[name][0].extend(times)
                found[name][1].extend([recovery] if recovery else [])
                found[name][2].append(seconds)
    if len(results) != 1:
        raise SystemExit(f"different results: {results}")
    if options.json:
        options.json.write_text(json.dumps(found) + "\n")
    middle = {name: [statistics.median(times) if times else None for times in kinds] for name, kinds in found.items()}
    base = middle["program: one file, collective MPI-IO"]
    print("| way | checkpoint s | less | recovery s | less | program s | less |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name, times in middle.items():
        cells = []
        for value, of in zip(times, base):
            cells += [f"{value:.3f}", f"{100 * (1 - value / of):.1f} %" if of and times is not base else ""] if value else ["", ""]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
