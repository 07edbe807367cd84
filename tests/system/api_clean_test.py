#!/usr/bin/env python3
"""libfermata from outside: its headers in every language and compiler, its page's quick start as it stands there, and its
memory under valgrind with real ranks.

    api_clean_test.py CASE [--mpi openmpi|mpich] [--all]      memcheck --all: all programs, two minutes
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

import harness
from api_test import ENVIRONMENT, MPIS, ROOT, mpiexec, on_nodes, said
from harness import BUILD, PROGRAMS, Scratch, check

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wcast-qual", "-Wwrite-strings", "-Wundef",
            "-Wvla", "-Wformat=2", "-Wpointer-arith", "-Werror")
ONLY_C = ("-Wstrict-prototypes", "-Wmissing-prototypes")
# What mpi.h itself is warned of does not count: its folder is a system one.
USES = {"use.c": "#include <fermata/fermata.h>\nint main(void) { return fermata_message(0) == 0; }\n",
        "veloc.c": "#include <veloc.h>\nint main(void) { return VELOC_Checkpoint_mem(); }\n",
        "veloc.cpp": "#include <veloc.hpp>\nint main() { return veloc::get_client(1, \"none\") != nullptr; }\n",
        "core.c": "#include <fermata/fermata_core.h>\nint main(void) { return fermata_message(0) == 0; }\n",
        "use.cpp": "#include <fermata/fermata.hpp>\nint main() { std::vector<int> v; return fermata::type_of<double>() == FERMATA_BYTE; }\n",
        "c.cpp": "#include <fermata/fermata.h>\nint main() { return fermata_message(nullptr) == nullptr; }\n"}

# Saves memory that it has given back: valgrind has to see libfermata read it.
PLANTED = """#include <fermata/fermata.h>
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    fermata_handle* f;
    double* x = calloc(100, sizeof *x);
    int bad = fermata_open(&f, MPI_COMM_WORLD, "planted-state", NULL);
    bad |= fermata_protect_global(f, "x", x, FERMATA_DOUBLE, 100);
    free(x);
    bad |= fermata_save(f, 1);
    bad |= fermata_close(f);
    MPI_Finalize();
    return bad;
}
"""


def include_folders(mpi):
    shown = subprocess.run([f"mpicc.{mpi}", "-show"], text=True, stdout=subprocess.PIPE, check=True).stdout
    return re.findall(r"-I(\S+)", shown)


def headers(cwd, options):
    """C99 to C17 and C++17 to C++20, gcc and clang, all warnings; Fortran 2018 by gfortran."""
    for mpi in MPIS:
        system = [word for folder in include_folders(mpi) for word in ("-isystem", folder)]
        for name, text in USES.items():
            (cwd / name).write_text(text)
            cpp = name.endswith("cpp")
            for compiler in ("g++", "clang++") if cpp else ("gcc", "clang"):
                for standard in ("c++17", "c++20") if cpp else ("c99", "c11", "c17"):
                    words = [compiler, f"-std={standard}", *WARNINGS, *(() if cpp else ONLY_C), "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "-I",
                             ROOT / "include", *system, "-fsyntax-only", name]
                    run = subprocess.run(words, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
                    said(run, 0)
        run = subprocess.run([f"mpif90.{mpi}", "-std=f2018", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", ROOT / "include/fermata/fermata.f90"],
                             cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        said(run, 0)


def quick_start(cwd, options):
    """The commands of docs/api.md as they are pasted, with the build folder in the place of an installed Fermata."""
    page = (ROOT / "docs" / "api.md").read_text()
    block = re.search(r"## Quick start\n\n((?:    .*\n|\n)+)", page)[1]
    script = re.sub(r"^    ", "", block, flags=re.M)
    environment = dict(ENVIRONMENT, CPATH=str(ROOT / "include"), LIBRARY_PATH=str(BUILD / "lib"), LD_LIBRARY_PATH=str(BUILD / "lib"),
                       PATH=f"{BUILD / 'bin'}:{os.environ['PATH']}", OMPI_MCA_rmaps_base_oversubscribe="1",
                       PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe")
    run = subprocess.run(["bash", "-e"], input=script, cwd=cwd, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    said(run, 0, "own state, step 200")
    values = {int(at): float(value) for at, value in re.findall(r"x\[(\d+)\] is (\S+)", run.stdout)}
    check(sorted(values) == [0, 250, 500, 750] and all(value == 300 * at for at, value in values.items()), run.stdout)
    check(len(re.findall(r"x\[500\] is 150000", run.stdout)) == 2, f"two runs, to the same end: {run.stdout}")


def complaints(folder):
    """What valgrind says of memory that libfermata has to do with, by rank."""
    for file in sorted(folder.glob("vg-*.xml")):
        tree = xml.parse(file)
        check(tree.find("fatal_signal") is None and any(state.text == "FINISHED" for state in tree.iter("state")), f"{file} is not whole")
        for error in tree.iter("error"):
            frames = [(frame.findtext("obj", ""), frame.findtext("fn", "?")) for frame in error.iter("frame")]
            if any("libfermata" in obj for obj, _ in frames):
                yield f"{file.name}: {error.findtext('kind')}: {' <- '.join(fn for _, fn in frames[:12])}"


def memcheck(cwd, options):
    """Save, restore on other ranks, both layouts, memory with a buddy, errors: valgrind finds nothing wrong in libfermata."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="fermata-api-", dir="/dev/shm"))
    valgrind = ["valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite", "--xml=yes", f"--xml-file={cwd}/vg-%p.xml"]
    grid, walk, own = (PROGRAMS / f"{name}.{options.mpi}" for name in ("grid", "walk", "own_state"))
    runs = [(2, [grid, "save", "s", "block+cyclic", 1, "layout=shared,compress=zstd"], "", 0), (3, [grid, "check", "s", "random", 1], "0 wrong", 0)]
    if options.all:
        runs += [(2, [grid, "save", "t", "random+planes", 1, "threads=2"], "", 0), (1, [grid, "check", "t", "block+cyclic+random", 2], "0 wrong", 0),
                 (4, [grid, "check", "s", "planes+cyclic", 3], "0 wrong", 0), (2, [own, "o", "small"], "saved 1", 0), (2, [own, "o", "mismatch"], "save: 3", 0),
                 (2, [own, "o", "hooks"], "save: 2", 0), (2, [own, "o", "option"], "open: 2", 0), (3, [own, "o", "small"], "restore: 3", 0),
                 (2, [own, "p", "triggers", "interval=0.2s,walltime=3s"], "told 1", 0)]
    runs.append((2, [walk, "m", 30, "memory=buddy,flush=2"], "end", 0))
    try:
        for ranks, words, wanted, code in runs:
            nodes = on_nodes("ab", root, ranks) if "memory=buddy,flush=2" in words else []
            said(mpiexec(options.mpi, ranks, *nodes, *valgrind, *words, cwd=cwd, timeout=150), code, wanted)
        files = list(cwd.glob("vg-*.xml"))
        check(len(files) == sum(ranks for ranks, *_ in runs), f"{len(files)} reports of valgrind")
        found = list(complaints(cwd))
        check(not found, "\n".join(found[:20]))
        (cwd / "planted.c").write_text(PLANTED)
        subprocess.run([f"mpicc.{options.mpi}", "-O0", "-I", ROOT / "include", "planted.c", "-L", BUILD / "lib", "-lfermata", f"-Wl,-rpath,{BUILD}/lib",
                        "-o", "planted"], cwd=cwd, check=True, timeout=60)
        said(mpiexec(options.mpi, 1, *valgrind, "./planted", cwd=cwd, timeout=150), 0)
        check(any("InvalidRead" in one for one in complaints(cwd)), "what was planted is not found")
    finally:
        shutil.rmtree(root)


CASES = {f.__name__: f for f in (headers, quick_start, memcheck)}


def case(name, *rest):
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpi", choices=MPIS, default="mpich")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args(rest)
    with Scratch(f"api-{name}") as cwd:
        CASES[name](cwd, options)
    return "right"


if __name__ == "__main__":
    sys.exit(harness.main(case, CASES))
