#!/usr/bin/env python3
"""What an MPI library really offers: functions and constants that compile against its mpi.h *and* link.

Two compiler runs per library, not one per name: every candidate sits on a line of its own and the compiler's
(then the linker's) complaints say which ones are missing. Never #ifdef: many constants are enumerators, and
headers declare functions that a build leaves out.

  probe.py --api mpi.json --constants mpi_constants.json --compiler g++ --include DIR --library FILE --out probe.json
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def names(path, key):
    """The names in one of mpi/'s tables: MPI_ and a library's own, MPIX_ and OMPI_."""
    rows = json.loads(pathlib.Path(path).read_text())[key]
    return sorted({row["name"] for row in rows if row["name"].startswith(("MPI_", "MPIX_", "OMPI_"))})


def run(command):
    env = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)
    return done.returncode, done.stderr


def missing_lines(compiler, flags, source, tag):
    """Line numbers of `source` with errors, removed and tried again until the rest compiles."""
    lines = source.splitlines()
    bad = set()
    for _ in range(4):
        text = "\n".join("" if i + 1 in bad else line for i, line in enumerate(lines)) + "\n"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / f"{tag}.cpp"
            path.write_text(text)
            code, err = run([*compiler, "-std=c++20", "-w", "-fmax-errors=0", "-fsyntax-only", *flags, str(path)])
        if code == 0:
            return bad
        found = {int(m.group(1)) for m in re.finditer(rf"{tag}\.cpp:(\d+):\d+: error", err)} - bad
        if not found:
            sys.exit(f"probe.py: {tag} does not compile against {' '.join(flags)}: {err[:400]}")
        bad |= found
    sys.exit(f"probe.py: {tag}: too many rounds of compiler errors; compiler output: {err[:400]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--api", required=True)
    parser.add_argument("--constants", required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--undeclared", required=True, help="a header that declares what the library's own hides")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    compiler = args.compiler.split()
    flags = [f"-I{args.include}", "-DOMPI_SKIP_MPICXX=1", "-DMPICH_SKIP_MPICXX=1"]

    functions = names(args.api, "functions")
    head = f'#include <mpi.h>\n#include "{args.undeclared}"\n'
    source = head + "\n".join(f"void* f{i} = reinterpret_cast<void*>(&{n});" for i, n in enumerate(functions))
    bad = missing_lines(compiler, flags, source, "functions")
    functions = [n for i, n in enumerate(functions) if i + 3 not in bad]

    constants = names(args.constants, "constants")
    source = head + "\n".join(f"void c{i}() {{ auto c = ({n}); (void)c; }}" for i, n in enumerate(constants))
    bad = missing_lines(compiler, flags, source, "constants")
    constants = [n for i, n in enumerate(constants) if i + 3 not in bad]

    # What is declared must also link.
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "link.cpp"
        table = ", ".join(f"reinterpret_cast<void*>(&{n})" for n in functions)
        path.write_text(f"{head}void* table[] = {{{table}}};\nint main() {{ return table[0] == nullptr; }}\n")
        code, err = run([*compiler, "-std=c++20", "-w", *flags, str(path), args.library, "-o", str(path) + ".out"])
    if code != 0:
        undefined = set(re.findall(r"undefined reference to [`']P?(MPI_\w+)'", err))
        if not undefined:
            sys.exit(f"probe.py: cannot link with {args.library}: {err[:400]}")
        functions = [n for n in functions if n not in undefined]

    pathlib.Path(args.out).write_text(json.dumps({"functions": functions, "constants": constants}, indent=1) + "\n")


if __name__ == "__main__":
    main()
