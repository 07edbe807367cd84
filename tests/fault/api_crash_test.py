#!/usr/bin/env python3
"""Ranks, "nodes" and buddy pairs of examples/rt_tddft are killed by SIGKILL at drawn moments of libfermata's life, and killed
again while they restore: then the dipoles are right to the last bit, or one line says why there is nothing to go on from.

    api_crash_test.py rank|node|pair|all [--moments N] [--first K] [--seed S] [--log FILE]

A moment: a job on four ranks and two to four nodes (folders of memory) saves itself every third step, in files, one file or
memory with a buddy; who was drawn is killed in `save` (until it returns), `staged` (while a thread writes), `durable` (after
fermata_wait()) or `restore` (the job before died whole). A node that dies takes its memory with it; so do both of a pair, a rank's
and its buddy's. Three times in five the next start is killed too, while it restores. The last start has to end.

What has to be there is counted by itself: the newest step whose manifest is in the directory of files, or in memory on a node that
lives, when one node at most died since it was saved.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
import harness  # noqa: E402
from api_test import ENVIRONMENT, mpiexec  # noqa: E402
from harness import BUILD, PROGRAMS, Scratch, check  # noqa: E402

RANKS, STEPS, EVERY = 4, 13, 3
PROGRAM = PROGRAMS / "rt_tddft.openmpi"
WORDS = "n=12", "length=14", "bands=3", "dt=0.1", f"steps={STEPS}", "out=dipoles", "rounds=20"
KINDS = "rank", "node", "pair"
PHASES = "save", "staged", "durable", "restore"


def start(cwd, plan, nodes, root, *words):
    """One life of the job; `plan`: of api_kills.c, "" = it lives. `nodes`: by rank."""
    script = (f'r=$OMPI_COMM_WORLD_RANK; at=$((r + 1)); export FERMATA_MEMORY_DIR={root}/$(echo {nodes} | cut -c $at); '
              'mkdir -p $FERMATA_MEMORY_DIR; exec env LD_PRELOAD=$API_KILLS "$@"')
    ENVIRONMENT.update(API_KILL=plan, API_KILLS=str(BUILD / "tests" / "fault" / "libapi_kills.so"))
    run = mpiexec("openmpi", RANKS, "sh", "-c", script, "sh", PROGRAM, *WORDS, f"every={EVERY}", "dir=state", *words, cwd=cwd)
    check("wrong" not in run.stdout and "Assertion" not in run.stdout, run.stdout)
    return run


def steps_in(place):
    """Steps of the generations that have a manifest there."""
    return {json.loads(path.read_text().split("\nxxh3")[0])["application"]["step"] for path in place.rglob("manifest.json")}


class Moment:
    """One seeded moment: what was drawn, and what became of it."""

    def __init__(self, draw, kind, cwd, root, whole):
        self.draw, self.cwd, self.root, self.whole = draw, cwd, root, whole
        self.kind = kind
        self.mode = "memory" if kind == "pair" else draw.choice(["memory", "memory", "files", "shared"])
        self.nodes = draw.choice(["aabb", "abab", "aabc", "abcd"])
        self.flush = draw.choice([0, 2])
        self.phase = draw.choice(PHASES)
        self.again = draw.random() < 0.6
        self.victims, self.lost = self.who()
        self.must = 0  # the step that has to be there

    def who(self):
        """Ranks that die, and nodes that lose their memory."""
        one = self.draw.randrange(RANKS)
        node = self.nodes[one]
        if self.kind == "rank":
            return [one], ""
        gone = node if self.kind == "node" or self.mode != "memory" else node + self.buddy(one)
        return [r for r in range(RANKS) if self.nodes[r] in gone], gone

    def buddy(self, rank):
        """The node that has this rank's copy: as src/api/nodes.h says, the k-th rank of a node takes the k-th of the others."""
        names = list(dict.fromkeys(self.nodes))
        mine = names.index(self.nodes[rank])
        others = [r for k in range(1, len(names)) for r in range(RANKS) if self.nodes[r] == names[(mine + k) % len(names)]]
        k = [r for r in range(RANKS) if self.nodes[r] == self.nodes[rank]].index(rank)
        return self.nodes[others[k % len(others)]]

    def __str__(self):
        return (f"{self.kind} {self.mode} {self.phase}{' again' if self.again else ''}, ranks {self.victims} on {self.nodes}, "
                f"memory of {self.lost or 'none'} lost, flush {self.flush}")

    def words(self):
        return [f"mode={self.mode}", *([f"options=flush={self.flush}"] if self.mode == "memory" else [])]

    def life(self, phase, victims):
        """A life that is killed; then the nodes that died lose their memory."""
        count = self.draw.randint(1, 4)
        # A save takes 3 to 30 ms here, a restore some 10.
        delay = self.draw.choice([0, self.draw.randrange(3000), self.draw.randrange(30000)])
        run = start(self.cwd, f"{'+'.join(map(str, victims))} {phase} {count} {delay}", self.nodes, self.root, *self.words())
        self.judge(run)
        return run.returncode != 0

    def lose(self):
        """What is left: counted before the loss, at what one node less may take."""
        files = steps_in(self.cwd / "state") if (self.cwd / "state").exists() else set()
        names = sorted(set(self.nodes))
        there = {name: steps_in(self.root / name) for name in names if (self.root / name).exists()}
        for name in self.lost:
            shutil.rmtree(self.root / name, ignore_errors=True)
        memory = set()
        if len(self.lost) <= 1:
            # A manifest on one node alone was never told to the program.
            memory = {step for step in set().union(*there.values(), set()) if sum(step in one for one in there.values()) > 1}
        self.must = max(files | memory, default=0)
        self.seen = f"files {sorted(files)}, memory { {name: sorted(steps) for name, steps in there.items()} }, must be {self.must}"

    def judge(self, run):
        """Ended right, refused clearly (then True), or killed."""
        began = re.search(r"restored step (\d+)", run.stdout)
        refused = re.search(r"rt_tddft: .*(was in memory, and no node|and has nothing older).*", run.stdout)
        if began:
            check(int(began[1]) >= self.must, f"went on from {began[1]}\n{run.stdout}")
        if "end step" in run.stdout:
            check(bool(began) or self.must == 0, f"began anew although {self.must} was there\n{run.stdout}")
            check((self.cwd / "dipoles").read_bytes() == self.whole[0], f"other dipoles\n{run.stdout}")
            check(re.search(r"end step.*", run.stdout)[0] == self.whole[1], f"another end\n{run.stdout}")
        return bool(refused)

    def run(self):
        """How it ended: "restored", "anew" or "refused"; and how many lives were killed."""
        for name in ("state", "dipoles"):
            path = self.cwd / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        for node in self.root.iterdir():
            shutil.rmtree(node)
        if self.phase == "restore":
            killed = self.life("durable", range(RANKS))
            if killed:
                killed += self.life("restore", self.victims)
        else:
            killed = int(self.life(self.phase, self.victims))
        self.lose()
        if self.again and killed:
            killed += self.life("restore", self.draw.sample(range(RANKS), self.draw.randint(1, RANKS)))
        if not killed:
            return "not killed", 0
        run = start(self.cwd, "", self.nodes, self.root, *self.words())
        refused = self.judge(run)
        if refused:
            check(self.must == 0 and run.returncode != 0, f"refused although {self.must} was there\n{run.stdout}")
            return "refused", killed
        check("end step" in run.stdout and run.returncode == 0, f"neither an end nor a refusal\n{run.stdout}")
        return ("restored" if "restored step" in run.stdout else "anew"), killed


def case(name, *rest):
    parser = argparse.ArgumentParser()
    parser.add_argument("--moments", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the number of the first moment: one alone can be repeated")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--log", type=pathlib.Path)
    options = parser.parse_args(rest)
    kinds, ends, kills = KINDS if name == "all" else (name,), collections.Counter(), 0
    root = pathlib.Path(tempfile.mkdtemp(prefix="fermata-api-", dir="/dev/shm"))
    try:
        with Scratch("api-crash") as cwd:
            run = start(cwd, "", "aaaa", root, "mode=none")
            whole = (cwd / "dipoles").read_bytes(), re.search(r"end step.*", run.stdout)[0]
            for number in range(options.first, options.first + options.moments):
                draw = random.Random(f"{options.seed} {number}")
                moment = Moment(draw, kinds[number % len(kinds)], cwd, root, whole)
                try:
                    end, killed = moment.run()
                except Exception as error:
                    raise harness.Failure(f"seed {options.seed}, moment {number}: {moment}; {getattr(moment, 'seen', '')}\n{error}") from error
                ends[end] += 1
                kills += killed
                if options.log:
                    with options.log.open("a") as log:
                        log.write(f"{options.seed} {number}: {moment}; {getattr(moment, 'seen', '')}: {end}, {killed} lives killed\n")
    finally:
        shutil.rmtree(root)
    check(kills > 0, "nobody was killed")
    return f"seed {options.seed}: {kills} lives killed; {dict(ends)}"


if __name__ == "__main__":
    sys.exit(harness.main(case, (*KINDS, "all")))
