#!/usr/bin/env python3
"""examples/rt_tddft: its physics against what is known exactly, and its restarts to the last bit.

    rt_tddft_test.py CASE
"""
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import harness
from api_test import ENVIRONMENT, ROOT, mpiexec, on_nodes, said
from harness import FERMATA, PROGRAMS, Scratch, check

PROGRAM = PROGRAMS / "rt_tddft.openmpi"
SMALL = "n=12", "length=14", "bands=3", "dt=0.1"


def rt(cwd, ranks, *words, code=0, say="end step"):
    run = mpiexec("openmpi", ranks, PROGRAM, *words, cwd=cwd, timeout=100)
    said(run, code, say)
    return run.stdout


def dipoles(path):
    return [tuple(map(float, line.split())) for line in path.read_text().splitlines()]


def kohn(cwd):
    """In a harmonic potential the dipole is N kick / w sin(w t), whatever the electrons do; the error falls with dt squared."""
    worst = []
    for dt in (0.1, 0.05):
        rt(cwd, 2, "n=20", "length=20", f"dt={dt}", f"steps={round(25 / dt)}", "kick=0.001", f"out=d{dt}")
        exact = 2 * 0.001 / 0.25
        worst.append(max(abs(d - exact * math.sin(0.25 * t)) for t, d in dipoles(cwd / f"d{dt}")) / exact)
    check(worst[0] < 6e-4 and 3.5 < worst[0] / worst[1] < 4.5, f"errors {worst}")
    # Four orbitals, two groups of planes: another division, the same physics.
    rt(cwd, 2, "n=20", "length=20", "bands=4", "groups=2", "dt=0.1", "steps=60", "out=four")
    far = max(abs(d - 0.032 * math.sin(0.25 * t)) for t, d in dipoles(cwd / "four")) / 0.032
    check(far < 6e-4, f"eight electrons: {far}")


def spectrum(cwd):
    """Helium in one dimension: energy, first excitation, its strength, and the sum of all (f-sum rule)."""
    out = rt(cwd, 1, "system=helium", "n=128", "length=51.2", "rounds=300", "dt=0.05", "steps=6000", "out=helium")
    energy = float(re.search(r"energy (\S+)", out)[1])
    check(abs(energy + 2.224210) < 2e-6, f"energy {energy}")
    said_ = subprocess.run(["/usr/bin/python3", ROOT / "examples/rt_tddft/spectrum.py", "helium", "--kick", "0.001", "--to", "4", "--points", "4000",
                            "--table", "table", "--plot", "plot.svg"], cwd=cwd, check=True, text=True, stdout=subprocess.PIPE, timeout=60).stdout
    line, strength, total = map(float, re.match(r"first line (\S+) Ha, strength (\S+); sum (\S+)", said_).groups())
    check(abs(line - 0.548644) < 1e-3 and abs(strength - 1.23623) < 0.02 and abs(total - 2) < 0.01, said_)
    check((cwd / "plot.svg").stat().st_size > 10000 and len((cwd / "table").read_text().splitlines()) == 4002, "no table or no plot")


def restarts(cwd):
    """Every way: stopped at step 20 and gone on with, the same file of dipoles to the last bit; on other ranks to rounding."""
    whole = rt(cwd, 2, *SMALL, "steps=40", "out=whole", "mode=none")
    for mode in ("own-file", "own-files", "shared", "files"):
        words = *SMALL, f"mode={mode}", f"dir=state-{mode}", f"out={mode}", "every=10"
        rt(cwd, 2, *words, "steps=25")
        with (cwd / mode).open("a") as more:
            more.write("what was said after the checkpoint\n")
        # A kick of the command line does not count any more.
        out = rt(cwd, 2, *words, "steps=40", "kick=7", "every=0", say="restored step 20")
        check((cwd / mode).read_bytes() == (cwd / "whole").read_bytes(), f"{mode}: other dipoles")
        check(re.search(r"end step.*", out)[0] == re.search(r"end step.*", whole)[0], f"{mode}: another end")
        # From step 20 on other ranks: FFTW's transforms add in another order there. The dipole is a sum of terms whose sizes
        # add up to about 10, so 1e-13 is 50 roundings of it; 2e-14 is seen.
        for ranks, groups in ((1, 1), (3, 1), (4, 2), (6, 3)):
            if mode == "own-files":
                said(mpiexec("openmpi", 1, PROGRAM, *words, "steps=40", cwd=cwd), 1, "are there other ranks now?")
                break
            rt(cwd, ranks, *words, "steps=40", f"groups={groups}", "every=0", say="restored step 20")
            far = max(abs(d - e) for (_, d), (_, e) in zip(dipoles(cwd / mode), dipoles(cwd / "whole")))
            check(far <= 1e-13, f"{mode} on {ranks} ranks: {far} apart")
    (cwd / "files").write_text("0 0\n")
    rt(cwd, 2, *SMALL, "mode=files", "dir=state-files", "out=files", code=1, say="is shorter than when the state was saved")


def transparent(cwd):
    """`fermata run --interval` around the same program, which saves nothing itself."""
    rt(cwd, 2, *SMALL, "steps=2500", "out=whole")
    job = "--job", f"rt-{os.getpid()}", "--ckpt-dir", "ckpt"
    fermata = lambda *words: subprocess.run([FERMATA, *words], cwd=cwd, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
    said(fermata("run", *job, "--mpi", "openmpi", "-n", "2", "--interval", "300ms", "--", PROGRAM, *SMALL, "steps=2500", "out=with"), 0, "end step 2500")
    check((cwd / "with").read_bytes() == (cwd / "whole").read_bytes(), "other dipoles under Fermata")
    # The oldest: the newest may have been saved when the last line was out.
    oldest = min((cwd / "ckpt").glob("gen-*")).name
    said(fermata("list", *job[2:]), 0, oldest)
    said(fermata("restart", *job, "--generation", str(int(oldest[4:]))), 0, "end step 2500")
    check((cwd / "with").read_bytes() == (cwd / "whole").read_bytes(), "other dipoles after the restart")


def memory(cwd):
    """A rank dies by SIGKILL; both samples come from memory, on two nodes: the same dipoles to the last bit."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="fermata-rt-", dir="/dev/shm"))
    try:
        rt(cwd, 2, *SMALL, "steps=40", "out=whole")
        words = *on_nodes("ab", root, 2), PROGRAM, *SMALL, "steps=40", "mode=memory", "options=flush=0", "every=10"
        check(mpiexec("openmpi", 2, *words, "die=27", cwd=cwd).returncode != 0, "nobody died")
        shutil.rmtree(root / "b")  # its node went, too
        said(mpiexec("openmpi", 2, *words, cwd=cwd), 0, "restored step 20", "end step 40")
        check((cwd / "dipole.txt").read_bytes() == (cwd / "whole").read_bytes(), "other dipoles")
    finally:
        shutil.rmtree(root)


CASES = {f.__name__: f for f in (kohn, spectrum, restarts, memory, transparent)}


def case(name):
    with Scratch(f"rt-{name}") as cwd:
        CASES[name](cwd)
    return "right"


if __name__ == "__main__":
    sys.exit(harness.main(case, CASES))
