#!/usr/bin/env python3
"""A program's own state by libfermata: real ranks save it, others restore it, and what goes wrong is said.

    api_test.py CASE [--seed S] [--rounds N]
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import harness
from harness import BUILD, FERMATA, PROGRAMS, Scratch, check

ROOT = pathlib.Path(__file__).resolve().parents[2]

MPIS = ("openmpi", "mpich")
HOWS = ("block", "cyclic", "random", "planes")
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   PYTHONPATH=str(ROOT / "python"), FERMATA_LIBRARY=str(BUILD / "lib" / "libfermata.so.1"))


def mpiexec(mpi, ranks, *words, cwd, timeout=60):
    over = ["--oversubscribe"] if mpi == "openmpi" else []
    return subprocess.run([f"mpiexec.{mpi}", *over, "-n", str(ranks), *map(str, words)], cwd=cwd, env=ENVIRONMENT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, stdin=subprocess.DEVNULL)


def grid(mpi, ranks, what, directory, how, seed, *options, cwd):
    return mpiexec(mpi, ranks, PROGRAMS / f"grid.{mpi}", what, directory, how, seed, *options, cwd=cwd)


def said(run, code, *words):
    check(run.returncode == code and all(word in run.stdout for word in words), f"exit code {run.returncode}, wanted {code}: {words}\n{run.stdout}")


def right(run):
    said(run, 0, "0 wrong\n")


def other_ranks(cwd, draw, rounds):
    """Saved by some ranks with some distribution, layout and library, restored by others."""
    for number in range(rounds):
        directory = f"s{number}"
        options = draw.choice(["", "layout=shared", "compress=zstd", "layout=shared,compress=lz4", "threads=2"])
        save = draw.choice(MPIS), draw.randint(1, 4), "save", directory, draw.choice(HOWS), draw.randrange(10**6), options
        said(grid(*save, cwd=cwd), 0)
        for ranks in {draw.randint(1, 4), draw.choice((3, 6, 8))}:
            load = draw.choice(MPIS), ranks, "check", directory, draw.choice(HOWS), draw.randrange(10**6)
            try:
                right(grid(*load, cwd=cwd))
            except Exception as error:
                raise RuntimeError(f"{save} then {load}: {error}") from error
        shutil.rmtree(cwd / directory)


def four_ranks(cwd, draw, rounds):
    """What four ranks have saved, in blocks and cyclic, is the same array on 1, 2, 3, 6 and 8, in blocks and cyclic."""
    for how in ("block", "cyclic"):
        said(grid("mpich", 4, "save", how, how, 1, cwd=cwd), 0)
        for ranks in (1, 2, 3, 6, 8):
            run = grid(MPIS[ranks % 2], ranks, "check", how, "block+cyclic", 1, cwd=cwd)
            check(run.returncode == 0 and run.stdout.count("0 wrong\n") == 2, f"{how} on {ranks}: {run.stdout}")


def commands(cwd, draw, rounds):
    """The commands know such generations, and none continues one as a process."""
    said(grid("mpich", 3, "save", "s", "block", 1, cwd=cwd), 0)
    fermata = lambda *words: subprocess.run([FERMATA, *words, "--ckpt-dir", "s"], cwd=cwd, text=True, stdout=subprocess.PIPE,
                                            stderr=subprocess.STDOUT, timeout=60, check=False)
    said(fermata("list"), 0, "own state, step 41")
    said(fermata("verify"), 0, "intact")
    said(fermata("inspect"), 0, "psi", "array double[13][24][10]", "time", "global double[1]")
    said(fermata("inspect", "--regions"), 0, "psi")
    said(fermata("restart"), 3, "holds the state that the program saved itself")
    said(fermata("restart", "--generation", "1"), 3, "holds the state that the program saved itself")
    said(fermata("restart", "--generation", "latest"), 3, "holds the state that the program saved itself")
    said(fermata("compact"), 0)
    right(grid("openmpi", 2, "check", "s", "cyclic", 1, cwd=cwd))


def damaged(cwd, draw, rounds):
    """Every byte of an image and its manifest may be changed, or cut off: refused, or the generation before is taken."""
    for number in range(rounds):
        shutil.rmtree(cwd / "s", ignore_errors=True)
        two = number % 2 == 1
        for _ in range(1 + two):
            said(grid("mpich", 2, "save", "s", "block", 1, cwd=cwd), 0)
        newest = cwd / "s" / f"gen-{1 + two:06}"
        file = newest / draw.choice(["rank-000000.img", "rank-000001.img", "manifest.json"])
        size = file.stat().st_size
        how = draw.choice(["flip", "cut", "gone"])
        if how == "flip":
            with file.open("r+b") as image:
                # Between blocks there are bytes that nobody reads.
                at = draw.choice([draw.randrange(0x20, 0x28), 0x1000 + draw.randrange(1000), size - 1 - draw.randrange(100)]) if "rank" in file.name \
                    else draw.randrange(size)
                image.seek(at)
                byte = image.read(1)[0]
                image.seek(at)
                image.write(bytes([byte ^ (1 << draw.randrange(8))]))
        elif how == "cut":
            os.truncate(file, draw.randrange(size))
        else:
            file.unlink()
        run = grid("mpich", draw.choice((1, 2, 3)), "check", "s", "cyclic", 1, cwd=cwd)
        if how == "gone" and "manifest" in file.name:  # as if it had never been committed
            if two:
                right(run)
            else:
                said(run, 1, "restore: 1 ")
        elif two:
            said(run, 0, "0 wrong\n")
        else:
            said(run, 1, "restore: 5 ")
        check("wrong" not in run.stdout or "0 wrong" in run.stdout or run.returncode != 0, run.stdout)


def failing(cwd, draw, rounds):
    """A save that fails is told, and the generation before is still there."""
    state = PROGRAMS / "own_state.mpich"
    (cwd / "s").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "none", cwd / "s"], check=True)
    try:
        said(mpiexec("mpich", 2, state, "s", "small", cwd=cwd), 0, "restored 0\n", "saved 1\n")
        said(mpiexec("mpich", 2, state, "s", "large", cwd=cwd), 0, "wait: 4 rank", "No space left on device", "saved 0\n")
        refused(cwd, state)
    finally:
        subprocess.run(["umount", cwd / "s"], check=True)


def refused(cwd, state):
    check(sorted(path.name for path in (cwd / "s").glob("gen-*")) == ["gen-000001"], "not the generation before alone")
    said(mpiexec("mpich", 2, state, "s", "mismatch", cwd=cwd), 0, "save: 3 rank 1 protects other names")
    said(mpiexec("mpich", 3, state, "s", "small", cwd=cwd), 0, "restore: 3 rank 0: what was saved for", "there are other ranks now")
    said(mpiexec("mpich", 2, state, "s", "hooks", cwd=cwd), 0, "save: 2 rank 1: object: its pack hook returned 7")
    said(mpiexec("mpich", 2, state, "/proc/nothing", "small", cwd=cwd), 0, "open: 4 rank 0: ")
    said(mpiexec("mpich", 2, state, "s", "option", cwd=cwd), 0, "open: 2 ", "'kep=3' is no option")
    said(mpiexec("mpich", 2, state, "s", "small", cwd=cwd), 0, "restored 1\n")


def ranks_of(program, cwd):
    """Processes that run this program in this directory."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "exe") == str(program) and os.readlink(process / "cwd") == str(cwd):
                yield int(process.name)
        except OSError:
            pass


def killed(cwd, draw, rounds):
    """SIGKILL at any moment of save, write and restore: the next start has a step that was saved, and the right bits."""
    for number in range(rounds):
        mpi = MPIS[number % 2]
        words = PROGRAMS / f"walk.{mpi}", "s", 400, draw.choice(["", "layout=shared"])
        wanted = [line for line in mpiexec(mpi, 2, words[0], "undisturbed", 400, cwd=cwd).stdout.splitlines() if "end" in line]
        shutil.rmtree(cwd / "undisturbed", ignore_errors=True)
        shutil.rmtree(cwd / "s", ignore_errors=True)
        for life in range(4):
            over = ["--oversubscribe"] if mpi == "openmpi" else []
            job = subprocess.Popen([f"mpiexec.{mpi}", *over, "-n", str(draw.choice((1, 2, 3))), *map(str, words)], cwd=cwd, env=ENVIRONMENT,
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            time.sleep(draw.uniform(0.1, 0.9))
            victims = list(ranks_of(words[0], cwd)) if life < 3 else []
            for pid in draw.sample(victims, min(len(victims), draw.randint(1, 3))):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            out = job.communicate(timeout=60)[0]
            ends = [line for line in out.splitlines() if "end" in line]
            if ends:
                check(ends == wanted, f"round {number}, life {life}: {ends} instead of {wanted}")
                break
        else:
            raise RuntimeError(f"round {number}: no life came to its end: {out}")


def triggers(cwd, draw, rounds):
    """When to save and when to end: by interval, by wall time, by SIGUSR1 and SIGTERM to every rank; the last save counts."""
    program = PROGRAMS / "own_state.mpich"
    ended = lambda run: tuple(map(int, re.search(r"(-?\d+) saves, told (\d), step (\d+)", run.stdout).groups()))
    saves, told, _ = ended(mpiexec("mpich", 2, program, "s", "triggers", "interval=0.3s,walltime=4s", cwd=cwd))
    check(told == 1 and 4 <= saves <= 14, f"{saves} saves in four seconds, told {told}")
    shutil.rmtree(cwd / "s")

    def signalled(ckpt, options):
        job = subprocess.Popen(["mpiexec.mpich", "-n", "2", str(program), ckpt, "triggers", options], cwd=cwd, env=ENVIRONMENT,
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        first = job.stdout.readline()
        for number in (signal.SIGUSR1, signal.SIGTERM):
            time.sleep(0.5)
            for pid in list(ranks_of(program, cwd)):
                os.kill(pid, number)
        out = first + job.communicate(timeout=60)[0]
        found = re.search(r"(-?\d+) saves, told (\d), step (\d+)", out)
        check(found and found[1] == "2" and found[2] == "1", out)
        return first, int(found[3])

    # The second life begins where SIGTERM made the first one save; encrypted, and kept in memory until the end.
    key = cwd / "key"
    key.write_text(os.urandom(32).hex() + "\n")
    key.chmod(0o600)
    for options in ("signals=yes", "signals=yes,key=key", "signals=yes,memory=node,flush=0"):
        name = f"s{len(options)}"
        _, step = signalled(name, options)
        first, _ = signalled(name, options)
        check(first.split() == ["from", str(step - 1), "1"], f"{options}: {first}, ended at {step}")
    run = mpiexec("mpich", 2, program, f"s{len('signals=yes,key=key')}", "triggers", "walltime=1s", cwd=cwd)
    check("restore:" in run.stdout and "key" in run.stdout, f"without its key: {run.stdout}")


def on_nodes(nodes, root, ranks):
    """Words that give each rank the memory of its node: `nodes` of them, whose names are letters, in blocks."""
    script = (f'r=${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}; set -- "$@"; at=$((r * {len(nodes)} / {ranks} + 1)); '
              f'export FERMATA_MEMORY_DIR={root}/$(echo {nodes} | cut -c $at); mkdir -p $FERMATA_MEMORY_DIR; exec "$@"')
    return ["sh", "-c", script, "sh"]


def memory(cwd, draw, rounds):
    """Copies in memory and on another node: ranks killed at any moment, nodes wiped, copies changed; other nodes and
    other numbers of ranks go on, from the newest save that one node's loss leaves."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="fermata-api-", dir="/dev/shm"))
    try:
        saved = 0
        for number in range(rounds):
            mpi = MPIS[number % 2]
            program = PROGRAMS / f"walk.{mpi}"
            steps = 600
            wanted = [line for line in mpiexec(mpi, 1, program, "undisturbed", steps, cwd=cwd).stdout.splitlines() if "end" in line]
            for name in ("undisturbed", "s"):
                shutil.rmtree(cwd / name, ignore_errors=True)
            before, harmed = "", -1
            expected, nodes = 0, draw.choice(["ab", "abc"])
            life = 0
            while life < 5:
                ranks = draw.randint(3, 4)
                over = ["--oversubscribe"] if mpi == "openmpi" else []
                words = [*on_nodes(nodes, root, ranks), program, "s", steps, "memory=buddy,flush=" + draw.choice(["0", "5"])]
                job = subprocess.Popen([f"mpiexec.{mpi}", *over, "-n", str(ranks), *map(str, words)], cwd=cwd, env=ENVIRONMENT, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
                time.sleep(draw.uniform(0.3, 1.2))
                for pid in list(ranks_of(program, cwd)) if life < 4 else []:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                out = job.communicate(timeout=60)[0]
                began = [int(line.split()[1]) for line in out.splitlines() if line.startswith("from ")]
                check(not began or began[0] >= expected, f"round {number}, life {life}: went on from {began}, {expected} was saved by {before}\n{ranks} ranks on {nodes}\n{out}")
                if "has nothing older" in out:  # refused: two harms have met, and whoever runs it begins anew
                    check(expected == 0, f"round {number}, life {life}: {expected} was saved by {before}, and is lost\n{out}")
                    for place in [cwd / "s", *root.iterdir()]:
                        shutil.rmtree(place, ignore_errors=True)
                    harmed = -1
                    continue
                life += 1
                ends = [line for line in out.splitlines() if line.startswith("end")]
                if ends:
                    check(ends == wanted, f"round {number}, life {life}: {ends} instead of {wanted}")
                    stay = [path for node in nodes for path in (root / node).rglob("*.img")]
                    check(not stay, f"images stay in memory after a good end: {stay}")
                    break
                # What one node less, or one changed copy, must leave.
                # (One whose manifest is on one node only was not told to the program.)
                steps_of = lambda place: {json.loads(path.read_text().split("\nxxh3")[0])["application"]["step"]
                                          for path in place.rglob("manifest.json")}
                there = [steps_of(root / node) for node in nodes]
                expected = max((step for step in set().union(*there) if sum(step in one for one in there) > 1), default=0)
                saved += bool(expected)
                # A save bears one harm; what was harmed stays so until the next one.
                harm = draw.choice(["node", "flip", "nothing", "all"]) if expected != harmed else "none"
                harmed = expected
                before = f"{ranks} ranks on {nodes}, then {harm}; {there}; {sorted(str(p.relative_to(root)) for p in root.rglob('*.*'))}"
                if harm == "node":
                    shutil.rmtree(root / draw.choice(nodes), ignore_errors=True)
                elif harm == "all":
                    for node in root.iterdir():
                        shutil.rmtree(node)
                    expected = 0
                elif harm == "flip":
                    for image in draw.sample(sorted(root.rglob("*.img")), 1) if expected else []:
                        with image.open("r+b") as file:
                            file.seek(0x1000 + draw.randrange(64))
                            byte = file.read(1) or b"x"
                            file.seek(-1, 1)
                            file.write(bytes([byte[0] ^ 4]))
                # The next life has the memory of all nodes but one at most.
                if harm == "nothing" and len(nodes) == 3:
                    nodes = nodes.replace(draw.choice(nodes), "")
                elif len(nodes) == 2:
                    nodes = "".join(sorted(set(nodes + draw.choice("abcd"))))
            else:
                raise RuntimeError(f"round {number}: no life came to its end: {out}")
        check(saved, "nothing was ever in memory")
        run = mpiexec("mpich", 2, *on_nodes("a", root, 2), PROGRAMS / "walk.mpich", "s2", 10, "memory=buddy", cwd=cwd)
        check("memory=buddy needs a second node" in run.stdout, run.stdout)
        said(mpiexec("mpich", 2, *on_nodes("a", root, 2), PROGRAMS / "walk.mpich", "s2", 10, "memory=node", cwd=cwd), 0, "end")
    finally:
        shutil.rmtree(root)


def languages(cwd, draw, rounds):
    """Fortran, Python and C++: stopped, gone on with another number of ranks, to the last bit."""
    ends = {}
    for name, words in {"fortran": [PROGRAMS / "heat_f.mpich"], "fortran.openmpi": [PROGRAMS / "heat_f.openmpi"],
                        "python": ["/usr/bin/python3", ROOT / "examples" / "api" / "heat.py"], "c++": [PROGRAMS / "heat_cpp.mpich"]}.items():
        mpi = "mpich" if str(words[0]).endswith("mpich") else "openmpi"
        (cwd / name).mkdir()
        said(mpiexec(mpi, 3, *words, 120, cwd=cwd / name), 0, "step 120")
        run = mpiexec(mpi, 2, *words, 200, cwd=cwd / name)
        said(run, 0, "step 200 max")
        ends[name] = float(re.search(r"max +(\S+)", run.stdout)[1])
    check(len(set(ends.values())) == 1, f"they differ: {ends}")


CASES = {f.__name__: f for f in (other_ranks, four_ranks, commands, damaged, failing, killed, triggers, memory, languages)}


def case(name, *rest):
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--rounds", type=int, default={"other_ranks": 4, "damaged": 6, "killed": 2, "memory": 2}.get(name, 1))
    options = parser.parse_args(rest)
    with Scratch(f"api-{name}") as cwd:
        CASES[name](cwd, random.Random(options.seed), options.rounds)
    return f"seed {options.seed}"


if __name__ == "__main__":
    sys.exit(harness.main(case, CASES))
