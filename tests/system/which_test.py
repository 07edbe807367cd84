#!/usr/bin/env python3
"""Whatever way a program comes to libmpi, it gets the front, is stopped and continued on both libraries; what has no front is refused.

    which_test.py CASE openmpi|mpich
"""
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys

import harness
from harness import FERMATA, PROGRAMS, Job, Scratch, check

SONAME = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}
# What the names without a version mean where compilers look for them.
PLAIN = {"openmpi": "libmpi.so", "mpich": "libmpich.so"}
BOTH = ("openmpi", "mpich")


def library(mpi):
    """The site's own, as the loader finds it."""
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return pathlib.Path(next(line.split("=> ")[1] for line in cache.splitlines()
                             if line.strip().startswith(SONAME[mpi] + " ")))


def compiler(*words):
    subprocess.run(["gcc", *map(str, words)], check=True)


def stub(path, soname=None, names=("MPI_Init",)):
    """A library of that name, to link with."""
    source = path.with_suffix(".c")
    source.write_text("".join(f"int {name}(void) {{ return 0; }}\n" for name in names))
    compiler("-shared", "-fPIC", source, "-o", path, *([f"-Wl,-soname,{soname}"] if soname else []))


def goes_on(cwd, mpi, program, env=None):
    """Two ranks are one world; stopped, and continued on both libraries."""
    hold = cwd / "go"
    env = dict(os.environ, HOLD_FILE=str(hold), **(env or {}))
    with Job.run(program, 2, cwd, mpi=mpi, env=env) as job:
        job.wait_line("READY 3")
        job.checkpoint("--stop")
        check(job.end() == 85, f"not stopped: {job.errors()}")
    hold.touch()
    for other in BOTH:
        with Job.restart(cwd, mpi=other) as job:
            check(job.finish()[-1:] == ["sum 7"], f"on {other}: {job.lines()} {job.errors()}")
    hold.unlink()


def path(cwd, mpi):
    goes_on(cwd, mpi, [PROGRAMS / "which", "open", library(mpi)])


def late(cwd, mpi):
    """Only after the restart."""
    goes_on(cwd, mpi, [PROGRAMS / "which", "late", library(mpi)])


def plain(cwd, mpi):
    """libmpi.so, libmpich.so: links for the compiler."""
    goes_on(cwd, mpi, [PROGRAMS / "which", "open", PLAIN[mpi]])


def link(cwd, mpi):
    """Another name, another folder, and bound to itself first."""
    (cwd / "some.so").symlink_to(library(mpi))
    goes_on(cwd, mpi, [PROGRAMS / "which", "deep", "./some.so"])


def copies(cwd):
    (cwd / "copies").mkdir()
    for mpi in BOTH:
        shutil.copy(library(mpi), cwd / "copies" / SONAME[mpi])
    return cwd / "copies"


def search_path(cwd, mpi):
    """A copy in LD_LIBRARY_PATH, under a name that the front does not have."""
    own = copies(cwd) / "libown.so"
    shutil.copy(library(mpi), own)
    goes_on(cwd, mpi, [PROGRAMS / "which", "open", "libown.so"], {"LD_LIBRARY_PATH": str(own.parent)})


def plugin(cwd, mpi):
    """Opened by path; needs libmpi, which its DT_RUNPATH finds in a folder with copies."""
    stub(cwd / "libmpi-stub.so", SONAME[mpi])
    (cwd / "plugin.c").write_text("int MPI_Init(); int begin(void) { return MPI_Init(0, 0); }\n")
    compiler("-shared", "-fPIC", cwd / "plugin.c", cwd / "libmpi-stub.so", f"-Wl,-rpath,{copies(cwd)}", "-o", cwd / "plugin.so")
    goes_on(cwd, mpi, [PROGRAMS / "which", "open", cwd / "plugin.so"])


def needed_by_path(cwd, mpi):
    """DT_NEEDED is a path: what a linker writes for a library without a soname."""
    own = cwd / "libown.so"
    stub(own)
    compiler(pathlib.Path(__file__).resolve().parents[1] / "programs" / "which.c", "-Wl,--no-as-needed", own,
             "-ldl", "-o", cwd / "linked")
    own.unlink()
    own.symlink_to(library(mpi))
    needed = subprocess.run(["readelf", "-d", cwd / "linked"], capture_output=True, text=True, check=True).stdout
    check(f"[{own}]" in needed, needed)
    said = subprocess.run([FERMATA, "run", "--check", "--json", "--", cwd / "linked"], capture_output=True, text=True, timeout=60)
    facts = json.loads(said.stdout)
    check(facts["mpi"] == mpi and [(one["asked"], one["found"], pathlib.Path(one["given"]).name) for one in facts["which"]]
          == [(str(own), str(own), SONAME[mpi])], said.stdout + said.stderr)
    goes_on(cwd, mpi, [cwd / "linked", "linked"])


def preload(cwd, mpi):
    goes_on(cwd, mpi, [PROGRAMS / "which", "linked"], {"LD_PRELOAD": str(library(mpi))})


def python(cwd, mpi):
    """ctypes, by path; no version of the standard ABI is to be had there."""
    (cwd / "ring.py").write_text(f"""
import ctypes as c, os
own = c.CDLL("{library(mpi)}")
assert own.MPI_Init(None, None) == 0
major, minor = c.c_int(7), c.c_int(7)
assert own.MPI_Abi_get_version(c.byref(major), c.byref(minor)) == 0 and (major.value, minor.value) == (-1, -1), major
standard = c.CDLL("libmpi_abi.so.1")
assert standard.MPI_Abi_get_version(c.byref(major), c.byref(minor)) == 0 and (major.value, minor.value) == (1, 0), major
own.MPI_Finalize()
os.write(1, b"right\\n")  # in one piece: mpiexec may put one rank's line into another's
""")
    with Job.run(["/usr/bin/python3", cwd / "ring.py"], 2, cwd, mpi=mpi) as job:
        check(job.finish() == ["right"] * 2, job.output())


def refused(cwd, mpi, program, *words):
    with Job.run(program, 2, cwd, mpi=mpi) as job:
        code = job.end()
        lines = [line for line in job.errors().splitlines() if all(str(word) in line for word in words)]
        check(code not in (0, 85) and len(lines) in (1, 2) and "READY" not in job.output(), f"{code}: {job.errors()}{job.output()}")


def no_front(cwd, mpi):
    """An MPI library of an ABI that there is no front for; one in a namespace of its own; one inside the program."""
    old = cwd / "libold.so"
    stub(old, "libmpi.so.20", ("MPI_Init", "PMPI_Init", "MPI_Comm_rank", "MPI_Allreduce", "MPI_Finalize"))
    refused(cwd, mpi, [PROGRAMS / "which", "open", old], old, "no front for")
    refused(cwd, mpi, [PROGRAMS / "which", "space", library(mpi)], "dlmopen")
    (cwd / "inside.c").write_text("int PMPI_Init(void) { return 0; }\nint main(void) { return PMPI_Init(); }\n")
    compiler(cwd / "inside.c", "-o", cwd / "inside")
    # Stripped, what it says is left.
    (cwd / "says.c").write_text('#include <stdio.h>\nint main(void) { puts("MPIR_CVAR_X"); puts("bad MPI_COMM_WORLD"); }\n')
    compiler("-s", cwd / "says.c", "-o", cwd / "says")
    for words, program in itertools.product(((), ("--check",)), ("inside", "says")):
        done = harness.call("run", *words, "--mpi", mpi, "--", cwd / program, cwd=cwd)
        check(done.returncode == 1 and "linked into it" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr)


def at_checkpoint(cwd, mpi):
    """Code of the real library that no ld.so has brought: the checkpoint is refused with its path, the job goes on."""
    hold = cwd / "go"
    with Job.run([PROGRAMS / "which", "map", SONAME[mpi], library(mpi)], 2, cwd, mpi=mpi,
                 env=dict(os.environ, HOLD_FILE=str(hold))) as job:
        job.wait_line("READY 3")
        for _ in range(2):
            done = job.ask("checkpoint")
            check(done.returncode == 3 and str(library(mpi).resolve()) in done.stderr and len(done.stderr.splitlines()) == 1,
                  f"{done.returncode} {done.stderr}")
        hold.touch()
        check(job.finish()[-1:] == ["sum 7"], job.output())


def environment(cwd, mpi):
    """PATH and LD_LIBRARY_PATH are those of a native run, and so is the program; --wdir counts."""
    tool = cwd / "bin" / "python3"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\necho "$1 $PATH $LD_LIBRARY_PATH $(pwd)"\n')
    tool.chmod(0o755)
    for folders in (f"{tool.parent}:/usr/bin:/bin", f"/bin:../bin:/usr/bin:{tool.parent}"):
        env = dict(os.environ, PATH=folders, LD_LIBRARY_PATH="/nowhere")
        name = "python3" if folders.startswith(str(tool.parent)) else "only"
        if name == "only":
            tool.rename(tool.with_name("only"))
            (cwd / "deep").mkdir()
        there = [cwd / "deep"] if name == "only" else []
        native = harness.native([*(["--wdir", *there] if there else []), name, "one"], 1, mpi, cwd, env=env)
        words = ["--chdir" if harness.LAUNCHER == "srun" else "--wdir", *there] if there else []
        with Job.run([name, "one"], 1, cwd, mpi=mpi, env=env,
                     extra=["--mpiexec-args", " ".join(map(str, words))] if words else []) as job:
            job.end()
            check(job.output().splitlines() == native, f"{job.output()}, native {native}; {job.errors()}")


CASES = {f.__name__: f for f in (path, late, plain, link, search_path, plugin, needed_by_path, preload, python, no_front, at_checkpoint,
                                 environment)}


def run(name, mpi):
    with Scratch("which") as cwd:
        return CASES[name](cwd, mpi)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
