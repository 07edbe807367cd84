#!/usr/bin/env python3
"""Every kill point of the message log and of copies by its name (src/base/kill_point.h), singly and with a second death.

    cmake --preset kill && ninja -C build-kill
    tests/suites/kill_points.py [--mpi openmpi|mpich] [--nodes 1|2] [--ranks 2] [--points REGEX] [--second WHO|all] [--generations]

A job whose ranks all have copies is struck again and again: the process that passes the point dies there, and perhaps a second one right
after it (its copy, another copy, another rank, a node daemon); then the job gets its copies back and is struck at the next point. It has
to end with the native lines and files, each line once; without --generations a death that nothing masks ends it with exit code 137 and a
line, with them it goes back to the newest one. Nothing stands still. A point that was not reached is a failure, too: those that need two
nodes, or one, are left to the other kind of run.
"""
import argparse
import collections
import contextlib
import os
import pathlib
import random
import re
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("FERMATA_BUILD", str(ROOT / "build-kill"))
sys.path.insert(0, str(ROOT / "tests" / "system"))
import harness  # noqa: E402
from harness import BUILD, PROGRAMS, Failure, Job, Scratch, check  # noqa: E402
from nodes_test import Cluster  # noqa: E402
from deaths import NOTHING_YET, SAID, STRANGE, Victims, kill  # noqa: E402

ORDER, HIT = BUILD / "kill_point", BUILD / "kill_point.hit"
STEPS = 1500
KINDS = ["barrier", "bcast", "scatter", "gather", "reduce", "allreduce", "allgather", "alltoall", "scan", "reduce_scatter", "create"]
SECOND = ["none", "its copy", "another copy", "another rank", "daemon"]
DELAYS = [0.0, 0.01, 0.1, 0.5]

# What happens for the point to be reached, and whom the order is for.
CALLS = ["send.before", "send.after", "send.complete", "receive.matched", "told.before_stream", "told.in_stream", "receipt.before",
         "receipt.after", "receipt.heard", "log.full", "log.spills", "log.spilled", "send.stable"]
STOPS = ["stop.asked", "stop.stands", "hop.orders", "hop.before_fork", "hop.forked", "child.forked", "child.before_init", "child.after_init",
         "rebuild.log", "child.rebuilds", "child.before_restored", "child.restored", "hop.resumed", "hop.moved", "child.goes"]
TAKES = ["daemon.promotes", "promotion.before_files", "promotion.puts_file", "promotion.private_file", "promotion.after_files"]
STAYS = ["copy.before_it_stays", "copy.stays", "copy.brought_back"]
CLONES = ["save.before_capture", "save.captured", "save.writes", "clone.loads", "clone.loaded"]
COMES_BACK = ["child.tells_log", "rebuild.log", "child.rebuilds", "child.before_restored", "child.restored", "child.goes"]
ENDS = ["finalize.before", "finalize.arrived", "finalize.released"]

Point = collections.namedtuple("Point", "name kind whom trigger how")


def points(options):
    """In the order of an ordinary life; those of the end are struck last."""
    every = [Point(name, -1, "rank", "nothing", "kill") for name in CALLS]
    for name in ("collective.before", "collective.after"):
        every += [Point(name, kind, "any", "nothing", "kill") for kind in range(len(KINDS))]  # not all ranks come by each
    # Inside: a moment after the point.
    every += [Point("collective.before", kind, "any", "nothing", "say") for kind in range(len(KINDS))]
    every += [Point(name, -1, "rank", "nothing", "say") for name in ("send.before", "send.after")]
    every += [Point("child.before_init", -1, "any", trigger, "say") for trigger in ("death", "renewal")]
    every += [Point("stream.full", -1, "rank", "copy stands", "kill"), Point("copy.heard", -1, "copy", "nothing", "kill")]
    every += [Point(name, -1, "any" if name.startswith(("child", "rebuild")) else "rank", trigger, "kill")
              for trigger in ("death", "renewal") for name in STOPS]
    every += [Point(name, -1, "any", "death", "kill") for name in TAKES]
    every += [Point(name, -1, "any", "copy dies", "kill") for name in STAYS + CLONES]
    if options.generations:
        every += [Point(name, -1, "rank", "checkpoint", "kill") for name in ("stop.asked", "stop.stands", *CLONES[:3])]
        every += [Point(name, -1, "any", "both die", "kill") for name in COMES_BACK]
    every += [Point(name, -1, "any", "end", "kill") for name in ENDS]
    if options.nodes > 1:
        every += [Point(name, -1, "rank", "nothing", "kill") for name in ("send.not_stable", "collective.not_stable")]
        every = [one for one in every if one.name not in [*STAYS, "promotion.private_file", "stream.full"]]
    else:
        every = [one for one in every if one.name not in CLONES or one.trigger == "checkpoint"]
    return [one for one in every if re.search(options.points, name_of(one))]


def name_of(point):
    kind = f".{KINDS[point.kind]}" if point.kind >= 0 else ""
    inside = " (inside)" if point.how == "say" else ""
    return f"{point.name}{kind}{inside}" + (f" by {point.trigger}" if point.trigger != "nothing" else "")


def eventually(job, condition, seconds):
    end = time.monotonic() + seconds
    while job.process.poll() is None and time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.002)
    return False


def all_have_copies(job, ranks, dead):
    """The job has heard of all deaths, and nobody lacks a copy."""
    try:
        status = job.status()
        members = status["replicas"]["ranks"]
        pids = {one.get("pid") for one in [*status["ranks"], *members]}
        follow = sum(one.get("copy") == "follows" for one in members)
        play = sum(bool(one.get("pid")) for one in status["ranks"])
        return status["state"] == "running" and not dead & pids and follow == play == ranks
    except (Failure, KeyError, ValueError):
        return False


def hit():
    """The process that has passed the point; None: none yet."""
    try:
        words = HIT.read_text().splitlines()
        return int(words[1]) if len(words) > 1 else None
    except (OSError, ValueError):
        return None


class Strike:
    """One at one job, with all that was done in words."""

    count = 0

    def __init__(self, job, point, second, draw, options):
        self.job, self.point, self.second, self.draw, self.options = job, point, second, draw, options
        self.rank = draw.randrange(options.ranks)
        self.words = [name_of(point)]
        self.asked, self.dead = None, set()

    def kill(self, pid):
        if not kill(pid):
            return False
        self.dead.add(pid)
        return True

    def order(self, victims):
        pid = {"rank": victims.ranks.get(self.rank), "copy": victims.copies.get(self.rank), "any": 0}[self.point.whom] or 0
        often = 1 if self.point.trigger != "nothing" or self.point.kind >= 0 else self.draw.randrange(1, 6)
        Strike.count += 1
        for file in (ORDER, HIT):
            file.unlink(missing_ok=True)
        text = f"{self.point.name} {self.point.kind} {pid} {often} {os.getpid() * 1000 + Strike.count} {self.point.how}\n"
        (ORDER.parent / "kill_point.new").write_text(text)
        (ORDER.parent / "kill_point.new").rename(ORDER)

    def trigger(self, victims, stop_file):
        """Makes the job come to the point; what has to be done afterwards."""
        trigger = self.point.trigger
        others = [one for one in victims.ranks if one != self.rank]
        if trigger == "death":
            self.kill(victims.ranks[self.draw.choice(others)])
        elif trigger == "both die":
            self.kill(victims.copies.get(self.rank))
            self.kill(victims.ranks[self.rank])
        elif trigger == "copy dies":
            self.kill(victims.copies.get(self.rank))
        elif trigger in ("renewal", "checkpoint"):
            verb = "renew" if trigger == "renewal" else "checkpoint"
            words = [*self.job.on, str(harness.FERMATA), verb, "--job", self.job.name]
            with open(os.devnull, "w") as nothing:
                self.asked = harness.subprocess.Popen(words, stdout=nothing, stderr=nothing)
        elif trigger == "copy stands":
            os.kill(victims.copies[self.rank], signal.SIGSTOP)
        elif trigger == "end":
            stop_file.write_text("")

    def second_dies(self, victims):
        if self.second == "none":
            return
        time.sleep(self.draw.choice(DELAYS) * self.draw.uniform(0.5, 1))
        if self.second == "daemon":
            victims.daemons = self.job.daemon_pids()
        self.words.append(self.second if self.kill(victims.of(self.second, self.rank, self.draw)) else f"no {self.second}")

    def run(self, stop_file):
        """False: the point was not reached."""
        victims = Victims(self.job)
        self.order(victims)
        self.trigger(victims, stop_file)
        reached = eventually(self.job, hit, 20)
        if reached:
            self.dead.add(hit())
        ORDER.unlink(missing_ok=True)
        if self.point.trigger == "copy stands":
            with contextlib.suppress(ProcessLookupError):
                os.kill(victims.copies[self.rank], signal.SIGCONT)
        if reached and self.point.how == "say":
            time.sleep(self.draw.uniform(0, 0.001 if self.point.name != "child.before_init" else 0.3))
            kill(hit())
        if reached:
            self.second_dies(victims)
        if self.asked:
            self.asked.wait(harness.PATIENCE)
        return bool(reached)


@contextlib.contextmanager
def nodes(cwd, options):
    if options.nodes < 2:
        yield ["--launcher", "own"], None, ()
        return
    with Cluster(cwd, options.nodes) as cluster:
        yield cluster.own_job((options.ranks + 1) // options.nodes)
        for node in cluster.nodes:
            node.empty()


def files_of(options):
    """A rank that reads and writes a file has its copy beside it."""
    return "both" if options.nodes < 2 else "one"


class Wanted:
    """What the undisturbed program writes."""

    def __init__(self, mpi, options):
        with Scratch("points-native") as cwd:
            self.lines = harness.native([PROGRAMS / f"every_point.{mpi}", STEPS, 0, files_of(options)], options.ranks, mpi, cwd)
            self.written = [(cwd / f"written.{rank}").read_bytes() for rank in range(options.ranks)]

    def compare(self, lines, cwd, once, words):
        seen = list(dict.fromkeys(lines))
        check(seen == self.lines[:len(seen)] and (not once or len(seen) == len(lines)),
              f"{words}: lines differ from the native ones, or come twice: {len(lines)}, {len(seen)} of them different")
        return int(lines[-1].split()[1]) + 1 if lines else 0  # after a rollback it may end earlier than it had come

    def compare_files(self, steps, cwd, words):
        for rank, wanted in enumerate(self.written):
            size = len(wanted) // STEPS * steps
            check((cwd / f"written.{rank}").read_bytes() == wanted[:size], f"{words}: written.{rank} differs after {steps} steps")


def look(job, options):
    """What there is to see of a job that stands still."""
    if options.look:
        harness.subprocess.run([*options.look.split(), *map(str, job.processes())], check=False)
    return f"{job.ask('status').stdout}\n{job.errors()[-3000:]}"


class Life:
    """One job, struck until it ends."""

    def __init__(self, mpi, wanted, draw, options):
        self.mpi, self.wanted, self.draw, self.options = mpi, wanted, draw, options
        self.done, self.missed, self.dead = [], [], set()
        self.masks = False

    def run(self, waiting):
        """Takes from the front of `waiting` what it has struck; the counts of how strikes ended."""
        options = self.options
        with Scratch(f"points-{self.mpi}") as cwd, nodes(cwd, options) as (more, env, on):
            extra = ["--replicas", "all", "--message-log-memory", "1MiB"]
            if options.generations:
                extra += ["--interval", "1s", "--max-restarts", "50"]
            program = [PROGRAMS / f"every_point.{self.mpi}", STEPS, 1000, files_of(options), cwd / "stop"]
            with Job.run(program, options.ranks, cwd, mpi=self.mpi, extra=[*extra, *more], env=env, on=on) as job:
                self.strikes(job, waiting, cwd)
                (cwd / "stop").write_text("")
                eventually(job, lambda: False, options.patience)
                check(job.process.poll() is not None, f"{self.done}: it stands still\n{look(job, self.options)}")
                self.compare(job, cwd)
            return self.missed

    def strikes(self, job, waiting, cwd):
        while waiting and len(self.done) < self.options.strikes:
            if not eventually(job, lambda: all_have_copies(job, self.options.ranks, self.dead), 60):
                check(job.process.poll() is not None, f"{self.done}: copies do not come back\n{look(job, self.options)}")
                return
            point, second = waiting.pop(0)
            strike = Strike(job, point, second, self.draw, self.options)
            try:
                if not strike.run(cwd / "stop"):
                    self.missed.append(name_of(point))
            except (Failure, KeyError, ValueError, OSError):
                strike.words.append("no job any more")
            self.done.append(", ".join(strike.words))
            self.masks = point.trigger == "nothing" and second == "none"  # every rank has its copy
            self.dead |= strike.dead
            if point.trigger == "end":
                return

    def compare(self, job, cwd):
        code, errors, lines = job.process.returncode, job.errors(), job.lines()
        strange = STRANGE.findall(errors)
        check(not strange, f"{self.done}: {strange}\n{errors[-3000:]}")
        back = "went back" in errors or "goes on from" in errors or "restart" in errors
        steps = self.wanted.compare(lines, cwd, not back, self.done)
        if code == 0:
            self.wanted.compare_files(steps, cwd, self.done)
        else:
            line = (NOTHING_YET if self.options.generations else SAID).search(errors)
            check(code == 137 and line and not self.masks, f"{self.done}: exit code {code}:\n{errors[-3000:]}")
        how = "ended with 0" if code == 0 else f"ended with {code}: {errors.strip().splitlines()[-1]}"
        print(f"{len(self.done)} strikes, {steps} steps, {how}\n    " + "\n    ".join(self.done), flush=True)


def all_points(mpi, options):
    draw = random.Random(f"{options.seed} {mpi} {options.nodes}")
    seconds = SECOND if options.second == "all" else [options.second]
    waiting = [(point, second) for second in seconds for point in points(options)]
    if options.second == "all":
        draw.shuffle(waiting)
    waiting = waiting[:options.most]
    wanted, count, wrong, missed = Wanted(mpi, options), len(waiting), [], []
    while waiting:
        life = Life(mpi, wanted, draw, options)
        try:
            missed += life.run(waiting)
        except Failure as failure:
            print(f"FAILED {failure}", flush=True)
            wrong.append(life.done)
        check(life.done, "a job that could not be struck")
    check(not wrong, f"{len(wrong)} jobs of {count} strikes failed")
    check(not missed, f"not reached: {missed}")
    return f"{count} strikes"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", choices=["openmpi", "mpich"])
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--points", default="")
    parser.add_argument("--second", choices=[*SECOND, "all"], default="none")
    parser.add_argument("--strikes", type=int, default=8, help="at one job at most")
    parser.add_argument("--most", type=int, default=10000, help="strikes in all")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--patience", type=float, default=180)
    parser.add_argument("--look", help="a command that is run with the pids of a job that stands still")
    parser.add_argument("--generations", action="store_true")
    options = parser.parse_args()
    check((ROOT / "src/base/kill_point.h").exists() and BUILD.exists(), f"there is no build with kill points in {BUILD}")
    bad = 0
    for mpi in [options.mpi] if options.mpi else ["openmpi", "mpich"]:
        bad += harness.verdict(f"kill_points.{mpi}", lambda: all_points(mpi, options))
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
