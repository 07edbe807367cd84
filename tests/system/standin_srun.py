#!/usr/bin/env python3
"""A stand-in for Slurm's srun where there is no Slurm: srun's command line, MPICH's mpiexec behind it. It calls itself
slurmstepd, whose signals ranks hold back; `STANDIN_DIR/signal` with a number in it makes it send that one to its ranks,
as `scancel -s` does. What it was called with is in `STANDIN_DIR/words`.
"""
import ctypes
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

DIRECTORY = pathlib.Path(os.environ["STANDIN_DIR"])
# What mpiexec (MPICH 4.0.2) writes among the ranks' lines when it sees the connection of a rank without MPI_Finalize end
# just before it sees the rank end. srun writes nothing then.
CLOSED_FIRST = ("YOUR APPLICATION TERMINATED WITH", "This typically refers to a problem with your", "Please see the FAQ page for debugging")
PLUGINS = os.environ.get("STANDIN_PLUGINS", "pmi2 none").split()


def command(words):
    """The number of ranks, and what is to run."""
    ranks, at = "1", 0
    while words[at].startswith("-"):
        if words[at] in ("-n", "-w", "-N"):
            ranks = words[at + 1] if words[at] == "-n" else ranks
            at += 1
        at += 1
    return ranks, words[at:]


def children(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def ranks_of(pid):
    below = children(pid)
    return [child for child in below if b"lower-" in (pathlib.Path("/proc") / str(child) / "exe").readlink().name.encode()] + \
        [rank for child in below for rank in ranks_of(child)]


def leaves_the_others_alone():
    """When a rank ends without MPI_Finalize. From MPICH 4.2 on this option sends SIGUSR1 to the others when a rank has come to its
    end, natively, too: who is a little later loses its last lines. There the others are killed, which are about to leave as well."""
    said = subprocess.run(["mpiexec.mpich", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"Version: *(\d+)\.(\d+)", said)
    return [] if tuple(map(int, version.groups())) >= (4, 2) else ["-disable-auto-cleanup"]


def main():
    if "--mpi=list" in sys.argv:
        print("MPI plugin types are...\n\t" + "\n\t".join(PLUGINS))
        return 0
    (DIRECTORY / "words").write_text("\n".join(sys.argv[1:]) + "\n")
    ctypes.CDLL(None).prctl(15, b"slurmstepd", 0, 0, 0)
    ranks, program = command(sys.argv[1:])
    alone = "--mpi=none" in sys.argv
    words = [f"exec mpiexec.mpich -n 1 \"$@\" & exec mpiexec.mpich -n 1 \"$@\""] if alone else []
    start = ["sh", "-c", *words, "sh", *program] if alone else ["mpiexec.mpich", *leaves_the_others_alone(), "-n", ranks, *program]
    child = subprocess.Popen(start, stdout=subprocess.PIPE)
    without = [word for line in CLOSED_FIRST for word in ("-e", f"/^{line}/d")]
    lines = subprocess.Popen(["sed", "-u", *without], stdin=child.stdout)
    child.stdout.close()
    signal.signal(signal.SIGTERM, lambda *_: child.kill())
    wanted = DIRECTORY / "signal"
    while child.poll() is None:
        if wanted.exists():
            number = int(wanted.read_text())
            wanted.unlink()
            for rank in ranks_of(child.pid):
                os.kill(rank, number)
        time.sleep(0.02)
    lines.wait()
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


if __name__ == "__main__":
    raise SystemExit(main())
