#!/usr/bin/env python3
"""Whole programs, native and under Fermata in turns: the program's own time of its main loop, as ratios.

    applications.py [PROGRAM…] [--rounds N] [--ranks N] [--interval T] [--json FILE]     builds its programs itself

With --interval the runs under Fermata take checkpoints, and the ratio holds their cost.
"""
import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

from turns import FERMATA, ROOT, interval, once, ratio

# name: (library, program, arguments, what the program says of its time)
PROGRAMS = {
    "LAMMPS melt": ("openmpi", "lmp", ["-in", "in.melt", "-log", "none", "-nocite", "-var", "steps", "1500"], r"Loop time of ([\d.]+)"),
    "conjugate gradients": ("openmpi", "cg.openmpi", ["8", "1024", "50"], r"seconds ([\d.]+)"),
    "conjugate gradients, MPICH": ("mpich", "cg.mpich", ["8", "1024", "50"], r"seconds ([\d.]+)"),
    # The same with four times as many collectives a second.
    "conjugate gradients, small": ("openmpi", "cg.openmpi", ["20", "512", "100"], r"seconds ([\d.]+)"),
    "conjugate gradients, small, MPICH": ("mpich", "cg.mpich", ["20", "512", "100"], r"seconds ([\d.]+)"),
    "FFTW waves": ("openmpi", "fft", ["60", "64", "5"], r"seconds ([\d.]+)"),
}


def build(cwd):
    examples = ROOT / "examples"
    shutil.copy(examples / "in.melt", cwd)
    for mpi in ("openmpi", "mpich"):
        subprocess.run([f"mpicc.{mpi}", "-O2", examples / "cg_poisson.c", "-lm", "-o", f"{cwd}/cg.{mpi}"], check=True)
    subprocess.run(["mpicc.openmpi", "-O2", examples / "fft_waves.c", "-lfftw3_mpi", "-lfftw3", "-lm", "-o", f"{cwd}/fft"],
                   check=True)


def loop_time(words, cwd, pattern):
    return float(re.search(pattern, "".join(once(words, cwd, timeout=900))).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--interval")
    parser.add_argument("--json")
    options = parser.parse_args()
    unknown = set(options.programs) - set(PROGRAMS)
    if unknown:
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    table = {}
    with tempfile.TemporaryDirectory(prefix="fermata-bench-") as cwd:
        build(cwd)
        for name, (mpi, program, arguments, pattern) in PROGRAMS.items():
            if options.programs and name not in options.programs:
                continue
            words = [shutil.which(program) or f"{cwd}/{program}", *arguments]
            ranks = ["-n", str(options.ranks)]
            under = [FERMATA, "run", *ranks, "--mpi", mpi, "--ckpt-dir", f"{cwd}/ckpt"]
            under += ["--interval", options.interval, "--keep", "1"] if options.interval else []
            times = {"native": [], "fermata": []}
            commands = {"native": [f"mpiexec.{mpi}", *ranks, *words], "fermata": [*under, "--", *words]}
            for turn in range(options.rounds):
                for which in sorted(commands, reverse=turn % 2 == 0):  # neither always goes first
                    times[which].append(loop_time(commands[which], cwd, pattern))
            native, fermata = (statistics.median(times[which]) for which in ("native", "fermata"))
            of_native = ratio(times["fermata"], times["native"])
            low, high = interval(times["fermata"], times["native"])
            table[name] = {"native_s": native, "fermata_s": fermata, "ratio": of_native, "interval": [low, high], "all": times}
            print(f"{name:34} native {native:8.3f} s   fermata {fermata:8.3f} s   ratio {of_native:.4f} "
                  f"(95 %: {low:.4f} to {high:.4f})", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
