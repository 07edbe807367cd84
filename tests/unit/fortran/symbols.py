"""Every Fortran symbol that the real libraries export or need is in the fronts.

    symbols.py FRONTS SYSTEM_LIBRARIES

Real libraries that are missing are left out; without any of them the test is skipped (77).
"""

import re
import subprocess
import sys
from pathlib import Path


def nm(path, *options):
    out = subprocess.run(["nm", "-D", *options, path], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines() if line.strip()}


def main(fronts, system):
    fronts, system = Path(fronts), Path(system)
    bad = checked = 0

    def complain(what, names):
        nonlocal bad
        for name in sorted(names):
            print(f"{what}: {name}")
            bad += 1

    # Open MPI: each procedure in the four manglings that compilers use; bind(C) names only as its modules need them.
    real = system / "libmpi_mpifh.so.40"
    ours = nm(fronts / "libmpi_mpifh.so.40", "--defined-only")
    if real.exists():
        checked += 1
        wanted = {n for n in nm(real, "--defined-only") if re.match(r"p?mpi_", n)}
        # Sizes are asked through a generic of the module, in one mangling only.
        wanted = {n for n in wanted if "sizeof" not in n or n.endswith("_") and not n.endswith("__")}
        complain("libmpi_mpifh.so.40 lacks", wanted - ours)
    below = {
        "libmpi_usempif08.so.40": ours | nm(fronts / "libmpi.so.40", "--defined-only"),
        "libmpi_usempi_ignore_tkr.so.40": ours | nm(fronts / "libmpi.so.40", "--defined-only"),
        "libmpichfort.so.12": nm(fronts / "libmpich.so.12", "--defined-only"),
    }
    for name, offered in below.items():
        if (system / name).exists():
            checked += 1
            needed = {n for n in nm(system / name, "--undefined-only") if re.search(r"mpi", n, re.I)}
            complain(f"{name} needs", needed - offered)
    if not checked:
        print("none of the real Fortran libraries is here: skipped")
        sys.exit(77)
    if bad:
        sys.exit(1)


main(*sys.argv[1:])
