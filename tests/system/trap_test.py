#!/usr/bin/env python3
"""The known traps: `trap CASE` stops at its hold, is checkpointed there, killed, and continued on both libraries.

    trap_test.py CASE [openmpi|mpich]      the library it is built for and first run on; the cases are in trap.c
"""
import os
import sys

import harness
from harness import PROGRAMS, Job, Scratch, check

# Where the program cannot go on before a file appears *during* the checkpoint: see trap.c.
LATE = {"large_captive_send", "blocked_ssend", "first_ssend"}

# Programs of their own: they ask for MPI_THREAD_MULTIPLE.
OWN = {"lone_windows": "lone", "file_threads": "file_threads", "parted_threads": "parted_threads",
       "second_begins": "second_begins", "window_bases": "bases"}

# What Debian's MPICH does wrong natively, and right below (findings/mpich-window-base.sh): the native run is Open MPI's.
RIGHT_ON_OPEN_MPI = {"window_bases"}

# The program's case with a preloaded library: another behaviour of the one below, or a profiling library.
PRELOADED = {"really_cancelled": ("cancelled", "libcancelling"), "counted": ("profiled", "libcounting")}


def run(case, built_for):
    with Scratch(case) as cwd:
        ranks = 4
        name, library = PRELOADED.get(case, (case, None))
        program = [PROGRAMS / f"{OWN.get(case, 'trap')}.{built_for}", name]

        def preload(mpi):
            if not library:
                return dict(os.environ)
            path = str(PROGRAMS / f"{library}.{mpi}.so")
            # The one that stands for a part of the library is below, the profiler is the program's.
            below = {"FERMATA_LOWER_PRELOAD": path} if library == "libcancelling" else {}
            return dict(os.environ, LD_PRELOAD=path, **below)

        natively = "openmpi" if case in RIGHT_ON_OPEN_MPI else built_for
        right = [PROGRAMS / f"{program[0].stem}.{natively}", name]
        native = [line for line in harness.native(right, ranks, natively, cwd, env=preload(natively))
                  if "right" in line]
        check(len(native) == 1, f"the native run says {native}")
        hold = cwd / "go"
        env = dict(preload(built_for), HOLD_FILE=str(hold))
        if case in LATE:
            env["HOLD_FILE_LATE"] = str(hold)
            env["HOLD_FILE"] = "/"  # exists: only the late one holds
        with Job.run(program, ranks, cwd, mpi=built_for, env=env) as job:
            job.wait_line("READY")
            generation = job.checkpoint()["generation"]
            # The job goes on undisturbed …
            hold.touch()
            lines = job.finish()
            check([line for line in lines if "right" in line] == native, f"after the checkpoint: {lines}")
        # … and from the generation, on both.
        for mpi in ("openmpi", "mpich"):
            with Job.restart(cwd, mpi=mpi, generation=1, env=preload(mpi)) as job:
                lines = job.finish()
                got = [line for line in lines if "right" in line]
                # This one has said it before the checkpoint.
                want = [] if case == "in_finalize" else native
                check(got == want, f"{generation} on {mpi}: {lines}, wanted {want}")
        print(f"{case}: {native[0]}; the same after {generation} on both libraries")


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    case = sys.argv[1]
    return harness.verdict(case, lambda: run(case, sys.argv[2] if len(sys.argv) > 2 else "openmpi"))


if __name__ == "__main__":
    sys.exit(main())
