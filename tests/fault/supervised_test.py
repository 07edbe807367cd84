#!/usr/bin/env python3
"""Jobs under --max-restarts at seeded moments at which something is killed: they go on by themselves, right, from the
newest generation.

    supervised_test.py KIND[,KIND…]|all [--moments N] [--seed S] [--mpi openmpi|mpich|both]
                                      [--launcher mpiexec|own|srun|both] [--nodes 1|2|4] [--standby]

Kinds: rank, pair (two ranks), node (a node daemon), launcher (mpiexec and its helpers; under own the node daemons),
again (a rank, and another one during the restart), root, everything (SIGKILL). With more nodes also machine (all
processes of a node), gone (the same, and ssh does not reach the node before the next moment), cut (a node's cable for
some seconds), slow (its cable carries 100 to 1,000 kbit/s for some seconds, with the waiting and the losses of that:
tc's tbf), relay (a node daemon that has another one below it). The supervisor is the root's process: when that is
killed, the same line is given once more, as a scheduler does (--continue).
--nodes 2, 4: over namespaces (nodes_test.py). Two with the own launcher only. Four with either: under mpiexec the tree
of daemons is a chain (FERMATA_TREE_RADIX=1), and machine and gone, which take a host from the launcher's list, are for
own alone. In half of the jobs a daemon that is silent for 3 s instead of 30 is given up. Where PyPI's MPICH 5 is built
(wheels_suite.py) it takes the place of Debian's, which between nodes may stand still natively, too.
--standby: under own the next life's ranks are there before; who of them dies with the others is chance.
A moment comes while the program computes, while a checkpoint is taken, or soon after a restart. Then the program has to
go on with right lines, from a generation that is not older than the newest one known before the kill (the supervisor
may go one back when the same failure came twice without a newer one, and says so), or the job has to end with a
non-zero code, a line, and a generation that restarts.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
import harness
import nodes_test
from harness import FERMATA, PROGRAMS, Failure, Scratch, call, check

PAUSE = 2000
STANDBY = "--standby" in sys.argv
KINDS = ("rank", "pair", "node", "launcher", "again", "root", "everything")
OF_NODES = ("machine", "gone", "cut")
OF_FOUR = (*OF_NODES, "slow", "relay")
OF_OWN = ("machine", "gone")
LAUNCHERS = ("srun",) if harness.LAUNCHER == "srun" else ("mpiexec", "own")
VERBOSE = bool(os.environ.get("CRASH_VERBOSE"))
PATIENCE = 60
# What mpiexec is made of, by the names of the files.
LAUNCHER_FILES = ("mpiexec.hydra", "hydra_pmi_proxy", "orterun", "orted", "prterun", "prted", "srun")


class Walk:
    """Where the program is by what it has said: from the line before to the next, or to a line after the
    generation that the job goes on from. That is no line ahead of all that were said; it may be ahead of the last
    one where the life before had begun one generation earlier."""

    def __init__(self, reference):
        self.reference = reference
        self.at = {line: i for i, line in enumerate(reference)}
        self.next, self.said, self.read, self.jumps = 0, 0, 0, []

    def follow(self, text):
        """Takes what is new in `text`. A line that a killed launcher left unfinished may stand before a jump."""
        whole = text[:text.rfind("\n") + 1]
        for line in whole[self.read:].splitlines():
            if not line.startswith(("step ", "steady: ")):
                continue  # mpiexec's own words about a rank that was killed
            if line not in self.at:
                cut = line.rfind("step ")
                rest, head = line[cut:], line[:cut]
                check(cut > 0 and rest in self.at and any(line.startswith(head) for line in
                      self.reference[self.next:self.next + 3]), f"wrong result: {line}")
                line = rest
            index = self.at[line]
            if index != self.next:
                check(index <= self.said, f"line {self.said} is missing: {line}")
                self.jumps.append(index)
            self.next = index + 1
            self.said = max(self.said, self.next)
        self.read = len(whole)


class Job:
    """One directory of generations and the command that is given again as often as it ends early."""

    def __init__(self, cwd, program, reference, mpi, launcher, cluster, rng):
        self.ranks = ranks_over(cluster)
        self.node = None  # whom the moment is about
        self.program, self.cwd, self.mpi, self.launcher, self.cluster, self.rng = program, cwd, mpi, launcher, cluster, rng
        self.walk = Walk(reference)
        self.mark = f"SUPERVISED={cwd}"
        self.env = dict(os.environ, STEADY_PAUSE=str(PAUSE), SUPERVISED=str(cwd))
        if self.wide():
            self.env["FERMATA_TREE_RADIX"] = "1"
            self.env["FERMATA_TREE_SILENT"] = str(rng.choice((3000, 30000)))
        self.floors = {}  # generation: the first line that may follow a restart from it
        self.lives = 0
        self.process = None

    # ---- the command

    def wide(self):
        return self.cluster is not None and self.cluster.size > 2

    def library(self):
        wheel = self.mpi == "mpich" and self.wide() and (nodes_test.WHEEL / "lib" / "libmpi.so.12").exists()
        return nodes_test.WHEEL if wheel else self.mpi

    def start(self):
        self.lives += 1
        self.name = f"s{os.getpid()}-{self.cwd.name}-{self.lives}"
        self.out, self.err = (self.cwd / f"{self.lives}.{end}" for end in ("out", "err"))
        words = [FERMATA, "run", "--job", self.name, "-n", self.ranks, "--mpi", self.library(), "--launcher", self.launcher, "--ckpt-dir", self.cwd / "ckpt",
                 "--max-restarts", 100, "--keep", self.rng.choice((2, 3)), "--continue"]
        if self.rng.random() < 0.5:
            words += ["--interval", self.rng.choice(("0.4s", "1s"))]
        if self.rng.random() < 0.3:
            words.append("--mapped")
        if STANDBY and self.launcher == "own":
            words.append("--standby")
        words += ["--save-options", self.rng.choice(("threads=2", "forked", "incremental", "incremental forked compress=lz4"))]
        on = ()
        if self.cluster:
            # Room for all on each: by turns over all, or one is a spare.
            names = [node.name for node in self.cluster.nodes]
            if self.rng.random() < 0.3 and self.launcher == "own":
                names.reverse()
                words += ["--spares", 1]
            hosts = ",".join(f"{name}:{self.ranks}" for name in names)
            words += ["--mpiexec-args", f"--hosts {hosts} --map-by node" if self.launcher == "own" else
                      self.cluster.over(self.mpi, self.ranks, range(self.cluster.size))]
            self.env["FERMATA_SSH"] = str(self.cluster.cwd / "rsh")
            on = self.cluster.nodes[0].on
        words += ["--", PROGRAMS / f"steady.{self.mpi}", *self.program]
        with open(self.out, "w") as out, open(self.err, "w") as err:
            self.process = subprocess.Popen([str(word) for word in (*on, *words)], cwd=self.cwd, env=self.env, stdout=out,
                                            stderr=err, stdin=subprocess.DEVNULL)
        first = not self.generations()
        self.walk.read = 0
        self.on(3, None if first else 0)
        if first and not self.finished():
            self.checkpoint()

    def ask(self, *words, timeout=90):
        return call(*words[:1], "--job", self.name, *words[1:], timeout=timeout, on=self.where(), cwd=self.cwd)

    def where(self):
        return self.cluster.nodes[0].on if self.cluster else ()

    def said(self):
        return self.err.read_text(errors="replace")

    def follow(self):
        self.walk.follow(self.out.read_text(errors="replace"))

    def on(self, lines, restarted=None):
        """The program says so many lines more; once a restart was said after so much text. False: the command ended."""
        deadline, jumps = time.monotonic() + PATIENCE, len(self.walk.jumps)
        begin = self.walk.next if restarted is None else None
        while True:
            ended = self.process.poll() is not None
            back = restarted is not None and "restarting from" in self.said()[restarted:]
            self.follow()
            if begin is None and back:  # the life before has said all
                begin = self.walk.next
            first = self.walk.jumps[-1] if len(self.walk.jumps) > jumps else begin
            if self.finished() or begin is not None and self.walk.next >= first + lines:
                return True
            if ended:
                return False
            check(time.monotonic() < deadline, self.trouble("did not go on"))
            time.sleep(0.005)

    def finished(self):
        return self.walk.next == len(self.walk.reference)

    def trouble(self, what):
        status = self.ask("status", timeout=30)
        states = "\n".join(f"{pid} {exe} {self.stack(pid)}" for pid, exe in self.processes())
        return (f"{self.name} ({self.mpi}, {self.launcher}) {what}; line {self.walk.next}, jumps {self.walk.jumps}; stderr:\n"
                f"{self.said()[-3000:]}\nstatus:\n{status.stdout}{status.stderr}\n{states}")

    @staticmethod
    def stack(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text()[:40] + pathlib.Path(f"/proc/{pid}/wchan").read_text()
        except OSError:
            return ""

    def checkpoint(self):
        before = self.walk.next
        done = self.ask("checkpoint", "--json", "--timeout", "60s")
        check(done.returncode == 0, self.trouble(f"could not be saved: {done.stdout}{done.stderr}"))
        self.floors[json.loads(done.stdout)["generation"]] = before

    def generations(self):
        if not (self.cwd / "ckpt").exists():
            return []
        done = call("list", "--json", "--ckpt-dir", self.cwd / "ckpt", cwd=self.cwd)
        check(done.returncode == 0, f"list: {done.stderr}")
        all = json.loads(done.stdout)
        check(not any(one["state"] == "damaged" for one in all), f"damaged: {all}")
        return sorted(one["generation"] for one in all if one["state"] == "complete")

    def floor(self, generation):
        known = [one for one in self.floors if one <= generation]
        return self.floors[max(known)] if known else 0

    # ---- processes

    def processes(self):
        """Everything the job has started that still runs: they have its mark in their environment, or are the parents of
        such ones (a node daemon that ssh has started is told of the job by its standard input)."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/environ", "rb") as file:
                        words = file.read().split(b"\0")
                    if (self.mark.encode() in words or f"FERMATA_JOB={self.name}".encode() in words) and os.path.exists(f"/proc/{entry}/exe"):
                        found.append((int(entry), os.path.basename(os.readlink(f"/proc/{entry}/exe"))))
                except OSError:
                    pass
        for parent in {parent_of(pid) for pid, exe in found if exe.startswith("lower-")} - {pid for pid, _ in found}:
            try:
                if (exe := os.path.basename(os.readlink(f"/proc/{parent}/exe"))) == "noded":
                    found.append((parent, exe))
            except OSError:
                pass
        return found

    def victims(self, kind):
        all = self.processes()
        of = lambda *names: [pid for pid, exe in all if exe in names]
        lower = of(f"lower-{self.mpi}")
        # Not their children that write; those of a rank have the rank as their parent.
        ranks = [pid for pid in lower if parent_of(pid) not in lower]
        if STANDBY and kind in ("rank", "again", "pair", "node"):
            # Those that stand by are not the job.
            status = self.ask("status", "--json", timeout=20)
            mine = {rank["pid"] for rank in json.loads(status.stdout).get("ranks", [])} if status.returncode == 0 else set()
            ranks = [pid for pid in ranks if pid in mine] or ranks
            all = [(pid, exe) for pid, exe in all if exe != "noded" or pid in {parent_of(rank) for rank in ranks}]
        if kind in ("rank", "again"):
            return self.rng.sample(ranks, min(1, len(ranks)))
        if kind == "pair":
            return self.rng.sample(ranks, min(2, len(ranks)))
        if kind == "node":
            daemons = of("noded")
            return self.rng.sample(daemons, min(1, len(daemons)))
        if kind == "relay":
            hosts = [node["host"] for node in json.loads(self.ask("status", "--json").stdout).get("nodes", [])]
            above = {pid for node in self.cluster.nodes if node.name in hosts[:-1] for pid in node.pids()}
            return self.rng.sample(relays, 1) if (relays := [pid for pid in of("noded") if pid in above]) else []
        if kind == "launcher":
            return of("noded") if self.launcher == "own" else of(*LAUNCHER_FILES)
        if kind == "root":
            return of("fermata")
        if kind in ("machine", "gone"):
            return [pid for pid in self.node.pids() if pid in dict(all)]
        pids = [pid for pid, _ in all]
        self.rng.shuffle(pids)
        return pids

    def kill(self, kind):
        found = self.victims(kind)
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while kind == "everything" and (late := self.victims(kind)):
            for pid in late:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        return found

    def gone(self):
        deadline = time.monotonic() + PATIENCE
        while left := self.processes():
            check(time.monotonic() < deadline, f"still running: {left}; {self.said()[-2000:]}")
            time.sleep(0.02)

    def end(self):
        if self.process and self.process.poll() is None:
            self.ask("cancel")
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill("everything")
                self.process.wait()


def parent_of(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def ranks_over(cluster):
    return 4 if cluster and cluster.size > 2 else 3


class Matrix:
    def __init__(self, reference, cluster, rng):
        self.reference, self.cluster, self.rng = reference, cluster, rng
        self.outcomes, self.waits = collections.Counter(), collections.defaultdict(list)

    def one(self, job, kind):
        rng = self.rng
        if job.process and job.process.poll() is not None:
            job.follow()
            if job.finished():  # while others had their moments
                return False
        if job.process is None or job.process.poll() is not None:
            job.start()
        if self.cluster:
            job.node = rng.choice(self.cluster.nodes[1:])
        if kind in OF_OWN and not job.victims(kind):  # it goes on without that node: begin with all
            job.kill("everything")
            job.process.wait(PATIENCE)
            job.gone()
            job.follow()
            job.start()
            if job.finished():
                return False
        for _ in range(rng.randint(0, 2)):
            job.on(rng.randint(1, 40))
            if job.finished():
                return False
            job.checkpoint()
        job.on(rng.randint(1, 60))
        if job.finished():
            return False
        client = None
        when = rng.choice(("computing", "saving"))
        if when == "saving":
            client = subprocess.Popen([*job.where(), str(FERMATA), "checkpoint", "--job", job.name, "--timeout", "30s"], cwd=job.cwd,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            time.sleep(rng.uniform(0, 0.4))
        known = job.generations()[-1]
        jumps, text = len(job.walk.jumps), len(job.said())
        begin = time.monotonic()
        if kind == "gone":
            job.node.answer(False)
        killed = self.cut(job) if kind == "cut" else self.slow(job) if kind == "slow" else job.kill(kind)
        if kind == "again":
            deadline = time.monotonic() + 30
            while "restarting from" not in job.said()[text:] and time.monotonic() < deadline and job.process.poll() is None:
                time.sleep(0.002)
            time.sleep(rng.uniform(0, 1.0))
            killed += job.kill("rank")
        if client:
            try:
                client.communicate(timeout=90)
            except subprocess.TimeoutExpired:
                client.kill()
                raise Failure(job.trouble("left the client without an answer")) from None
        if not killed:
            job.follow()
            check(job.finished(), job.trouble("runs, and nobody was there to be killed"))
            if kind == "gone":
                job.node.answer(True)
            return False
        outcome = self.after(job, kind, known, jumps, text)
        took = time.monotonic() - begin
        if kind == "gone" and outcome == "was at its end":
            job.node.answer(True)
        elif kind == "gone":
            hosts = {node["host"] for node in json.loads(job.ask("status", "--json").stdout)["nodes"]}
            check(hosts and job.node.name not in hosts, job.trouble(f"is on {hosts}"))
            job.node.answer(True)
        self.outcomes[outcome] += 1
        self.waits[kind].append(took)
        if VERBOSE:
            print(f"   {job.mpi} {job.launcher} {when}: {outcome} after {took:.1f} s, line {job.walk.next}, jumps to {job.walk.jumps[jumps:]}", flush=True)
        return True

    def cut(self, job):
        """The cable is pulled and put back. Short: the job goes on as if nothing had been, or by a restart."""
        nodes_test.run(*job.node.on, "ip", "link", "set", "cable", "down")
        time.sleep(self.rng.choice((0.3, 2, 8, 20)))
        nodes_test.run(*job.node.on, "ip", "link", "set", "cable", "up")
        return ["cable"]

    def slow(self, job):
        """What the node sends has to wait, and what has waited for half a second is lost."""
        rate = f"{self.rng.choice((100, 300, 1000))}kbit"
        nodes_test.run(*job.node.on, "tc", "qdisc", "add", "dev", "cable", "root", "tbf", "rate", rate, "burst", "4kb", "latency", "500ms")
        time.sleep(self.rng.choice((1, 3, 8)))
        nodes_test.run(*job.node.on, "tc", "qdisc", "del", "dev", "cable", "root")
        return ["cable"]

    def after(self, job, kind, known, jumps, text):
        """What became of the job. It has gone on, by itself or with the line given again."""
        again = kind in ("root", "everything")
        outcome = "went on"
        if kind in ("cut", "slow") and job.on(5) and "restarting from" not in job.said()[text:]:
            return "was not stopped"
        went = not again and job.on(5, text)
        if again:
            job.process.wait(PATIENCE)
            job.gone()
            job.follow()
        if job.finished():  # all had been said; then the end has to come, and well
            if again:
                job.start()
            check(job.process.wait(PATIENCE) == 0, job.trouble("did not end well"))
            job.follow()
            check(job.finished(), job.trouble("ended well, and was not at its end"))
            return "was at its end"
        if not went:
            code = job.process.wait(PATIENCE)
            check(code != 0, job.trouble("ended with 0"))
            if not again:
                check("fermata: " in job.said()[text:], job.trouble(f"ended with {code} without a word"))
                outcome = "ended with a line, goes on by --continue"
            job.gone()
            job.follow()
            text = 0
            job.start()
        said = re.findall(r"restarting from (gen-\d+)", job.said()[text:])
        check(said, job.trouble("nothing was said of a restart"))
        back = "the same having failed twice" in job.said()[text:]
        check(back or said[0] >= known, job.trouble(f"{known} was there, and the job went on from {said}"))
        for line in job.walk.jumps[jumps:]:
            check(line >= min(job.floor(one) for one in said), job.trouble(f"from {said} the program went on at line {line}: {job.floors}"))
        done = call("verify", "--ckpt-dir", job.cwd / "ckpt")
        # One that is being made and removed meanwhile is not damaged.
        check(done.returncode == 0 or "no complete" in done.stderr, f"verify: {done.stdout}{done.stderr}")
        return outcome + (", one back" if back else "")


def case(kinds, moments, mpis, launchers, seed, nodes):
    rng = random.Random(seed)
    begin, jobs = time.monotonic(), {}
    with Scratch("supervised") as cwd:
        cluster = nodes_test.Cluster(cwd, nodes) if nodes > 1 else None
        if cluster:
            cluster.__enter__()
        try:
            # Long enough for several moments each; what a job has not had yet, the next one gets.
            program = [min(6000, 3000 * moments), 1]
            # The same on either library; Open MPI's ranks leave each other the cores.
            reference = harness.native([PROGRAMS / "steady.openmpi", *program], ranks_over(cluster), "openmpi", cwd)
            total, number = 0, 0
            for kind in kinds:
                matrix = Matrix(reference, cluster, rng)
                for moment in range(moments):
                    own = ("own",) if kind in OF_OWN else launchers
                    key = mpis[total % len(mpis)], own[total // len(mpis) % len(own)]
                    job = jobs.get(key)
                    while True:
                        if job is None:
                            number += 1
                            (cwd / f"job{number}").mkdir()
                            job = jobs[key] = Job(cwd / f"job{number}", program, reference, *key, cluster, rng)
                        try:
                            if matrix.one(job, kind):
                                break
                        except BaseException:
                            print(f"seed {seed}, kind {kind}, moment {moment}, {key}, {job.cwd}", flush=True)
                            raise
                        check(job.process.wait(PATIENCE) == 0, job.trouble("did not end well"))
                        job.follow()
                        job = None
                    total += 1
                waits = sorted(matrix.waits[kind] or [0])
                print(f"  {kind}: {moments} moments, {dict(matrix.outcomes)}; to five lines more: median "
                      f"{waits[len(waits) // 2]:.1f} s, longest {waits[-1]:.1f} s", flush=True)
            for job in jobs.values():
                job.end()
        finally:
            for job in jobs.values():
                if job.process and job.process.poll() is None:
                    job.kill("everything")
                    job.process.wait()
            if cluster:
                cluster.__exit__()
    return f"seed {seed}: {total} moments in {time.monotonic() - begin:.0f} s"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kinds")
    parser.add_argument("--moments", type=int, default=4)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--mpi", default="both")
    parser.add_argument("--launcher", default="both")
    parser.add_argument("--nodes", type=int, default=1, choices=(1, 2, 4))
    parser.add_argument("--standby", action="store_true")
    a = parser.parse_args()
    kinds = (*KINDS, *{1: (), 2: OF_NODES, 4: OF_FOUR}[a.nodes]) if a.kinds == "all" else a.kinds.split(",")
    mpis = ("mpich", "openmpi") if a.mpi == "both" else (a.mpi,)
    launchers = ("own",) if a.nodes == 2 else LAUNCHERS if a.launcher == "both" else (a.launcher,)
    return harness.verdict("supervised", lambda: case(kinds, a.moments, mpis, launchers, a.seed, a.nodes))


if __name__ == "__main__":
    sys.exit(main())
