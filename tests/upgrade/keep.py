#!/usr/bin/env python3
"""Keeps a generation of a build, on both libraries, for later builds to continue: NAME.tar.xz beside this file, some 1.4 MB.

    tests/upgrade/keep.py NAME [BUILD]      NAME: the version; BUILD: build/

Most of it is the code of glibc and of the fronts, which belongs to an image. Instructions that not every x86-64 has are left out
of what glibc chooses by. Once a release; what is kept is never made anew (docs/upgrades.md).
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PLAIN = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-BMI2,-LZCNT,-MOVBE,-ERMS,-FSRM,-RTM"


def lines(path):
    return path.read_text().splitlines()


def keep(abi, fermata, cwd):
    """cwd/ABI: ckpt, the lines before it, and those of an undisturbed run."""
    there, hold = cwd / abi, cwd / "hold"
    there.mkdir()
    subprocess.run([f"mpicc.{abi}", "-O2", HERE / "kept.c", "-o", cwd / f"kept.{abi}"], check=True)
    program = [cwd / f"kept.{abi}", hold]
    with open(there / "whole", "w") as out:
        subprocess.run([f"mpiexec.{abi}", "-n", "2", *program], check=True, stdout=out, stdin=subprocess.DEVNULL, timeout=60)
    hold.touch()
    # The images name the folder that the program ran in, which has to be there again.
    with open(there / "before", "w") as out:
        job = subprocess.Popen([fermata, "run", "-n", "2", "--mpi", abi, "--job", f"keep-{os.getpid()}", "--ckpt-dir", there / "ckpt", "--", *program],
                               stdout=out, stdin=subprocess.DEVNULL, cwd="/tmp")
    deadline = time.monotonic() + 60
    while "READY" not in lines(there / "before"):
        if time.monotonic() > deadline or job.poll() is not None:
            sys.exit("it did not come to READY")
        time.sleep(0.05)
    subprocess.run([fermata, "checkpoint", "--stop", "--job", f"keep-{os.getpid()}"], check=True, timeout=60)
    job.wait(60)
    hold.unlink()
    assert lines(there / "whole")[: len(lines(there / "before"))] == lines(there / "before"), "the lines before are others"


def main(name, build="build"):
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", GLIBC_TUNABLES=PLAIN)
    cwd = pathlib.Path(tempfile.mkdtemp(prefix="fermata-kept-"))
    for abi in ("openmpi", "mpich"):
        keep(abi, pathlib.Path(build).resolve() / "bin" / "fermata", cwd)
    archive = HERE / f"{name}.tar"
    with tarfile.open(archive, "w") as tar:
        for abi in ("openmpi", "mpich"):
            for path in sorted((cwd / abi).rglob("*")):
                if path.is_file() and "journal" not in path.name:
                    tar.add(path, path.relative_to(cwd))
    subprocess.run(["xz", "-f", "--lzma2=preset=9e,dict=32MiB", archive], check=True)
    shutil.rmtree(cwd)
    print(f"{archive}.xz: {(HERE / f'{name}.tar.xz').stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
