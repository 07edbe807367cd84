"""What the benchmarks of programs share: a run, and ratios of runs in turns."""
import os
import pathlib
import random
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("FERMATA_BUILD", ROOT / "build"))
FERMATA = BUILD / "bin" / "fermata"


def once(words, cwd, timeout=600):
    """Runs a program to its good end; what it said on standard output and standard error."""
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1")
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout, check=True,
                          stdin=subprocess.DEVNULL)
    return done.stdout, done.stderr


def ratio(times, natives):
    """Median of the ratios of neighbours in time, so that the machine's noise cancels."""
    return statistics.median(time / native for time, native in zip(times, natives))


def interval(times, natives, resamples=4000):
    """Where that median lies with 95 % probability: the bootstrap of the neighbours' ratios."""
    ratios = [time / native for time, native in zip(times, natives)]
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(resamples))
    return medians[resamples * 25 // 1000], medians[resamples * 975 // 1000]
