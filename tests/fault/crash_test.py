#!/usr/bin/env python3
"""The crash matrix: at seeded moments of a checkpoint something is killed or the storage fails. Afterwards the newest
committed generation must be whole and restart with the right result, nobody may have been told of a generation that
is not there, and the last good one must be untouched.

    crash_test.py KIND[,KIND…]|all [--moments N] [--seed S] [--mpi openmpi|mpich|both]
                                 [--layout files|shared|node|group:1|group:2|both|all] [--encrypt none|key|both] [--mib N]

Kinds: rank, writer (a rank's forked child), root, node, everything (SIGKILL); eio, enospc, short (storage calls);
compact (all of these to `fermata compact`, between two lives of a job); back (the node daemon, during a restart).
Half of the kills come after a random time, half at a random storage call of the root or a rank, or message of the
node daemon (storage_faults.c).
Jobs run one after the other in a chain: what survived one moment is restarted, and its output is compared with an
undisturbed run before the next moment comes.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
import harness
from harness import BUILD, FERMATA, PROGRAMS, Failure, Job, Scratch, call, check

RANKS = 2
STEPS, PAUSE = 10000, 2000
FORKED = "forked threads=1 compress=zstd:9"
KINDS = ("rank", "writer", "root", "node", "everything", "eio", "enospc", "short", "compact", "back")
LAYOUTS = {"files": ("",), **{word: (f" layout={word}",) for word in ("shared", "node", "group:2", "group:1")}}
LAYOUTS["both"] = LAYOUTS["files"] + LAYOUTS["shared"]
LAYOUTS["all"] = LAYOUTS["both"] + LAYOUTS["node"] + LAYOUTS["group:1"]
ENCRYPT = {"none": (False,), "key": (True,), "both": (False, True)}
VERBOSE = bool(os.environ.get("CRASH_VERBOSE"))
# What a job must survive, and what ends it.
GOES_ON = ("writer", "eio", "enospc", "short")


def stat_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return ["X", "0"]


def stopped(pid):
    return stat_of(pid)[0] == "T"


def parent_of(pid):
    return int(stat_of(pid)[1])


def newest_of(generations):
    return max((one["generation"] for one in generations if one["state"] == "complete"), default="")


class Chain:
    """One directory of generations and the jobs that write to it, one after the other."""

    def __init__(self, cwd, number, reference, mpi, mib, layout, encrypt, rng):
        self.cwd = cwd / f"chain{number}"
        self.cwd.mkdir()
        self.faults = self.cwd / "faults"
        self.reference, self.at = reference, {line: i for i, line in enumerate(reference)}
        self.mpi, self.mib, self.rng = mpi, mib, rng
        self.options = rng.choice(("threads=2", FORKED, "incremental", "incremental " + FORKED))
        self.options += rng.choice(LAYOUTS[layout])
        self.keep = rng.choice((1, 2))
        if rng.choice(ENCRYPT[encrypt]):  # every command of this chain takes it from there
            key = self.cwd / "key"
            with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write(os.urandom(32).hex())
            os.environ["FERMATA_ENCRYPT_KEY"] = str(key)
            self.options += " [encrypted]"
        else:
            os.environ.pop("FERMATA_ENCRYPT_KEY", None)
        self.ids = 0
        self.env = dict(os.environ, LD_PRELOAD=str(BUILD / "tests" / "fault" / "libstorage_faults.so"),
                        FAULT_PATH=str(self.cwd / "ckpt"), FAULT_FILE=str(self.faults), STEADY_PAUSE=str(PAUSE))
        self.job = None
        self.seen = 0

    # ---- jobs

    def start(self, options=None):
        extra = ["--keep", self.keep, "--save-options", (options or self.options).removesuffix(" [encrypted]")]
        self.fault("none")
        if self.generations():
            if self.rng.random() < 0.3:
                extra.append("--mapped")
            self.job = Job.restart(self.cwd, mpi=self.mpi, extra=extra, env=self.env)
        else:
            program = [PROGRAMS / f"steady.{self.mpi}", STEPS, self.mib]
            self.job = Job.run(program, RANKS, self.cwd, mpi=self.mpi, extra=extra, env=self.env)
        self.seen = 0
        self.advance()
        if not newest_of(self.generations()):
            self.job.checkpoint()

    def advance(self, lines=2):
        """The job goes on, and all that it has said is right."""
        before = len(self.lines())
        self.job.wait_until(lambda: len(self.lines()) >= before + lines, "the job to go on")
        self.right()

    def lines(self):
        """What the program has said; MPICH adds a text of its own when a rank is killed."""
        return [line for line in self.job.lines() if line.startswith(("step ", "steady: "))]

    def right(self):
        lines = self.lines()
        if lines:
            first = self.at.get(lines[0])
            check(first is not None, f"wrong result: {lines[0]}")
            check(lines == self.reference[first:first + len(lines)],
                  f"wrong result after {lines[0]}: {lines[-1]}")

    def used_up(self):
        """Has the program come so far that another moment might meet its end?"""
        lines = self.lines() if self.job else []
        return bool(lines) and self.at.get(lines[-1], 0) > 0.8 * len(self.reference)

    def processes(self):
        """Everything that this chain's jobs have started and that still runs."""
        mark, found = f"FAULT_FILE={self.faults}".encode(), []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/environ", "rb") as file:
                        if mark in file.read().split(b"\0") and os.path.exists(f"/proc/{entry}/exe"):
                            found.append((int(entry), os.path.basename(os.readlink(f"/proc/{entry}/exe"))))
                except OSError:
                    pass
        return found

    def states(self):
        """What each process is doing, for a failure's message."""
        lines = []
        for pid, exe in self.processes():
            stat, where = stat_of(pid), "?"
            try:
                where = pathlib.Path(f"/proc/{pid}/stack").read_text().replace("\n", " ")
            except OSError:
                pass
            lines.append(f"{pid} {exe}: state {stat[0]}, parent {stat[1]}, {stat[11:13]} ticks, in {where}")
        return "\n".join(lines)

    def of(self, *names):
        return [pid for pid, exe in self.processes() if exe in names]

    def gone(self):
        deadline = time.monotonic() + 60
        while left := self.processes():
            check(time.monotonic() < deadline, f"still running: {left}")
            time.sleep(0.02)

    def end(self):
        if self.job:
            self.fault("none")
            self.job.abandon()
            self.job = None
            self.gone()

    # ---- faults

    def fault(self, action, who="root", at=1):
        self.ids += 1
        new = self.cwd / "faults.new"
        new.write_text(f"{self.ids} {who} {at} {action}\n")
        new.rename(self.faults)

    def calls(self, id):
        """Calls counted under this fault: (who, pid, number, call, path)."""
        try:
            lines = (self.cwd / "faults.log").read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return []
        words = [line.split() + [""] for line in lines]
        return [(w[1], int(w[2]), int(w[3]), w[4], w[5]) for w in words if len(w) > 5 and w[0] == str(id)]

    # ---- the store

    def generations(self):
        if not (self.cwd / "ckpt").exists():
            return []
        done = call("list", "--json", "--ckpt-dir", "ckpt", cwd=self.cwd)
        check(done.returncode == 0, f"list: {done.stderr}")
        all = json.loads(done.stdout)
        check(not any(one["state"] == "damaged" for one in all), f"damaged: {all}")
        return all

    def files(self, generation):
        """What must not change while the generation is there."""
        found = {}
        for path in sorted((self.cwd / "ckpt" / generation).glob("*")):
            st = path.stat()
            found[path.name] = (st.st_ino, st.st_size, st.st_mtime_ns)
        return found


class Matrix:
    def __init__(self, reference, mib, rng):
        self.reference, self.mib, self.rng = reference, mib, rng
        # Measured on the way; the first guess only has to be in the right region.
        self.took = {False: [0.15], True: [0.5]}
        self.outcomes = collections.Counter()

    def delay(self, forked):
        return self.rng.uniform(0, 1.3 * statistics.median(self.took[forked][-9:]))

    def kill(self, pids):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def victims(self, chain, kind):
        if kind == "rank":
            found = chain.of(f"lower-{chain.mpi}")
            ranks = [pid for pid in found if parent_of(pid) not in found]  # not their children that write
            return [self.rng.choice(ranks)] if ranks else []
        if kind == "writer":
            import store_test
            found = [child for rank in chain.of(f"lower-{chain.mpi}") for child in store_test.children_of(rank)]
            return [self.rng.choice(found)] if found else []
        if kind == "node":
            return chain.of("noded")
        if kind == "root":
            return [chain.job.process.pid]
        pids = [pid for pid, _ in chain.processes()]
        self.rng.shuffle(pids)
        return pids

    def plan(self, kind, forked):
        """Where the fault comes: None after a random time, else (WHO, AT, ACTION) at a storage call."""
        rng = self.rng
        writer = "writer" if forked else "rank"
        if kind in ("eio", "enospc", "short"):
            who, action = rng.choice(("root", writer)), kind
        elif rng.random() < 0.5:
            return None
        elif kind == "node" and rng.random() < 0.7:  # between two of its messages: some ranks have been told, others not
            return "node", rng.randint(1, 40), rng.choice(("kill", "after"))
        elif kind == "writer" or kind == "rank" and not forked and rng.random() < 0.5:
            who, action = writer, rng.choice(("kill", "after"))
        elif kind == "root":
            who, action = "root", rng.choice(("kill", "after"))
        else:
            who, action = "root", "hold"
        return who, rng.randint(1, 18 if who == "root" else 9), action

    def disturb(self, chain, kind, client, plan, forked):
        if plan and plan[2] != "hold":
            return  # the call itself does it
        if plan:
            root = chain.job.process.pid
            deadline = time.monotonic() + 3
            while time.monotonic() < deadline and client.poll() is None and not stopped(root):
                time.sleep(0.001)
            self.kill(self.victims(chain, kind))
            chain.fault("none")  # it may not have come to the call yet
            if kind != "everything":
                os.kill(root, signal.SIGCONT)
            return
        if kind == "writer":
            deadline = time.monotonic() + 5
            while not (found := self.victims(chain, kind)) and client.poll() is None and time.monotonic() < deadline:
                time.sleep(0.002)
        else:
            found = self.victims(chain, kind)
        time.sleep(self.delay(forked))
        self.kill(found)
        while kind == "everything" and (late := self.victims(chain, kind)):
            self.kill(late)

    def one(self, chain, kind):
        """One moment. The chain's job runs before it, and afterwards if it can."""
        options = FORKED if kind == "writer" else chain.options
        forked = "forked" in options
        if chain.job is None:
            chain.start(options)
        else:
            chain.advance()
        newest = newest_of(chain.generations())
        files = chain.files(newest)
        plan = self.plan(kind, forked)
        if plan:
            chain.fault(plan[2], plan[0], plan[1])
        id = chain.ids
        start = time.monotonic()
        client = subprocess.Popen([str(FERMATA), "checkpoint", "--job", chain.job.name, "--json", "--timeout", "60s"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            self.disturb(chain, kind, client, plan, forked)
            out, err = client.communicate(timeout=90)
        except subprocess.TimeoutExpired:
            client.kill()
            client.communicate()
            raise Failure(f"{kind}, {plan}: the client got no answer in 90 s; job: {chain.job.errors()[-2000:]}") from None
        took = time.monotonic() - start
        calls = chain.calls(id)
        said = json.loads(out)["generation"] if client.returncode == 0 else ""
        if said:
            self.took[forked].append(took)
        if kind not in GOES_ON:
            # The kill may have come too late for the job to notice before the client had its answer.
            if kind == "node" and client.returncode != 0:
                self.without_daemon(chain)
            if kind != "everything" and chain.job.process.poll() is None:
                self.end_of(chain, kind)
            chain.gone()
            chain.job.end(30)
            chain.right()
            chain.job = None
        else:
            chain.fault("none")
            chain.advance(3)
        now = newest_of(chain.generations())
        check(now >= newest, f"{kind}: {newest} was the newest, now it is '{now}'")
        check(not said or now == said, f"{kind}: {said} was called good, but the newest is {now}: {out}")
        if now == newest:
            check(chain.files(newest) == files, f"{kind}: {newest} was touched")
        if client.returncode != 0 and now > newest and kind not in ("root", "everything"):
            check("is complete" in err or "is complete" in out, f"{kind}: {now} is there, but: {err}")
        if kind == "short":
            check(said, f"a short write made a checkpoint fail: {err}")
        if kind == "writer" and client.returncode != 0:
            check("signal 9" in err, err)
        done = call("verify", "--ckpt-dir", "ckpt", cwd=chain.cwd)
        check(done.returncode == 0, f"{kind}: verify: {done.stdout}{done.stderr}")
        outcome = "committed" if now > newest else "given up"
        if client.returncode != 0 and now > newest:
            outcome = "committed, but the client heard of a failure"
        self.outcomes[outcome] += 1
        if VERBOSE:
            last = ([c for c in calls if c[0] == "root"] or calls or [("", 0, 0, "", "")])[-1]
            print(f"   {chain.mpi} '{options}' {plan or 'any time'}: {outcome}, last call {last[3]} {last[4]}; client "
                  f"{took:.1f} s, all {time.monotonic() - start:.1f} s: {err.strip()[:200]}", flush=True)

    def compact(self, chain):
        """One moment of `fermata compact`."""
        rng = self.rng
        if chain.job is None:
            chain.start("incremental")
        for _ in range(2):  # the second one is a delta
            chain.job.checkpoint()
            chain.advance()
        self.kill(self.victims(chain, "everything"))
        chain.gone()
        chain.job.end(30)
        chain.right()
        chain.job = None
        newest = newest_of(chain.generations())
        files = chain.files(newest)
        action = rng.choice(("kill", "after", "kill", "after", "eio", "enospc", "short"))
        chain.fault(action, "root", rng.randint(1, 44))
        keep = rng.choice(((), ("--keep", "1")))
        id = chain.ids
        done = call("compact", "--json", "--ckpt-dir", "ckpt", "--save-options", rng.choice(("", "threads=1", "compress=lz4")),
                    *keep, cwd=chain.cwd, env=chain.env)
        calls = chain.calls(id)
        chain.fault("none")
        after = chain.generations()
        newest_info = [one for one in after if one["generation"] == newest]
        check(newest_of(after) == newest and newest_info, f"compact: {newest} was the newest, now: {after}")
        stands_alone = newest_info[0]["kind"] == "full"
        check(done.returncode != 0 or stands_alone, f"compact: said to stand alone: {newest_info}")
        check(stands_alone or chain.files(newest) == files, f"compact: {newest} was touched")
        check(done.returncode == 0 or action != "short", f"compact: a short write made it fail: {done.stderr}")
        verified = call("verify", "--ckpt-dir", "ckpt", cwd=chain.cwd)
        check(verified.returncode == 0, f"compact: verify: {verified.stdout}{verified.stderr}")
        outcome = "done" if done.returncode == 0 else "killed" if done.returncode < 0 else "refused"
        outcome += ", stands alone" if stands_alone else ", as before"
        self.outcomes[outcome] += 1
        if VERBOSE:
            print(f"   {action}, {len(calls)} calls, last {calls[-1][3:] if calls else ''}: {outcome}: "
                  f"{done.stderr.strip()[:200]}", flush=True)

    def back(self, chain):
        """A restart whose node daemon dies between two of its messages: it goes on right, or says why not and ends."""
        rng = self.rng
        if chain.job is None:
            chain.start()
        self.kill(self.victims(chain, "everything"))
        chain.gone()
        chain.job.end(30)
        chain.right()
        chain.fault(rng.choice(("kill", "after")), "node", rng.randint(1, 12))
        id = chain.ids
        chain.job = job = Job.restart(chain.cwd, mpi=chain.mpi, extra=["--keep", chain.keep], env=chain.env)
        chain.seen = 0
        job.wait_until(lambda: len(chain.lines()) >= 5 or job.process.poll() is not None, "the job to go on, or to end")
        chain.right()
        if went_on := job.process.poll() is None:
            chain.advance()
        else:
            check(job.process.returncode != 0 and "node daemon" in job.errors(), f"{job.process.returncode}: {job.errors()}")
        self.outcomes["went on" if went_on else "ended, and said why"] += 1
        if VERBOSE:
            print(f"   {chain.mpi}: {len(chain.calls(id))} messages, went on: {went_on}: {job.errors().strip()[-300:]}", flush=True)
        chain.fault("none")
        self.kill(self.victims(chain, "everything"))
        chain.gone()
        job.end(30)
        chain.job = None

    def end_of(self, chain, kind):
        """The fault hit nothing (its call never came): end the job the hard way all the same."""
        try:
            chain.job.process.wait(0.5)
        except subprocess.TimeoutExpired:
            self.kill(self.victims(chain, "everything" if kind == "node" else kind))

    def without_daemon(self, chain):
        """The job goes on, and says what it cannot do any more, or ends (harness.WITHOUT_DAEMON)."""
        if harness.WITHOUT_DAEMON:
            code = chain.job.end(30)
            return check(code == harness.WITHOUT_DAEMON and "the node daemon of" in chain.job.errors(), f"{code}: {chain.job.errors()}")
        chain.advance()
        done = call("checkpoint", "--job", chain.job.name, timeout=30)
        check(done.returncode != 0 and "node daemon" in done.stderr, f"no node daemon: {done.stdout}{done.stderr}")

    def run(self, cwd, kind, moments, mpis, layout, encrypt):
        number = 0
        chain = None
        for moment in range(moments):
            if chain is None or chain.used_up() or moment % 12 == 0:
                if chain:
                    self.close(chain)
                number += 1
                chain = Chain(cwd, f"{kind}{number}", self.reference, mpis[number % len(mpis)], self.mib, layout,
                              encrypt, self.rng)
            try:
                {"compact": self.compact, "back": self.back}.get(kind, lambda chain: self.one(chain, kind))(chain)
            except Failure as failure:
                raise Failure(f"{kind}, moment {moment} in {chain.cwd}, options '{chain.options}', keep {chain.keep}, "
                              f"{chain.mpi}: {failure}\n{chain.states()}") from failure
            finally:
                if sys.exc_info()[0] and chain.job:
                    chain.end()
        self.close(chain)

    def close(self, chain):
        """The last word of a chain: its newest generation restarts right."""
        if chain.job is None:
            chain.start()
        chain.advance(3)
        chain.end()
        shutil.rmtree(chain.cwd)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kinds")
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--mpi", default="both")
    parser.add_argument("--layout", choices=LAYOUTS, default="both")
    parser.add_argument("--encrypt", choices=ENCRYPT, default="both")
    parser.add_argument("--mib", type=int, default=6, help="of each rank; from 16 on tmpfs gets huge pages")
    options = parser.parse_args()
    kinds = KINDS if options.kinds == "all" else options.kinds.split(",")
    mpis = ["mpich", "openmpi"] if options.mpi == "both" else [options.mpi]
    print(f"seed {options.seed}", flush=True)
    status = 0
    with Scratch("crash") as cwd:
        reference = harness.native([PROGRAMS / f"steady.{mpis[0]}", STEPS, options.mib], RANKS, mpis[0], cwd)
        failed = []
        for kind in kinds:
            matrix = Matrix(reference, options.mib, random.Random(f"{options.seed} {kind}"))
            start = time.monotonic()

            def all_moments():
                matrix.run(cwd, kind, options.moments, mpis, options.layout, options.encrypt)
                outcomes = ", ".join(f"{n} {what}" for what, n in sorted(matrix.outcomes.items()))
                return f"{options.moments} moments, {outcomes}; {time.monotonic() - start:.0f} s"
            if harness.verdict(kind, all_moments):
                failed.append(kind)
        if failed:
            raise SystemExit(1)
    return status


if __name__ == "__main__":
    sys.exit(main())
