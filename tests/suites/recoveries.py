#!/usr/bin/env python3
"""Ranks, node daemons, nodes and lives that stand by are killed at seeded moments over four namespaces, under --launcher own and
--max-restarts: the job goes on by itself with right lines, in new processes that the program takes for the old ones.

    tests/suites/recoveries.py [--mpi openmpi|mpich] [--moments 100] [--seed 1] [--patience 60]

A job draws where its generations are (memory, memory and buddy, files), whether it has a message log, whether a life stands by, and
whether one of the four nodes is a spare; it sees up to eight moments. A moment: a rank while the ranks compute, in a checkpoint, in a
renewal (there also a process that is only becoming one), two ranks at once, another rank while the job goes on from a death, who
stands by and then a rank, a node daemon, all of a node, that does not answer either. Nothing may stand still, and what ends early has to say why.
tests/system/nodes_test.py makes the nodes.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "system"))
import harness  # noqa: E402
from harness import PROGRAMS, Job, Scratch, check  # noqa: E402
from nodes_test import Cluster  # noqa: E402

STEPS, PAUSE, RANKS, A_JOB = 1500, 5000, 4, 8
MOMENTS = ["computes", "checkpoint", "renewal", "renewal", "pair", "again", "stands by", "daemon", "node", "gone"]
REFUSED = re.compile(r"^fermata: .+", re.M)


def parent_of(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def name_of(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def stack_of(pid):
    done = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt"], capture_output=True, text=True, timeout=60, check=False)
    return "\n".join(line for line in done.stdout.splitlines() if line.startswith("#"))


def kill(pids):
    """How many were there."""
    killed = 0
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
            killed += 1
        except ProcessLookupError:
            pass
    return killed


class Walk:
    """What was printed against the native lines: a restart goes back to a line that was said, and on from there."""

    def __init__(self, wanted, mpi):
        self.at, self.mpi = {line: i for i, line in enumerate(wanted)}, mpi

    def check_all(self, lines, least):
        """At least so many of the native lines."""
        following, said, wrong = 0, 0, []
        for line in lines:
            index = self.at.get(line)
            if index is None:
                wrong.append(line)
                continue
            # MPICH 4.0.2 says MPI_SUCCESS of a wrong sum when a rank has died: what is printed from there to the end of that life may
            # be wrong (docs/limits.md).
            check(not wrong or self.mpi == "mpich" and len(wrong) <= 2 and index <= following, f"wrong lines: {wrong}, then {line}")
            check(index == following or index <= said, f"line {said} is missing: {line}")
            following, said, wrong = index + 1, max(said, index + 1), []
        check(said >= least and (not least or not wrong), f"{said} of {len(self.at)} lines, then {wrong}")


class Life:
    """A job over four nodes, from its start to its end."""

    def __init__(self, cluster, mpi, draw, options):
        self.cluster, self.mpi, self.draw, self.options = cluster, mpi, draw, options
        self.logged, self.standing, self.spare = draw.random() < 0.4, draw.random() < 0.5, draw.random() < 0.4
        levels = draw.choice([["--levels", "memory 0.3s"], ["--levels", "memory 0.3s, buddy"], ["--interval", "0.4s"]])
        words, env, on = cluster.own_job(2 if self.spare else 1)
        words += [*levels, "--max-restarts", "100", *(["--message-log"] if self.logged else []),
                  *(["--standby"] if self.standing else []), *(["--spares", "1"] if self.spare else [])]
        self.words = " ".join(words[4:])
        self.go = cluster.cwd / "go"
        self.go.unlink(missing_ok=True)
        env = dict(env, STEADY_PAUSE=str(PAUSE), STEADY_GO=str(self.go), STEADY_PID="1")
        self.job = Job.run([PROGRAMS / f"steady.{mpi}", STEPS, 1], RANKS, cluster.cwd, mpi=mpi, ckpt=f"ckpt-{draw.randrange(10**9)}", extra=words,
                           env=env, on=on)
        self.ckpt = cluster.cwd / self.job.process.args[self.job.process.args.index("--ckpt-dir") + 1]

    def trouble(self, what):
        status = self.job.ask("status", timeout=20).stdout if self.job.process.poll() is None else "ended"
        return f"{what} ({self.words}); {len(self.job.lines())} lines; stderr:\n{self.job.errors()[-3000:]}\nstatus:\n{status}"

    def wait(self, condition, what, moving=False):
        """False: the job has ended. `moving`: each line of output is given as much time."""
        end, lines = time.monotonic() + self.options.patience, 0
        while self.job.process.poll() is None:
            if condition():
                return True
            if moving and (now := len(self.job.output())) > lines:
                end, lines = time.monotonic() + self.options.patience, now
            check(time.monotonic() < end, self.trouble(f"{what} did not come"))
            time.sleep(0.02)
        return False

    def ranks(self, state="running"):
        done = self.job.ask("status", "--json", timeout=30)
        said = harness.json.loads(done.stdout) if done.returncode == 0 else {}
        return {rank["rank"]: rank["pid"] for rank in said.get("ranks", [])} if said.get("state", "").startswith(state) else {}

    def saved(self):
        try:
            return (self.ckpt / "journal.jsonl").read_text().count('"event":"checkpoint"')
        except OSError:
            return 0

    def ready(self):
        """It computes, and has a generation that is newer than what came last."""
        before = self.saved()
        return self.wait(lambda: self.saved() > before and len(self.ranks()) == RANKS, "a generation")

    def all_lower(self):
        return [pid for node in self.cluster.nodes for pid in node.pids() if name_of(pid).startswith("lower-")]

    def strike(self, moment):
        """What was done, in words, and how many were killed."""
        draw, asked, ranks = self.draw, None, self.ranks("")
        time.sleep(draw.uniform(0, 0.5))
        victims = draw.sample(sorted(ranks.values()), 2 if moment == "pair" else 1) if ranks else []
        if moment in ("checkpoint", "renewal"):
            words = ["checkpoint"] if moment == "checkpoint" else ["renew", *draw.choice([[], ["--mpi", "openmpi"], ["--mpi", "mpich"]])]
            asked = subprocess.Popen([*self.job.on, str(harness.FERMATA), *words, "--job", self.job.name, "--timeout", "30s"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(draw.uniform(0, 0.6))
            who = draw.choice(["rank", "child", "daemon"]) if moment == "renewal" else "rank"
            if who == "child":
                victims = [pid for pid in self.all_lower() if pid not in ranks.values()][:1] or victims
            elif who == "daemon":
                victims = [parent_of(victims[0])] if victims else []
            moment += f" {who}"
        elif moment == "daemon":
            victims = [parent_of(pid) for pid in victims]
        elif moment in ("node", "gone"):
            node = draw.choice(self.cluster.nodes[1:])
            victims = node.pids()
            node.answer(moment == "node")
        killed = kill(pid for pid in victims if pid > 1)
        if moment == "again":
            before = self.job.errors().count("restarting from")
            self.wait(lambda: self.job.errors().count("restarting from") > before or not killed, "the restart")
            time.sleep(draw.uniform(0, 1.0))
            killed += kill(draw.sample(lower, 1) if (lower := self.all_lower()) else [])
        elif moment == "stands by":
            others = [pid for pid in self.all_lower() if pid not in ranks.values() and pid not in victims]
            killed += kill(draw.sample(others, 1) if others else [])
            time.sleep(draw.uniform(0, 1.0))
            killed += kill(draw.sample(sorted(now.values()), 1) if (now := self.ranks("")) else [])
        if asked:
            asked.wait()
        return moment, killed

    def moment(self):
        """How it went; none when the job was at its end already."""
        before, restarts, chosen = self.ranks(""), self.job.errors().count("restarting from"), self.draw.choice(MOMENTS)
        begin = time.monotonic()
        said, killed = self.strike(chosen)
        lines = len(self.job.lines())
        went = self.wait(lambda: len(self.job.lines()) > lines + 5 and len(self.ranks()) == RANKS, "going on")
        took = time.monotonic() - begin
        for node in self.cluster.nodes:
            node.answer(True)
        if not went:
            code, last = self.job.process.returncode, REFUSED.findall(self.job.errors())
            if code == 0:
                return said, "at its end", took
            check(code not in (0, 85) and last, self.trouble(f"{said}: ended with {code}"))
            return said, f"refused with {code}: {last[-1]}", took
        if self.job.errors().count("restarting from") == restarts:
            return said, "not stopped" if killed else "nobody was there", took
        same = set(before.values()) & set(self.ranks().values())
        check(not same, self.trouble(f"{said}: processes {same} live on"))
        return said, "went on", took

    def in_finalize(self):
        done = self.job.ask("status", "--json", timeout=30)
        return done.returncode == 0 and harness.json.loads(done.stdout).get("state") == "finishing"

    def finish(self):
        """MPICH 4.0.2's MPI_Finalize between nodes hangs natively at times (docs/limits.md): rank 0's last line is in its buffer then."""
        self.go.touch()
        last = f"step {STEPS - 1} "
        self.wait(lambda: any(line.startswith(last) for line in self.job.lines()), "the last step", moving=True)
        try:
            code = self.job.process.wait(15)
        except subprocess.TimeoutExpired:
            check(self.mpi == "mpich" and self.in_finalize(), self.trouble("it does not end"))
            where = [stack_of(pid) for pid in self.ranks("").values()]
            self.job.ask("cancel")
            self.job.end(self.options.patience)
            check(any("Finalize" in one for one in where), f"it does not end, and is not in MPI_Finalize:\n{where}")
            return "hung in MPI_Finalize"
        check(code == 0, self.trouble(f"ended with {code}"))
        return "ended"


def one_job(cluster, mpi, wanted, draw, options, left):
    """[moment, how it went, seconds] of each moment, and how the job ended."""
    life, found = Life(cluster, mpi, draw, options), []
    with life.job as job:
        refused = False
        while len(found) < min(left, A_JOB) and not refused and len(set(job.lines())) < STEPS - 300 and life.ready():
            found.append(life.moment())
            refused = found[-1][1].startswith("refused")
            print("  {}: {}, {:.1f} s".format(*found[-1]), flush=True)
        end = "refused" if refused else life.finish()
        Walk(wanted, mpi).check_all([line for line in job.lines() if line.startswith(("step", "steady"))],
                                  len(wanted) if end == "ended" else len(wanted) - 1 if end.startswith("hung") else 0)
    for node in cluster.nodes:
        node.empty()
        subprocess.run([*node.on, "sh", "-c", "rm -rf /dev/shm/fermata-memory-*"], check=False)
    print(f"{mpi} {life.words}: {end}", flush=True)
    return found, end


def all_of_them(mpi, options):
    took, how, ends, jobs, wrong = [], collections.Counter(), collections.Counter(), 0, []
    with Scratch(f"recoveries-{mpi}") as cwd:
        wanted = harness.native([PROGRAMS / "steady.openmpi", STEPS, 1], RANKS, "openmpi", cwd)
    while sum(how.values()) < options.moments:
        draw, jobs = random.Random(f"{options.seed} {mpi} {jobs}"), jobs + 1
        try:
            with Scratch(f"recoveries-{mpi}") as cwd, Cluster(cwd, 4) as cluster:
                found, end = one_job(cluster, mpi, wanted, draw, options, options.moments - sum(how.values()))
        except harness.Failure as failure:
            print(f"FAILED job {jobs - 1}: {failure}", flush=True)
            wrong.append(jobs - 1)
            check(len(wrong) < 5, f"jobs {wrong}")
            continue
        found = [one for one in found if one[1] not in ("at its end", "nobody was there")]
        took += [seconds for *_, seconds in found]
        how.update(outcome.split(":")[0] for _, outcome, _ in found)
        ends[end] += 1
    took.sort()
    check(not wrong, f"jobs {wrong} of {jobs}; the others: {dict(how)}")
    return f"{sum(how.values())} moments in {jobs} jobs: {dict(how)}, which {dict(ends)}; to five lines more: median {took[len(took) // 2]:.1f} s, longest {took[-1]:.1f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", choices=["openmpi", "mpich"])
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--patience", type=float, default=60)
    options = parser.parse_args()
    bad = 0
    for mpi in [options.mpi] if options.mpi else ["openmpi", "mpich"]:
        bad += harness.verdict(f"recoveries.{mpi}", lambda: all_of_them(mpi, options))
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
