#!/usr/bin/env python3
"""Signals of a process group and of a terminal: what mpiexec would have heard by itself, Fermata hears first.

    terminal_test.py CASE openmpi|mpich
"""
import fcntl
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import termios
import time

import harness
from harness import FERMATA, PATIENCE, PROGRAMS, Job, Scratch, call, check

PAUSE = "20000"  # us; a step of `steady` takes little more


class Shell:
    """The leader of a session with a terminal of its own, as a shell with job control is one: `fermata run` is its
    child in a group of its own, in the foreground or not. It acts by what `say` writes; what the terminal shows is
    `seen`."""

    def __init__(self, words, cwd, foreground=True, env=None):
        self.seen, self.code = "", None
        self.master, slave = pty.openpty()
        modes = termios.tcgetattr(slave)
        modes[3] |= termios.TOSTOP  # writing from the background stops, too
        termios.tcsetattr(slave, termios.TCSANOW, modes)
        self.child_in, child_out = os.pipe()
        self.order, orders = os.pipe()
        self.shell = os.fork()
        if self.shell == 0:
            try:
                os.setsid()
                fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
                signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                os.chdir(cwd)
                child = os.fork()
                if child == 0:
                    os.setpgid(0, 0)
                    if foreground:
                        os.tcsetpgrp(slave, os.getpid())
                    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
                    for number in (0, 1, 2):
                        os.dup2(slave, number)
                    os.closerange(3, 100)
                    os.execve(words[0], [str(word) for word in words], env or os.environ)
                os.write(child_out, f"pid {child}\n".encode())
                while True:
                    _, status = os.waitpid(child, os.WUNTRACED)
                    if os.WIFSTOPPED(status):
                        os.tcsetpgrp(slave, os.getpid())
                        os.write(child_out, f"stopped {os.WSTOPSIG(status)}\n".encode())
                        if os.read(self.order, 1) == b"f":
                            os.tcsetpgrp(slave, child)
                        os.killpg(child, signal.SIGCONT)
                    else:
                        os.write(child_out, f"ended {os.waitstatus_to_exitcode(status)}\n".encode())
                        os._exit(0)
            finally:
                os._exit(1)
        os.close(slave)
        os.close(child_out)
        self.orders = orders
        os.set_blocking(self.master, False)
        os.set_blocking(self.child_in, False)
        self.events = ""
        self.wait(lambda: "pid " in self.events, "the start")
        self.pid = int(self.events.split()[1])

    def look(self):
        for descriptor, name in ((self.master, "seen"), (self.child_in, "events")):
            try:
                setattr(self, name, getattr(self, name) + os.read(descriptor, 65536).decode(errors="replace"))
            except OSError:  # nothing now, or the other end is closed
                pass

    def wait(self, condition, what, timeout=PATIENCE):
        deadline = time.monotonic() + timeout
        while True:
            self.look()
            if condition():
                return
            check(time.monotonic() < deadline, f"{what} did not come; terminal:\n{self.seen[-2000:]}\nevents: {self.events}")
            time.sleep(0.01)

    def type(self, text):
        os.write(self.master, text.encode())

    def steps(self):
        self.look()
        return self.seen.count("step ")

    def foreground(self):
        os.write(self.orders, b"f")

    def end(self):
        self.wait(lambda: "ended " in self.events, "the end")
        return int(self.events.split("ended ")[1].split()[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in (self.pid, self.shell):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        os.waitpid(self.shell, 0)
        for descriptor in (self.master, self.child_in, self.order, self.orders):
            os.close(descriptor)


def run_words(mpi, steps, name):
    return [FERMATA, "run", "-n", "2", "--mpi", mpi, "--job", name, "--ckpt-dir", "ckpt", "--",
            PROGRAMS / f"steady.{mpi}", steps, "1"]


def environment():
    return dict(os.environ, STEADY_PAUSE=PAUSE)


def states(pids):
    return [pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] for pid in pids]


def group(mpi, cwd):
    """timeout(1) signals its child and then the whole group; batch systems signal groups: a checkpoint, then 85."""
    words = ["timeout", "--preserve-status", "2", *map(str, run_words(mpi, 2000, f"t{os.getpid()}"))]
    done = subprocess.run(words, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    check(done.returncode == 85 and (cwd / "ckpt/gen-000001/manifest.json").exists(), f"{done.returncode} {done.stderr}")
    job = Job(["restart", "--ckpt-dir", "ckpt", "--mpi", mpi], cwd, env=environment(), on=["setsid"])
    with job:
        job.wait_until(lambda: len(job.lines()) > 5, "steps")
        pid = job.status()["pid"]
        os.killpg(os.getpgid(pid), signal.SIGUSR1)  # a checkpoint, and not the end of the program
        job.wait_until(lambda: (cwd / "ckpt/gen-000002/manifest.json").exists(), "gen-000002")
        os.killpg(os.getpgid(pid), signal.SIGTERM)
        job.finish(expected=85)
    check((cwd / "ckpt/gen-000003/manifest.json").exists(), job.errors())


def alone(mpi, cwd):
    """SIGTSTP to a process group that no shell watches: only the job stands still. SIGTERM wakes it, and keeps its work."""
    with Job(["run", "-n", 2, "--mpi", mpi, "--ckpt-dir", "ckpt", "--", PROGRAMS / f"steady.{mpi}", 2000, 1], cwd,
             env=environment(), on=["setsid"]) as job:
        job.wait_until(lambda: len(job.lines()) > 5, "steps")
        status = job.status()
        os.kill(status["pid"], signal.SIGTSTP)
        job.wait_until(lambda: all(state == "T" for state in states([rank["pid"] for rank in status["ranks"]])), "the stop")
        check(job.status()["state"] == "suspended", job.status())
        done = job.ask("checkpoint")
        check(done.returncode == 3 and f"kill -CONT {status['pid']}" in done.stderr, f"{done.returncode} {done.stderr}")
        os.kill(status["pid"], signal.SIGTERM)
        job.finish(expected=85)


def suspend(mpi, cwd):
    """Ctrl-Z stops the whole job, fg continues it, Ctrl-C saves and ends it."""
    name = f"t{os.getpid()}"
    with Shell(run_words(mpi, 2000, name), cwd, env=environment()) as shell:
        shell.wait(lambda: shell.steps() > 5, "steps")
        job = json.loads(call("status", "--job", name, "--json").stdout)
        ranks = [rank["pid"] for rank in job["ranks"]]
        shell.type("\x1a")
        shell.wait(lambda: f"stopped {int(signal.SIGTSTP)}" in shell.events, "the stop")
        shell.wait(lambda: all(state == "T" for state in states(ranks)), "the ranks' stop")
        time.sleep(0.3)
        before = shell.steps()
        for verb in (["status"], ["checkpoint", "--timeout", "2s"], ["cancel"]):
            start = time.monotonic()
            done = call(*verb, "--job", name)
            check(done.returncode == 4 and f"kill -CONT {shell.pid}" in done.stderr, f"{verb}: {done.returncode} {done.stderr}")
            check(time.monotonic() - start < 5, f"{verb} took {time.monotonic() - start:.1f} s")
        check(shell.steps() == before, "steps while the job is stopped")
        shell.foreground()
        shell.wait(lambda: shell.steps() > before + 5, "steps after fg")
        done = call("checkpoint", "--job", name)
        check(done.returncode == 0, done.stderr)
        shell.type("\x03")
        check(shell.end() == 85 and "steady: right" not in shell.seen and "Ctrl-C once more" in shell.seen, shell.seen[-1000:])


def background(mpi, cwd):
    """In the background of a terminal nothing is stopped."""
    with Shell(run_words(mpi, 30, f"t{os.getpid()}"), cwd, foreground=False, env=environment()) as shell:
        check(shell.end() == 0, shell.seen)
        check("stopped" not in shell.events and "steady: right" in shell.seen, f"{shell.events}\n{shell.seen[-1000:]}")


def typing(mpi, cwd):
    """What is typed reaches rank 0, and Ctrl-D ends it."""
    words = [FERMATA, "run", "-n", "2", "--mpi", mpi, "--ckpt-dir", "ckpt", "--", PROGRAMS / f"reader.{mpi}", "0"]
    with Shell(words, cwd, env=environment()) as shell:
        for text in ("one\n", "two\n", "\x04"):
            time.sleep(0.5)
            shell.type(text)
        check(shell.end() == 0 and "reader end 2 " in shell.seen, shell.seen)


def helpers(mpi, cwd):
    """A checkpoint waits for helper commands that run: what they say is not lost. One that lasts is named."""
    words = [PROGRAMS / f"helpers.{mpi}"]
    with Job.run(words, 2, cwd, mpi=mpi) as job:
        job.wait_line("helper runs")
        job.checkpoint("--stop")
        job.finish(expected=85)
        check("child process" not in job.errors(), job.errors())
        said = job.lines()
    with Job.restart(cwd, mpi=mpi) as job:
        job.wait_line("long helper runs")
        said += job.lines()
        for name in ("helper", "second helper"):
            check(f"{name} ended with 0: said" in said, said)
        start = time.monotonic()
        job.checkpoint()
        check(time.monotonic() - start > 2, "the checkpoint did not wait for the long one")
        check("(sleep) is not saved" in job.errors(), job.errors())
        job.finish()


CASES = {function.__name__: function for function in (group, alone, suspend, background, typing, helpers)}


def run(name, mpi):
    with Scratch(name) as cwd:
        CASES[name](mpi, cwd)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
