#!/usr/bin/env python3
"""VeloC's interface on libfermata: walks by memory and by files, killed and continued; a checkpoint that one rank could not write;
objects of C++; and, by hand, VeloC's own example programs as they are.

    api_veloc_test.py CASE
    api_veloc_test.py public FOLDER      FOLDER: a checkout of github.com/ECP-VeloC/VELOC, of which nothing is changed
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import harness
from api_test import ENVIRONMENT, MPIS, ROOT, mpiexec, said
from harness import BUILD, FERMATA, PROGRAMS, Scratch, check

LINK = ["-L", str(BUILD / "lib"), "-lfermata", f"-Wl,-rpath,{BUILD}/lib", "-lm"]


def configured(cwd, *lines):
    (cwd / "veloc.cfg").write_text("\n".join([f"scratch = {cwd}/scratch", f"persistent = {cwd}/persistent", "# a comment", *lines]) + "\n")
    return "veloc.cfg"


def fresh(cwd):
    for name in ("scratch", "persistent"):
        shutil.rmtree(cwd / name, ignore_errors=True)


def walks(cwd, options):
    """Stopped by SIGKILL after step 35, continued from version 30: the undisturbed end."""
    for number, (how, mode) in enumerate([("mem", "async"), ("file", "async"), ("parts", "sync"), ("file", "sync")]):
        mpi = MPIS[number % 2]
        program, config = PROGRAMS / f"veloc.{mpi}", configured(cwd, f"mode = {mode}", "max_versions = 2", "chksum = true", "meta = /nowhere")
        fresh(cwd)
        whole = mpiexec(mpi, 2, program, config, how, 60, cwd=cwd)
        said(whole, 0, "from 0\n", "end ")
        fresh(cwd)
        # Not by the exit code: MPICH 4.2.1's mpiexec says 0 now and then when ranks are killed.
        check("end " not in mpiexec(mpi, 2, program, config, how, "35k", cwd=cwd).stdout, "nobody died")
        run = mpiexec(mpi, 2, program, config, how, 60, cwd=cwd)
        said(run, 0, "from 30\n", re.search(r"end \S+", whole.stdout)[0])
        check(not list((cwd / "scratch").iterdir()), f"left in scratch: {list((cwd / 'scratch').iterdir())}")
        kept = sorted(path.name for path in (cwd / "persistent" / "walk").glob("gen-*"))
        check(len(kept) == 2, f"max_versions = 2, and there are {kept}")
        listed = subprocess.run([FERMATA, "list", "--ckpt-dir", "persistent/walk"], cwd=cwd, text=True, stdout=subprocess.PIPE, check=True, timeout=60)
        said(listed, 0, "own state, step 60")
    # MPICH 4.2.1's mpiexec loses last words of ranks that end at once.
    said(mpiexec("openmpi", 3, PROGRAMS / "veloc.openmpi", "veloc.cfg", "mem", 60, cwd=cwd), 3, "there are other ranks now")


def bad(cwd, options):
    """success = 0 on one rank: the version does not exist for anybody; wrong calls and wrong configurations are refused."""
    for mpi in MPIS:
        fresh(cwd)
        run = mpiexec(mpi, 2, PROGRAMS / f"veloc.{mpi}", configured(cwd), "bad", 0, cwd=cwd)
        said(run, 0, "rank 1: it says that it could not save bad 2", "between the begin and the end",
             *(f"rank {r}: end -1, nested -1, newest 1, below -1, value 1, none -1, finished 1" for r in (0, 1)))
    (cwd / "none.cfg").write_text("scratch = here\n")
    run = mpiexec("mpich", 1, PROGRAMS / "veloc.mpich", "none.cfg", "mem", 1, cwd=cwd)
    said(run, 3, "none.cfg: it needs scratch = FOLDER and persistent = FOLDER", "init failed")
    run = mpiexec("mpich", 1, PROGRAMS / "veloc.mpich", configured(cwd, "max_version = 3"), "mem", 1, cwd=cwd)
    said(run, 0, "'max_version = 3' means nothing to Fermata")


def objects(cwd, options):
    """C++: regions and objects in one checkpoint, by a process that is alone and by ranks."""
    for mpi in MPIS:
        fresh(cwd)
        run = mpiexec(mpi, 2, PROGRAMS / f"veloc_cpp.{mpi}", configured(cwd, "mode = async"), cwd=cwd)
        said(run, 0)
        check(run.stdout.count("right\n") == 4 and run.stdout.count("observed first 0") == 4, run.stdout)


def public(cwd, options):
    """VeloC's heatdis_mem, heatdis_file and heatdis_fault, built as they are; and its cpp_test where its serialisers are installed."""
    sources = options.folder / "test"
    config = configured(cwd, "mode = async", "max_versions = 2", "scratch_versions = 1", "chksum = true")
    for mpi in MPIS:
        for name in ("heatdis_mem.c", "heatdis_file.c", "heatdis_fault.cpp", "heatdis_original.c"):
            compiler = "mpicxx" if name.endswith("cpp") else "mpicc"
            subprocess.run([f"{compiler}.{mpi}", "-O2", "-w", "-I", ROOT, "-I", ROOT / "include", sources / name, *LINK, "-o", name.split(".")[0]], cwd=cwd, check=True)
        told = lambda run: re.findall(r"Step : \d+, error = \S+", run.stdout)
        whole = told(mpiexec(mpi, 2, "./heatdis_original", 8, "none", cwd=cwd))
        for name in ("heatdis_mem", "heatdis_file"):
            fresh(cwd)
            run = mpiexec(mpi, 2, f"./{name}", 8, config, cwd=cwd)
            said(run, 0, "Execution finished")
            check(told(run) == whole, f"{name}: {run.stdout}")
            again = mpiexec(mpi, 2, f"./{name}", 8, config, cwd=cwd)
            said(again, 0, "Previous checkpoint found at iteration 600", "Execution finished")
        fresh(cwd)
        check(mpiexec(mpi, 2, "./heatdis_fault", 8, config, cwd=cwd).returncode != 0, "it did not abort")
        shutil.rmtree(cwd / "scratch")
        run = mpiexec(mpi, 2, "./heatdis_fault", 8, config, cwd=cwd)
        said(run, 0, "Restart from iteration 200", "Execution finished")
        # The first line after a restart has no error yet.
        check(told(run)[1:] == whole[5:], run.stdout)
        print(f"{mpi}: heatdis_mem, heatdis_file, heatdis_fault: the native lines", flush=True)
    if options.serialisers:
        fresh(cwd)
        subprocess.run(["mpicxx.mpich", "-std=c++17", "-O2", "-w", "-I", ROOT, "-I", ROOT / "include", "-idirafter", options.folder / "include",
                        *(word for folder in options.serialisers for word in ("-I", folder)), sources / "cpp_test.cpp", *LINK, "-lboost_serialization",
                        "-o", "cpp_test"], cwd=cwd, check=True)
        said(mpiexec("mpich", 1, "./cpp_test", config, cwd=cwd), 0, "C++ test passed")
        print("cpp_test: passed", flush=True)


CASES = {f.__name__: f for f in (walks, bad, objects, public)}


def case(name, *rest):
    parser = argparse.ArgumentParser()
    if name == "public":
        parser.add_argument("folder", type=pathlib.Path)
        parser.add_argument("--serialisers", nargs="*", default=[], help="folders of bitsery's, cereal's and Boost's headers: cpp_test, too")
    options = parser.parse_args(rest)
    with Scratch(f"veloc-{name}") as cwd:
        CASES[name](cwd, options)
    return "right"


if __name__ == "__main__":
    sys.exit(harness.main(case, CASES))
