"""What the benchmarks of programs share: a run, jobs side by side that measure in turns, and ratios."""
import collections
import contextlib
import os
import pathlib
import random
import select
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("FERMATA_BUILD", ROOT / "build"))
FERMATA = BUILD / "bin" / "fermata"
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1")


def once(words, cwd, timeout=600):
    """Runs a program to its good end; what it said on standard output and standard error."""
    done = subprocess.run(words, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=timeout, check=True,
                          stdin=subprocess.DEVNULL)
    return done.stdout, done.stderr


class Lane:
    """A job whose ranks sleep until it is their turn to measure one batch: bench/turn.h."""

    def __init__(self, words, ranks, cwd, patience=60):
        self.patience = patience
        self.directory = pathlib.Path(tempfile.mkdtemp(dir=cwd))
        self.fifos = []
        for name in [*map(str, range(ranks)), "out"]:
            os.mkfifo(self.directory / name)
            self.fifos.append(os.open(self.directory / name, os.O_RDWR))
        self.out = os.fdopen(os.dup(self.fifos.pop()), buffering=1)
        self.said = (self.directory / "said").open("w+")
        self.process = subprocess.Popen(words, cwd=cwd, env=dict(ENVIRONMENT, BENCH_TURNS=str(self.directory)),
                                        stdin=subprocess.DEVNULL, stdout=self.said, stderr=subprocess.STDOUT)

    def turn(self):
        """The words of the batch's line; None once the program has ended well."""
        for fifo in self.fifos:
            os.write(fifo, b"x")
        for _ in range(self.patience * 10):
            if select.select([self.out], [], [], 0.1)[0]:
                return self.out.readline().split()
            if self.process.poll() == 0:
                return None
            if self.process.returncode is not None:
                break
        self.said.seek(0)
        raise RuntimeError(f"{self.process.args}: no batch, exit code {self.process.returncode}\n{self.said.read()}")

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(self.patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for each in (self.out, self.said):
            each.close()
        for fifo in self.fifos:
            os.close(fifo)


def in_turns(jobs, ranks, cwd, rounds):
    """Runs the jobs {name: words} side by side, batch by batch in turns, all of it so many times. What they
    measured: {(what, bytes): {name: [value of each batch]}}, in the order of the batches; a job that has no batch of
    some kind (2pc: non-blocking collectives) says so by ending earlier, its batches coming first."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for _ in range(rounds):
        with contextlib.ExitStack() as stack:
            lanes = {name: stack.enter_context(contextlib.closing(Lane(words, ranks, cwd))) for name, words in jobs.items()}
            while lanes:
                for name, lane in list(lanes.items()):
                    words = lane.turn()
                    if words is None:
                        del lanes[name]
                    else:
                        found[words[0], int(words[1])][name].append(float(words[2]))
    return found


def ratio(times, natives):
    """Median of the ratios of neighbours in time, so that the machine's noise cancels."""
    return statistics.median(time / native for time, native in zip(times, natives))


def interval(times, natives, resamples=4000):
    """Where that median lies with 95 % probability: the bootstrap of the neighbours' ratios."""
    ratios = [time / native for time, native in zip(times, natives)]
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(resamples))
    return medians[resamples * 25 // 1000], medians[resamples * 975 // 1000]
