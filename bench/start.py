#!/usr/bin/env python3
"""How long a job takes that does nothing but MPI_Init and MPI_Finalize: natively, under Fermata with the site's mpiexec, and with
Fermata's own launcher; in turns, so that a busy moment hits all of them.

    bench/start.py [--turns 9] [--ranks 2,4,8,16] [--mpi openmpi,mpich]
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("FERMATA_BUILD", pathlib.Path(__file__).resolve().parents[1] / "build"))
SOURCE = "#include <mpi.h>\nint main(int c, char** v) { MPI_Init(&c, &v); MPI_Finalize(); return 0; }\n"


def ways(mpi, ranks, program, cwd):
    own = [BUILD / "bin" / "fermata", "run", "-n", ranks, "--mpi", mpi, "--ckpt-dir", cwd / "ckpt"]
    native = [f"mpiexec.{mpi}", "-n", ranks] + (["--oversubscribe"] if mpi == "openmpi" else [])
    return {"native": [*native, program], "mpiexec": [*own, "--launcher", "mpiexec", "--", program],
            "own": [*own, "--launcher", "own", "--", program]}


def seconds(words, cwd):
    begin = time.monotonic()
    subprocess.run([str(word) for word in words], cwd=cwd, check=True, timeout=120, stdin=subprocess.DEVNULL)
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--ranks", default="2,4,8,16")
    parser.add_argument("--mpi", default="openmpi,mpich")
    options = parser.parse_args()
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.TemporaryDirectory(prefix="fermata-start-") as name:
        cwd = pathlib.Path(name)
        (cwd / "nothing.c").write_text(SOURCE)
        print("seconds, median (least)")
        for mpi in options.mpi.split(","):
            program = cwd / f"nothing.{mpi}"
            subprocess.run([f"mpicc.{mpi}", "-o", program, cwd / "nothing.c"], check=True)
            for ranks in map(int, options.ranks.split(",")):
                took = {way: [] for way in ways(mpi, ranks, program, cwd)}
                for _ in range(options.turns):
                    for way, words in ways(mpi, ranks, program, cwd).items():
                        took[way].append(seconds(words, cwd))
                said = ", ".join(f"{way} {statistics.median(all_):.2f} ({min(all_):.2f})" for way, all_ in took.items())
                ratio = statistics.median(took["own"]) / statistics.median(took["mpiexec"])
                print(f"{mpi}, {ranks} ranks: {said}; own is {100 * (ratio - 1):+.0f} %", flush=True)


if __name__ == "__main__":
    main()
