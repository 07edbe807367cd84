#!/usr/bin/env python3
"""Ranks that have copies (`run --replicas`): processes of ranks are killed, and the job ends with the native lines.

    replicas_test.py CASE openmpi|mpich          the cases: CASES, at the end
"""
import os
import pathlib
import re
import signal
import sys
import threading
import time

import harness
from harness import PROGRAMS, Job, Scratch, check

RANKS = 2
MASKED = re.compile(r"rank \d+ on \S+ was killed by signal 9: its copy goes on in its place")


def program(mpi):
    return [PROGRAMS / f"mix.{mpi}", "800", "1000"]


def children_of(parents):
    """Those that live, zombies left out."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # gone
        if int(words[1]) in parents and words[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def comm(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


class Copied:
    """A job whose ranks have copies."""

    def __init__(self, job):
        self.job, self.seen = job, set()

    def pids(self):
        """Processes that lead, in the order of ranks, and those that follow; waits until every rank has both."""
        found = {}

        def complete():
            daemons = self.job.daemon_pids()
            mine = [pid for pid in children_of(daemons) if self.is_rank(pid)]
            status = self.job.ask("status", "--json")
            # In a renewal there are as many processes, of which half may still end.
            if status.returncode != 0 or '"state": "running"' not in status.stdout or len(mine) != 2 * RANKS:
                return False
            found["lead"] = self.job.rank_pids()
            found["follow"] = sorted(set(mine) - set(found["lead"]))
            return len(found["follow"]) == RANKS
        self.job.wait_until(complete, "a copy of each rank")
        self.seen |= {*found["lead"], *found["follow"]}
        return found["lead"], found["follow"]

    @staticmethod
    def has_ended(pid):
        """A zombie is left to whoever inherits it."""
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            return True

    @staticmethod
    def is_rank(pid):
        return comm(pid).startswith(("mix.", "ticking.", "clocks.", "writes_files", "steady.", "late_tag."))

    def check_gone(self):
        def none_left():
            return all(self.has_ended(pid) or not self.is_rank(pid) for pid in self.seen)
        end = time.monotonic() + 2  # the daemon has killed them, and does not wait
        while not none_left() and time.monotonic() < end:
            time.sleep(0.02)
        check(none_left(), "copies are left behind")


def over(mpi, kill):
    """Kills at some moments of a job; its standard error."""
    with Scratch(f"replicas-{mpi}") as cwd:
        native = harness.native(program(mpi), RANKS, mpi, cwd)
        with Job.run(program(mpi), RANKS, cwd, mpi=mpi, extra=["--replicas", "all"]) as job:
            copied = Copied(job)
            kill(copied)
            lines = job.finish()
            errors = job.errors()
        wrong = [pair for pair in zip(lines, native) if pair[0] != pair[1]][:2]
        check(lines == native, f"{len(lines)} lines, natively {len(native)}; {wrong}\n{errors}")
        copied.check_gone()
    return errors


def rank(mpi):
    errors = over(mpi, lambda job: os.kill(job.pids()[0][0], signal.SIGKILL))
    check(len(MASKED.findall(errors)) == 1, errors)


def copy(mpi):
    errors = over(mpi, lambda job: os.kill(job.pids()[1][1], signal.SIGKILL))
    check(not MASKED.findall(errors), errors)


def aborts(mpi):
    """A copy that ends as a library ends it: with a line on its standard error, which is a file of its own."""
    def abort(job):
        pid = job.pids()[1][1]
        with open(f"/proc/{pid}/fd/2", "a", encoding="utf-8") as words:
            words.write("first\nthe library gives up\n==== backtrace (tid: 1) ====\n 0  a function\n====\n")
        os.kill(pid, signal.SIGABRT)
    errors = over(mpi, abort)
    check("was killed by signal 6 (the library gives up); another one is made" in errors, errors)


def twice(mpi):
    def both(job):
        before = job.pids()
        os.kill(before[0][1], signal.SIGKILL)
        time.sleep(0.5)  # the copies of those that go on, and a new one of who took over
        os.kill(job.pids()[0][0], signal.SIGKILL)
    errors = over(mpi, both)
    check(len(MASKED.findall(errors)) == 2, errors)


def at_once(mpi):
    """Both ranks are killed, and both copies go on: their libraries are of an earlier world, whose server is there until they have
    others, however long that takes."""
    def both(copied):
        lead, _ = copied.pids()
        known, made = set(children_of(copied.job.daemon_pids())), set()
        for pid in lead:
            os.kill(pid, signal.SIGKILL)

        def more():
            made.update(set(children_of(copied.job.daemon_pids())) - known)
            return len(made) > 1  # the server of the new world, and a child
        copied.job.wait_until(more, "a child")
        for number, seconds in ((signal.SIGSTOP, 2), (signal.SIGCONT, 0)):
            for pid in made:
                os.kill(pid, number)
            time.sleep(seconds)
    errors = over(mpi, both)
    check(len(MASKED.findall(errors)) == 2, errors)


def in_renewal(mpi):
    """A rank is killed while its child and the other rank's wait for each other in MPI_Init: both go, and what the rank has
    written since its copy was made comes once. (MPICH: Open MPI's helper is a child, too.)"""
    made = []

    def kill(copied):
        lead, _ = copied.pids()
        begun = len(copied.job.lines())
        copied.job.wait_until(lambda: len(copied.job.lines()) >= begun + 20, "more lines")
        known = set(children_of(copied.job.daemon_pids()))

        def more():
            made.extend(set(children_of(copied.job.daemon_pids())) - known - set(made))
            return len(made)
        asked = threading.Thread(target=copied.job.ask, args=("renew",))
        asked.start()
        copied.job.wait_until(more, "the first child")
        os.kill(made[0], signal.SIGSTOP)
        copied.job.wait_until(lambda: more() >= RANKS, "the other's child")
        os.kill(lead[0], signal.SIGKILL)
        os.kill(made[0], signal.SIGCONT)
        copied.job.wait_until(lambda: all(copied.has_ended(pid) for pid in made[:RANKS]), "the children to end", 10)
        asked.join()
    errors = over(mpi, kill)
    check(len(MASKED.findall(errors)) == 1, errors)


def fetched(mpi):
    """A rank without a copy fetches a long message out of the memory of one that has died, before anybody has told it of the death:
    it waits for the message of the copy that takes its place."""
    with Scratch(f"fetched-{mpi}") as cwd:
        def go(*names):
            for name in names:
                (cwd / name).write_text("")
        go("BEGIN", "FETCH", "GO")
        words = [PROGRAMS / f"fetched.{mpi}", cwd]
        native = harness.native(words, RANKS, mpi, cwd)
        for name in ("BEGIN", "FETCH", "GO"):
            (cwd / name).unlink()
        with Job.run(words, RANKS, cwd, mpi=mpi, extra=["--launcher", "own", "--replicas", "1-1"]) as job:
            job.wait_until(lambda: '"had": 1' in job.ask("status", "--json").stdout, "a copy")
            go("BEGIN")
            job.wait_line("SENT")
            daemon, = job.daemon_pids()
            os.kill(daemon, signal.SIGSTOP)
            os.kill(job.rank_pids()[1], signal.SIGKILL)
            go("FETCH")
            time.sleep(0.5)
            os.kill(daemon, signal.SIGCONT)
            go("GO")
            lines = job.finish()
            check(sorted(lines) == sorted(native), f"{lines}, natively {native}\n{job.errors()}")
            check(len(MASKED.findall(job.errors())) == 1, job.errors())


def behind(mpi):
    """A copy gets a rank's place while its program is on its own for seconds: it is no rank yet when others get their copies, and gets
    one of its own later."""
    with Scratch(f"behind-{mpi}") as cwd:
        words = [PROGRAMS / f"every_point.{mpi}", "3", "2500000", "one"]
        native = harness.native(words, RANKS, mpi, cwd)
        with Job.run(words, RANKS, cwd, mpi=mpi, extra=["--launcher", "own", "--replicas", "all"]) as job:
            job.wait_until(lambda: '"had": 2' in job.ask("status", "--json").stdout, "copies")
            os.kill(job.rank_pids()[1], signal.SIGKILL)
            job.wait_until(lambda: MASKED.search(job.errors()), "the copy's turn")
            job.wait_until(lambda: '"had": 2' in job.ask("status", "--json").stdout, "copies again")
            check(job.finish() == native, job.errors())
            check("gets no copy" not in job.errors(), job.errors())


def number_of(pid):
    """The rank that the process plays, by MPICH's launcher's word."""
    words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next(int(word.split(b"=")[1]) for word in words if word.startswith(b"PMI_RANK="))


def unmasked(mpi):
    """A rank dies that has no copy any more: the job ends at once, though the other rank has one."""
    with Scratch("replicas-unmasked") as cwd, Job.run(program(mpi), RANKS, cwd, mpi=mpi, extra=["--replicas", "all"]) as job:
        copied = Copied(job)
        lead, follow = copied.pids()
        os.kill(next(pid for pid in follow if number_of(pid) == 0), signal.SIGKILL)
        time.sleep(0.3)
        begin = time.monotonic()
        os.kill(next(pid for pid in lead if number_of(pid) == 0), signal.SIGKILL)
        job.finish(expected=128 + signal.SIGKILL)
        took = time.monotonic() - begin
        check(took < 6 and "was killed by signal 9 (Killed)" in job.errors(), f"{took:.1f} s\n{job.errors()}")
        copied.check_gone()


def files_in(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())
            if path.name == "shared" or path.name.startswith(("steps.", "state.", "log.", "records."))}


def files(mpi):
    """A copy writes shadows, and what is missing once it has its rank's place: the files are the native ones."""
    solver = [PROGRAMS / f"writes_files.{mpi}", "900"]
    with Scratch(f"replicas-files-{mpi}") as cwd:
        (cwd / "native").mkdir()
        native = harness.native(solver, RANKS, mpi, cwd / "native")
        with Job.run(solver, RANKS, cwd, mpi=mpi, extra=["--replicas", "all"]) as job:
            copied = Copied(job)
            os.kill(copied.pids()[0][0], signal.SIGKILL)
            lines = job.finish()
            check(lines == native and len(MASKED.findall(job.errors())) == 1, f"{len(lines)} lines\n{job.errors()}")
            copied.check_gone()
        expected, found = files_in(cwd / "native"), files_in(cwd)
        wrong = [name for name in {*expected, *found} if expected.get(name) != found.get(name)]
        check(len(expected) == 11 and not wrong, f"other files than natively: {wrong}")


def clocks(mpi):
    """A copy is told what the rank's clocks have said, and no clock goes back when it takes the rank's place."""
    steps = 900
    with Scratch(f"replicas-clocks-{mpi}") as cwd, Job.run([PROGRAMS / f"clocks.{mpi}", str(steps)], RANKS, cwd, mpi=mpi,
                                                           extra=["--replicas", "all"]) as job:
        copied = Copied(job)
        os.kill(copied.pids()[0][0], signal.SIGKILL)
        lines = job.finish()
        check(len(lines) == steps and len(MASKED.findall(job.errors())) == 1, f"{len(lines)} lines\n{job.errors()}")
        copied.check_gone()


def other_data(mpi):
    """A copy that sends other data than its rank ends, and the job goes on without it."""
    with Scratch("replicas-other-data") as cwd, Job.run([PROGRAMS / f"ticking.{mpi}", "100", "sends"], RANKS, cwd, mpi=mpi,
                                                        extra=["--replicas", "all"]) as job:
        lines = job.finish()
        check(len(lines) == 100 and "its copy has sent other data" in job.errors(),
              f"{len(lines)} lines\n{job.errors()}")


def parted(mpi):
    """Copies that have written different lines are not taken for each other: the job fails, and says so."""
    with Scratch("replicas-parted") as cwd, Job.run([PROGRAMS / f"ticking.{mpi}", "500", "writes"], RANKS, cwd, mpi=mpi,
                                                    extra=["--replicas", "all"]) as job:
        copied = Copied(job)
        lead, _ = copied.pids()
        time.sleep(0.4)  # lines since the copy was made
        os.kill(lead[0], signal.SIGKILL)
        job.finish(expected=1)
        check("its copy have written different output" in job.errors(), job.errors())
        copied.check_gone()


def words(mpi):
    """What is no set of ranks is refused before anything runs."""
    for wrong in ["some", "3", "0,7", "120%", "1-", "2-1"]:
        done = harness.call("run", "-n", "2", "--replicas=" + wrong, "--", program(mpi)[0])
        check(done.returncode == 2 and f"--replicas {wrong}" in done.stderr, f"{wrong}: {done.returncode} {done.stderr}")


def run(name, mpi):
    return CASES[name](mpi)


CASES = {"rank": rank, "copy": copy, "aborts": aborts, "twice": twice, "at_once": at_once, "in_renewal": in_renewal, "fetched": fetched, "behind": behind, "unmasked": unmasked, "files": files, "clocks": clocks, "parted": parted, "other_data": other_data,
         "words": words}

if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
