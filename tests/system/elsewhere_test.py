#!/usr/bin/env python3
"""A restart where something is different or missing: it works, or it is refused in one line that names what, before
anything of the program runs.

    elsewhere_test.py CASE
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import harness
from harness import FERMATA, PROGRAMS, Job, Scratch, call, check

STEPS = 400
ENV = dict(os.environ, STEADY_PAUSE="2000")


def stopped_job(cwd, *options):
    """A job of a program in cwd/home, stopped after some steps; cwd/home holds all its files. Returns the native lines."""
    home = cwd / "home"
    for place in (home, cwd / "native"):
        place.mkdir()
        shutil.copy(PROGRAMS / "libelsewhere.so", place)
    shutil.copy(PROGRAMS / "elsewhere.mpich", home / "program")
    reference = harness.native([home / "program", cwd / "native", STEPS], 2, "mpich", cwd)
    with Job.run([home / "program", home, STEPS], 2, home, mpi="mpich", ckpt=cwd / "ckpt", env=ENV, extra=options) as job:
        job.wait_until(lambda: len(job.lines()) >= 20, "twenty lines")
        job.checkpoint("--stop")
        job.finish(expected=85)
    return reference


def goes_on(cwd, reference, ckpt="ckpt", env=None, on=()):
    with Job.restart(cwd, ckpt=ckpt, mpi="mpich", env=env, on=on) as job:
        lines = job.finish()
    check(5 < len(lines) < len(reference) and lines == reference[-len(lines):], f"wrong after restart: {lines[-2:]}")


def refused(cwd, *words, env=None, prefix=(), extra=()):
    """One line with all `words`, and the program has not said anything."""
    done = subprocess.run([*prefix, str(FERMATA), "restart", "--ckpt-dir", "ckpt", "--mpi", "mpich", *extra],
                          capture_output=True, text=True, timeout=harness.PATIENCE, cwd=cwd, stdin=subprocess.DEVNULL, env=env)
    ours = [line for line in done.stderr.splitlines() if line.startswith("fermata: error:")]
    check(done.returncode not in (0, 85) and len(ours) == 1, f"{done.returncode}: {done.stderr}")
    check("step" not in done.stdout, f"the program ran: {done.stdout}")
    for word in words:
        check(word in ours[0], f"'{word}' is not in: {ours[0]}")
    print("  ", ours[0])


OFF = ("--files", "off")  # else they are put back


def program_and_library_gone(cwd):
    """Their pages are in the image: neither file is needed."""
    reference = stopped_job(cwd)
    (cwd / "home" / "program").unlink()
    (cwd / "home" / "libelsewhere.so").unlink()
    goes_on(cwd, reference)


def another_library(cwd):
    """The library is at another path, and under its name there is another one, as after an upgrade: the image's copy counts, also
    in what a restarted job saves (whole, and as an increment of it)."""
    reference = stopped_job(cwd)
    library = cwd / "home" / "libelsewhere.so"
    library.rename(cwd / "elsewhere.so")
    shutil.copy(cwd / "home" / "program", library)
    lines = []
    with Job.restart(cwd, mpi="mpich", extra=["--save-options", "incremental"], env=ENV) as job:
        for more in (10, 30):
            job.wait_until(lambda: len(job.lines()) >= more, "more lines")
            job.checkpoint(*(("--stop",) if more == 30 else ()))
        lines = job.finish(expected=85)
    check(lines == reference[reference.index(lines[0]):][:len(lines)], f"wrong after restart: {lines[-2:]}")
    library.unlink()
    (cwd / "home" / "program").unlink()
    goes_on(cwd, reference)


def text_gone(cwd):
    """The copy of program and libraries is a file of the generation: refused without it, or with a changed one."""
    reference = stopped_job(cwd)
    text = max((cwd / "ckpt" / "gen-000001").glob("text-*.img"), key=lambda path: path.stat().st_size)
    text.rename(cwd / "away")
    refused(cwd, text.name)
    data = bytearray((cwd / "away").read_bytes())
    data[len(data) // 2] ^= 1
    text.write_bytes(data)
    refused(cwd, text.name)
    text.unlink()
    (cwd / "away").rename(text)
    goes_on(cwd, reference)


def another_path(cwd):
    """Of the generations, the directory that one stands in, and the environment."""
    reference = stopped_job(cwd)
    (cwd / "ckpt").rename(cwd / "moved")
    goes_on(cwd, reference, ckpt=cwd / "moved", env=dict(os.environ, HOME="/nonexistent", LD_LIBRARY_PATH="/nowhere"))


def directory_gone(cwd):
    stopped_job(cwd)
    (cwd / "home").rename(cwd / "away")
    refused(cwd, "home")


def input_gone(cwd):
    reference = stopped_job(cwd)
    (cwd / "home" / "input.1").rename(cwd / "away")
    refused(cwd, "home/input.1", "rank 1", extra=OFF)
    goes_on(cwd, reference)


def mapping_gone(cwd):
    reference = stopped_job(cwd)
    (cwd / "home" / "shared.0").rename(cwd / "away")
    refused(cwd, "home/shared.0", extra=OFF)
    goes_on(cwd, reference)


def mapping_shorter(cwd):
    reference = stopped_job(cwd)
    os.truncate(cwd / "home" / "shared.1", 4096)
    refused(cwd, "home/shared.1", "shorter", extra=OFF)
    goes_on(cwd, reference)


def cpu_without(cwd, *names):
    """Words before a command that see a CPU without these instruction sets: /proc/cpuinfo of a mount namespace says so."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    for name in names:
        text = text.replace(f" {name} ", " ")
    (cwd / "cpuinfo").write_text(text)
    # Of /proc only: the root of a chroot is no mount.
    hide = f'mount --make-private /proc && mount --bind {cwd}/cpuinfo /proc/cpuinfo && exec "$@"'
    return ("unshare", "-m", "--propagation", "unchanged", "sh", "-c", hide, "sh")


def another_cpu(cwd):
    reference = stopped_job(cwd)
    text = pathlib.Path("/proc/cpuinfo").read_text()
    lost = next(name for name in ("avx512f", "avx2", "avx", "sse4_2") if f" {name} " in text)
    prefix = cpu_without(cwd, lost)
    refused(cwd, lost, "FERMATA_ANY_CPU", prefix=prefix)
    done = subprocess.run([*prefix, str(FERMATA), "restart", "--ckpt-dir", "ckpt", "--mpi", "mpich"], capture_output=True,
                          text=True, timeout=harness.PATIENCE, cwd=cwd, env=dict(os.environ, FERMATA_ANY_CPU="1"))
    lines = done.stdout.splitlines()
    check(done.returncode == 0 and lines and lines == reference[-len(lines):], f"{done.returncode}: {done.stderr}")


def lesser_cpu(cwd):
    """A job that was kept to a level of CPUs, also by a restart on a better one, goes on on one of that level, and nowhere below."""
    reference = stopped_job(cwd, "--cpu", "x86-64-v2")
    with Job.restart(cwd, mpi="mpich", env=ENV) as job:
        job.wait_until(lambda: len(job.lines()) >= 10, "ten lines")
        check(job.checkpoint("--stop")["generation"] == "gen-000002", "another generation")
        job.finish(expected=85)
    for manifest in sorted((cwd / "ckpt").glob("gen-*/manifest.json")):
        check(json.loads(manifest.read_text().split("xxh3")[0])["cpu"] == "x86-64-v2", manifest)
    refused(cwd, "with sse4_2, which this one lacks", prefix=cpu_without(cwd, "sse4_2"))
    goes_on(cwd, reference, on=cpu_without(cwd, "avx512f", "avx2", "avx", "fma", "bmi2"))


CASES = {function.__name__: function for function in (
    program_and_library_gone, another_library, text_gone, another_path, directory_gone, input_gone, mapping_gone, mapping_shorter, another_cpu, lesser_cpu)}


def run(name):
    with Scratch(name) as cwd:
        CASES[name](cwd)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
