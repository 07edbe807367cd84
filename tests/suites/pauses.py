#!/usr/bin/env python3
"""Writes a profiling library in C (PMPI) that sleeps before some of the program's MPI calls.

    pauses.py mpicc.mpich > pauses.c; mpicc.mpich -shared -fPIC -w -o pauses.so pauses.c

Programs of test suites are over in a tenth of a second; with it checkpoints meet them everywhere in their work, and the
ranks at different places. PAUSE_SEED, PAUSE_MS and PAUSE_COUNT (so many sleeps at most) tell it what to do.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Asked in loops that may run as long as a pause lasts, or called where sleeping says nothing.
LEFT_OUT = {"MPI_Wtime", "MPI_Wtick", "MPI_Pcontrol", "MPI_Abort", "MPI_Error_string", "MPI_Error_class"}

HEAD = r"""
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static int left = -1;
static uint64_t state;
static void pause_now_and_then(void) {
    if (left == -1) {
        const char *seed = getenv("PAUSE_SEED"), *count = getenv("PAUSE_COUNT");
        const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
        left = count ? atoi(count) : 10;
        state = (seed ? strtoull(seed, 0, 10) : 1) * 7919 + (rank ? strtoull(rank, 0, 10) : 0) * 104729 + 88172645463325252ull;
    }
    if (left <= 0) return;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    if (state % 4 != 0) return;
    left--;
    const char *ms = getenv("PAUSE_MS");
    struct timespec time = {0, 1000000l * (ms ? atoi(ms) : 50)};
    nanosleep(&time, 0);
}
"""


def main():
    header = subprocess.run([sys.argv[1], "-E", "-x", "c", "-"], input="#include <mpi.h>", text=True, check=True,
                            capture_output=True).stdout
    print(HEAD)
    for line in (ROOT / "mpi" / "mpi.json").read_text().splitlines():
        line = line.strip().rstrip(",")
        if not line.startswith('{"name": "MPI_'):
            continue
        f = json.loads(line)
        name = f["name"]
        if name in LEFT_OUT or "ret" in f or f["chapter"].startswith("removed") or not re.search(rf"\bP{name}\(", header):
            continue
        # The header's own words: constness differs between libraries.
        match = re.search(rf"\bint {name}\(([^;]*?)\)\s*(?:__attribute[^;]*)?;", header, re.DOTALL)
        if match is None or "..." in match.group(1):
            continue
        parameters = " ".join(match.group(1).split())
        if parameters in ("void", ""):
            names = ""
        else:
            words = [re.sub(r"\[[^]]*\]", "", part).strip() for part in re.sub(r"\([^()]*\)", "", parameters).split(",")]
            names = ", ".join(re.search(r"(\w+)$", word).group(1) for word in words)
        print(f"int {name}({parameters}) {{ pause_now_and_then(); return P{name}({names}); }}")


if __name__ == "__main__":
    main()
