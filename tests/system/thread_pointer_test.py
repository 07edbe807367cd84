#!/usr/bin/env python3
"""Crossings leave the FS base alone with Debian's libraries, at the start and to the end; unless told otherwise.

    thread_pointer_test.py openmpi|mpich
"""
import os
import sys

from harness import PROGRAMS, Scratch, call, check


def said(mpi, wish=None):
    env = dict(os.environ, FERMATA_LOG="info")
    env.pop("FERMATA_THREAD_POINTER", None)
    if wish:
        env["FERMATA_THREAD_POINTER"] = wish
    with Scratch("thread-pointer") as cwd:
        done = call("run", "-n", 2, "--mpi", mpi, "--ckpt-dir", cwd / "ckpt", "--", PROGRAMS / f"mix.{mpi}", "1", "20", cwd=cwd, env=env)
    lines = [line for line in done.stderr.splitlines() if "crossings" in line]
    check(len(lines) >= 2, f"{done.returncode}: {done.stderr}")
    return lines


def main():
    mpi = sys.argv[1]
    lines = said(mpi)
    check(all("crossings leave the FS base" in line for line in lines), lines)
    lines = said(mpi, "switch")
    check(all("crossings write the FS base: FERMATA_THREAD_POINTER says so" in line for line in lines), lines)


main()
