#!/usr/bin/env python3
"""A stranger on the network, or on the node: what he does costs no checkpoint.

    network_test.py flood MPI KIND [CONNECTIONS] [SECONDS]     KIND as in strangers.py
    network_test.py cost MPI                                   what 0, 1,100 and 2,040 connections cost
    network_test.py key MPI                                    where the job's key is not to be found
    network_test.py agents MPI                                 strangers at the node daemon's socket
    network_test.py dripping_root MPI                          a listener that is not the root, and answers slowly

The test runs in a network of its own, which has a loopback only: a namespace (`unshare`), as root or with user
namespaces.
"""
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from harness import (BUILD, Failure, Job, PATIENCE, PROGRAMS, Scratch, call, check, main, native)  # noqa: E402

SOFT = 1024  # descriptors, as a login has them
STEPS = 20000
CLOCK = os.sysconf("SC_CLK_TCK")


def own_network():
    """Starts this test again where there is a loopback only."""
    if os.environ.get("FERMATA_OWN_NETWORK"):
        return
    words = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    inside = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, *sys.argv]
    if subprocess.run([*words, "true"], capture_output=True).returncode == 0:
        os.environ["FERMATA_OWN_NETWORK"] = "1"
        os.execvp(words[0], [*words, *inside])
    print("no network of its own here: in that of this machine", flush=True)


def environment_of(pid):
    text = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    return dict(one.split(b"=", 1) for one in text.split(b"\0") if b"=" in one)


def launcher_of(job):
    """The root's child: its environment has what ranks get."""
    root = job.status()["pid"]
    return int(pathlib.Path(f"/proc/{root}/task/{root}/children").read_text().split()[0])


def port_of(job):
    return int(re.search(rb"127\.0\.0\.1:(\d+)", environment_of(launcher_of(job))[b"FERMATA_ROOT"])[1])


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK


class Flood:
    """Strangers in processes of their own, 10,000 in each."""

    def __init__(self, kind, port, connections):
        self.processes = []
        while connections > 0:
            self.processes.append(subprocess.Popen(
                [sys.executable, HERE / "strangers.py", kind, str(port), str(min(connections, 10000))],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            connections -= 10000

    def __enter__(self):
        for one in self.processes:
            check(one.stdout.readline() == "ready\n", "the strangers did not come")
        return self

    def __exit__(self, *_):
        self.made = 0
        for one in self.processes:
            one.stdin.close()
            self.made += int(one.stdout.readline().split()[1] or 0)
            one.wait()


def steady(mpi, cwd, extra=()):
    """A job of two ranks under the soft limit of a login, which ends when it is told to."""
    return Job.run([PROGRAMS / f"steady.{mpi}", STEPS, 1], 2, cwd, mpi=mpi, extra=extra,
                   env={**os.environ, "STEADY_PAUSE": "10000"}, on=["prlimit", f"--nofile={SOFT}:"])


def status_seconds(job):
    start = time.monotonic()
    state = job.status()["state"]
    check(state in ("running", "checkpointing"), state)
    return time.monotonic() - start


def continues(lines, cwd, mpi, expected):
    """The job goes on from its newest generation as if nothing had been."""
    with Job.restart(cwd, mpi=mpi) as again:
        again.wait_until(lambda: len(again.lines()) > 20, "lines after the restart")
        more = again.lines()
        again.ask("cancel")
        again.end()
    for number, (line, right) in enumerate(zip(lines + more, expected)):
        check(line == right, f"line {number}: {line}, natively {right}")


def flood(mpi, kind, connections=600, seconds=8):
    connections, seconds = int(connections), float(seconds)
    with Scratch("flood") as cwd:
        expected = native([PROGRAMS / f"steady.{mpi}", STEPS, 1], 2, mpi, cwd)
        with steady(mpi, cwd, ["--interval", "0.5s", "--keep", "all"]) as job:
            job.wait_until(lambda: len(job.lines()) > 3, "the first lines")
            root, port = job.status()["pid"], port_of(job)
            calm = statistics.median(status_seconds(job) for _ in range(5))
            answers, before, cpu, start = [], job.status()["checkpoints"], cpu_seconds(root), time.monotonic()
            with Flood(kind, port, connections) as strangers:
                while time.monotonic() < start + seconds:
                    answers.append(status_seconds(job))
                    time.sleep(0.2)
                after, lasted = job.status()["checkpoints"], time.monotonic() - start
                cpu = (cpu_seconds(root) - cpu) / lasted
                stop = time.monotonic()
                job.process.send_signal(signal.SIGTERM)
                lines = job.finish(expected=85)
                stop = time.monotonic() - stop
            # A busy machine is nobody's attack.
            check(max(answers) < max(0.5, 10 * calm), f"status answered within {max(answers):.2f} s, calm {calm:.2f} s")
            check("checkpoint (" not in job.errors(), job.errors())
            check(after - before >= 0.3 * lasted, f"{after - before} checkpoints in {lasted:.0f} s")
        listed = json.loads(call("verify", "--json", cwd=cwd, timeout=600, *["--ckpt-dir", "ckpt"]).stdout or "null")
        verified = call("verify", "--ckpt-dir", "ckpt", cwd=cwd, timeout=600)
        check(verified.returncode == 0 and listed, verified.stdout + verified.stderr)
        continues(lines, cwd, mpi, expected)
        return (f"{strangers.made} strangers in {lasted:.0f} s, {after - before} checkpoints, status within "
                f"{max(answers):.2f} s (calm {calm:.2f}), root's CPU {100 * cpu:.0f} %, stopped in {stop:.2f} s")


CASES = {"flood": flood}


def run(name, *rest):
    return CASES[name](*rest)


if __name__ == "__main__":
    own_network()
    sys.exit(main(run, CASES))
