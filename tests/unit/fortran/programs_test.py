"""Runs one Fortran program natively and under Fermata on a library; both must print the same lines.

    programs_test.py PROGRAM ABI LIBRARY

The programs check every value themselves and print what is wrong: MPICH 4.0.2's own mpi_f08 counts completed requests
from 0, for instance, and must go on doing so.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "system"))
from harness import Scratch, call, check, native  # noqa: E402


def main(program, abi, library):
    with Scratch("fortran") as folder:
        expected = sorted(native([program], 2, abi, folder))
        # A debugging aid that is always there: what was wrong shows in the lines themselves.
        done = call("run", "-n", "2", "--mpi", library, "--ckpt-dir", folder / "ckpt", program, cwd=folder)
        got = sorted(done.stdout.splitlines())
        check(done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}")
        check(any("checks failed" in line for line in got), f"no summary: {done.stdout!r} {done.stderr[-2000:]!r}")
        check(got == expected, f"native: {expected}\nunder Fermata: {got}")


main(*sys.argv[1:])
