#!/usr/bin/env python3
"""A stranger on the network, or on the node: what he does costs no checkpoint.

    network_test.py flood MPI KIND [CONNECTIONS] [SECONDS] [root|daemon]     KIND as in strangers.py; at whose port
    network_test.py ports MPI                                  a wrong key, replays and garbage at the root's and a daemon's port
    network_test.py cost MPI                                   what 0, 1,100 and 2,040 connections cost
    network_test.py key MPI                                    where the job's key is not to be found
    network_test.py agents MPI                                 strangers at the node daemon's socket
    network_test.py durations                                  which durations are refused

The test runs in a network of its own, which has a loopback only: a namespace (`unshare`), as root or with user
namespaces.
"""
import os
import pathlib
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import peer  # noqa: E402
from harness import (Job, LAUNCHER, PROGRAMS, Scratch, call, check, main, native)  # noqa: E402

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
    """The root's child: its environment has what ranks get. (Under own: the daemon, which may have come by the place of ssh.)"""
    if LAUNCHER == "own":
        return job.daemon_pids()[0]
    root = job.status()["pid"]
    return int(pathlib.Path(f"/proc/{root}/task/{root}/children").read_text().split()[0])


# Under Fermata's own launcher the node daemon is the root's child, and has forgotten the key; who starts it elsewhere has it.
RSH = """#!/bin/sh
printenv FERMATA_KEY > {cwd}/key
unset FERMATA_KEY  # ssh hands nothing of it on
exec sh -c "$2"
"""


def telling(cwd):
    """Options and variables by which key_of() finds the key."""
    if LAUNCHER != "own":
        return [], {}
    (cwd / "rsh").write_text(RSH.format(cwd=cwd))
    (cwd / "rsh").chmod(0o755)
    return ["--mpiexec-args", "--hosts elsewhere:2"], {"FERMATA_SSH": str(cwd / "rsh")}


def key_of(job, cwd):
    return (cwd / "key").read_bytes().strip() if LAUNCHER == "own" else environment_of(launcher_of(job))[b"FERMATA_KEY"]


def port_of(job):
    return int(re.search(rb"127\.0\.0\.1:(\d+)", environment_of(launcher_of(job))[b"FERMATA_ROOT"])[1])


def daemon_port(pid):
    """Where a daemon waits for others to stand below it."""
    mine = {os.readlink(one) for one in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *fields = line.split()
            if state == "0A" and f"socket:[{fields[5]}]" in mine:
                return int(local.rsplit(":", 1)[1], 16)
    raise AssertionError(f"{pid} listens nowhere")


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


def steady(mpi, cwd, extra=(), steps=STEPS, env={}):
    """A job of two ranks under the soft limit of a login, which ends when it is told to."""
    return Job.run([PROGRAMS / f"steady.{mpi}", steps, 1], 2, cwd, mpi=mpi, extra=extra,
                   env={**os.environ, "STEADY_PAUSE": "10000", **env}, on=["prlimit", f"--nofile={SOFT}:"])


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


def flood(mpi, kind, connections=600, seconds=8, where="root"):
    connections, seconds = int(connections), float(seconds)
    steps = int(100 * (seconds + 15))  # at most 100 in a second: it does not end by itself
    with Scratch("flood") as cwd:
        expected = native([PROGRAMS / f"steady.{mpi}", steps, 1], 2, mpi, cwd)
        with steady(mpi, cwd, ["--interval", "0.5s", "--keep", "all"], steps) as job:
            job.wait_until(lambda: len(job.lines()) > 3, "the first lines")
            root = job.status()["pid"]
            port = port_of(job) if where == "root" else daemon_port(job.daemon_pids()[0])
            calm = statistics.median(status_seconds(job) for _ in range(5))
            answers, before, cpu, start = [], job.status()["checkpoints"], cpu_seconds(root), time.monotonic()
            with Flood(kind, port, connections) as strangers:
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    answers.append(status_seconds(job))
                    time.sleep(0.2)
                after, lasted = job.status()["checkpoints"], time.monotonic() - start
                cpu = (cpu_seconds(root) - cpu) / lasted
                stop = time.monotonic()
                job.process.send_signal(signal.SIGTERM)
                lines = job.finish(expected=85)
                stop = time.monotonic() - stop
            # A busy machine is nobody's attack: the test machine is shared.
            check(max(answers) < max(0.5, 20 * calm), f"status answered within {max(answers):.2f} s, calm {calm:.2f} s")
            check("checkpoint (" not in job.errors(), job.errors())
            check(after - before >= 0.3 * lasted, f"{after - before} checkpoints in {lasted:.0f} s")
        verified = call("verify", "--ckpt-dir", "ckpt", cwd=cwd, timeout=600)
        check(verified.returncode == 0 and verified.stdout, verified.stdout + verified.stderr)
        continues(lines, cwd, mpi, expected)
        return (f"{strangers.made} strangers in {lasted:.0f} s, {after - before} checkpoints, status within "
                f"{max(answers):.2f} s (calm {calm:.2f}), root's CPU {100 * cpu:.0f} %, stopped in {stop:.2f} s")


def limit_of(pid, name):
    line = next(one for one in pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines() if one.startswith(name))
    return line[len(name):].split()[:2]


def memory_holds(pid, what):
    """Whether a process's own memory has these bytes anywhere."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, rights, *_ = line.split()
            begin, end = (int(one, 16) for one in span.split("-"))
            if not rights.startswith("rw") or begin >= 1 << 63:
                continue
            tail = b""
            for at in range(begin, end, 1 << 22):
                try:
                    memory.seek(at)
                    part = memory.read(min(1 << 22, end - at))
                except OSError:
                    break
                if what in tail + part:
                    return True
                tail = part[-len(what):]
    return False


def core_filter(pid):
    """Which of its memory comes into a core, wherever that goes."""
    return int(pathlib.Path(f"/proc/{pid}/coredump_filter").read_text(), 16)


def key(mpi):
    """The job's key is where it must be, and nowhere else of what is ours; limits are given back."""
    with Scratch("key") as cwd, steady(mpi, cwd, *telling(cwd)[:1], env=telling(cwd)[1]) as job:
        job.wait_until(lambda: len(job.lines()) > 3, "the first lines")
        launcher, root, daemons = launcher_of(job), job.status()["pid"], job.daemon_pids()
        secret = key_of(job, cwd)
        check(len(secret) == 64 and len(daemons) == 1, f"{secret} {daemons}")
        with subprocess.Popen(["sleep", "60"], env={"FERMATA_KEY": secret.decode()}) as holder:
            check(memory_holds(holder.pid, secret), "this test would find nothing")
            holder.kill()
        check(secret not in pathlib.Path(f"/proc/{root}/environ").read_bytes(), "the root's environment has the key")
        for pid in job.rank_pids() + daemons:
            check(secret not in pathlib.Path(f"/proc/{pid}/environ").read_bytes(), f"the environment of {pid} has the key")
            check(not memory_holds(pid, secret), f"the memory of {pid} has the key")
        for pid in job.rank_pids():  # a node daemon needs it for other daemons
            check(not memory_holds(pid, bytes.fromhex(secret.decode())), f"the memory of {pid} has the key in binary")
        hard = limit_of(root, "Max open files")[1]
        for pid in [root] + daemons:
            check(limit_of(pid, "Max open files") == [hard, hard], f"{pid} keeps the limit of files")
            check(limit_of(pid, "Max core file size")[0] == "0", f"{pid} leaves a core")
            check(core_filter(pid) == 0, f"{pid} gives its memory to whom cores are piped to")
        started = job.rank_pids()[0] if LAUNCHER in ("own", "srun") else launcher  # srun raises its own
        check(limit_of(started, "Max open files") == [str(SOFT), hard], f"{started} has not the user's limit")
        mine = limit_of("self", "Max core file size")
        check(limit_of(started, "Max core file size") == mine, f"{started} has not the user's limit of cores")
        check(core_filter(started) == core_filter("self"), f"{started} has not the user's choice of what is in a core")
        job.checkpoint("--stop")
        job.finish(expected=85)


def strangers_at(port, key):
    """Who does not know the key, and who has only listened to others: each is sent away."""
    wrong = peer.Peer(port, os.urandom(32))
    check(not wrong.knows_key and wrong.hangs_up(), "a wrong key")
    first = peer.Peer(port, key)
    check(first.knows_key and first.stays(), "the right key is not taken: this test would find nothing")
    again = peer.Peer(port, os.urandom(32), first.nonce, first.proof)
    check(again.hangs_up(), "a proof that was replayed")
    for garbage in (b"GET / HTTP/1.1\r\n\r\n" + b"x" * 64, os.urandom(4096), b"FMTA\xff\xff" + os.urandom(64)):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as one:
            one.sendall(garbage)
            one.settimeout(20)
            try:
                while one.recv(4096):
                    pass
            except ConnectionResetError:
                pass
    return first


def frames_at(port, key, node):
    """What is not sealed, sealed for another place in the stream, too long, or no message, ends the connection, also of
    who knows the key. `node`: the number of a daemon that nobody is."""
    good = peer.attach(node)

    def refused(what, *frames):
        one = peer.Peer(port, key)
        for make in frames:
            one.say(make(one))
        check(one.hangs_up(), what)
        return one

    refused("a frame without its seal", lambda one: good + b"0" * 16)
    replayed = {}

    def first(one):
        replayed["frame"] = one.sealed(good)
        return replayed["frame"]

    refused("a frame that was replayed", first, lambda one: replayed["frame"])
    refused("a frame of another connection", lambda one: replayed["frame"])
    refused("frames that were exchanged", lambda one: (lambda a, b: b + a)(one.sealed(good), one.sealed(peer.frame(50))))
    refused("a frame that is too long", lambda one: struct.pack("<IHH", 1 << 30, peer.ATTACH, peer.VERSION))
    refused("an unknown message", lambda one: one.sealed(peer.frame(9999)))
    refused("a message that is cut", lambda one: one.sealed(peer.frame(peer.ATTACH, b"12345")))


def ports(mpi):
    """At the ports of the root and of a node daemon: a wrong key, replays and garbage are refused and logged, and who
    knows the key and speaks nonsense costs the job nothing but the connection."""
    with Scratch("ports") as cwd:
        log = cwd / "node.log"
        extra, more = telling(cwd)
        job = Job.run([PROGRAMS / f"steady.{mpi}", 600, 1], 2, cwd, mpi=mpi, extra=extra,
                      env={**os.environ, **more, "STEADY_PAUSE": "10000", "FERMATA_LOG": "info", "FERMATA_NODE_LOG": str(log)})
        with job:
            job.wait_until(lambda: len(job.lines()) > 3, "the first lines")
            key = bytes.fromhex(key_of(job, cwd).decode())
            daemon, = job.daemon_pids()
            for port in (port_of(job), daemon_port(daemon)):
                silent = strangers_at(port, key)
                frames_at(port, key, 4711)
                # Speaks for a daemon and ranks that nobody knows, and ends.
                one = peer.Peer(port, key)
                one.say(one.sealed(peer.attach(4711)) + one.sealed(peer.frame(peer.ORDER, struct.pack("<Q", 1 << 60) + peer.text(
                    peer.frame(peer.KILL)))) + one.sealed(peer.frame(peer.HERE, struct.pack("<II", 1, 1) + struct.pack("<iI", 4711, 0))))
                time.sleep(0.3)
                one.socket.close()
                time.sleep(0.3)  # a checkpoint in which a daemon is lost, whoever it was, is given up
                job.checkpoint()
                silent.socket.close()
                job.checkpoint()
            said = log.read_text()
            for line in ("does not know this job's key", "the peer is no node daemon", "speaks wire version", "with a wrong seal",
                         "is over the limit", "of type 9999 that is unknown or damaged"):
                check(said.count(line) > 0, f"not logged by the daemon: {line}\n{said}")
                check(job.errors().count(line) > 0, f"not logged by the root: {line}\n{job.errors()}")
            check(job.status()["state"] == "running" and not job.status()["trouble"], job.status())
            before = job.lines()
            job.checkpoint("--stop")
            lines = job.finish(expected=85)
        check(lines[:len(before)] == before, "lines are missing")
        continues(lines, cwd, mpi, native([PROGRAMS / f"steady.{mpi}", 600, 1], 2, mpi, cwd))


STRANGER = """
import os, socket, struct, sys
def text(what): return struct.pack("<I", len(what)) + what
def frame(kind, payload): return struct.pack("<IHH", len(payload), kind, int(sys.argv[2])) + payload
directory = os.open(sys.argv[1], os.O_PATH)
def come():
    one = socket.socket(socket.AF_UNIX)
    one.connect(f"/proc/self/fd/{directory}/agents")
    return one
all = [come() for _ in range(400)]
for number, one in enumerate(all):
    try:
        if number % 3 == 1:
            one.send(frame(77, struct.pack("<i", 0) + text(b"0" * 32)))
        elif number % 3 == 2:
            one.send(struct.pack("<IHH", (16 << 20) - 1, 64, int(sys.argv[2])) + b"x" * 1000)
    except OSError:
        pass
print("ready", flush=True)
sys.stdin.read()
"""


def agents(mpi):
    """Processes of the same user at the node daemon's socket: the job does not mind, and they live on."""
    version = re.search(r"kWireVersion = (\d+)", (HERE.parents[2] / "src/wire/message.h").read_text())[1]
    with Scratch("agents") as cwd, steady(mpi, cwd) as job:
        job.wait_until(lambda: len(job.lines()) > 3, "the first lines")
        daemon, = job.daemon_pids()
        has = {name: value.decode() for name, value in environment_of(daemon).items()}
        where = (f"{has[b'FERMATA_RUN_BASE']}/{job.name}.{has[b'FERMATA_JOB_ID'][-8:]}."
                 f"{has.get(b'FERMATA_NODE', socket.gethostname())}")
        stranger = subprocess.Popen([sys.executable, "-c", STRANGER, where, version], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True)
        try:
            check(stranger.stdout.readline() == "ready\n", "the stranger did not come")
            silent = []  # at the control socket: more than it has places for
            for _ in range(300):
                silent.append(socket.socket(socket.AF_UNIX))
                silent[-1].connect(f"{has[b'FERMATA_RUN_BASE']}/{job.name}/control")
            check(status_seconds(job) < 5, "status waits for silent clients")
            job.checkpoint()
            waits = job.ask("status", "--waits")
            check(waits.returncode == 0 and "MPI_Init" not in waits.stdout, waits.stdout + waits.stderr)
            job.checkpoint("--stop")
            job.finish(expected=85)
            job.wait = time.monotonic() + 30
            while os.path.exists(where) and time.monotonic() < job.wait:
                time.sleep(0.05)
            check(not os.path.exists(where), "the daemon waits for strangers")
            check(stranger.poll() is None, "a stranger was killed")
        finally:
            stranger.stdin.close()
            stranger.wait(20)


def cost(mpi):
    """What a checkpoint takes, and the root's CPU, while so many silent strangers are there."""
    with Scratch("cost") as cwd, steady(mpi, cwd, ["--keep", "3"]) as job:
        job.wait_until(lambda: len(job.lines()) > 3, "the first lines")
        root, port, said = job.status()["pid"], port_of(job), []
        for connections in (0, 1100, 2040):
            with Flood("silent", port, connections):
                time.sleep(2)
                start, cpu = time.monotonic(), cpu_seconds(root)
                taken = [job.checkpoint()["seconds"] for _ in range(10)]
                cpu = (cpu_seconds(root) - cpu) / (time.monotonic() - start)
            said.append(f"{connections}: {statistics.median(taken):.3f} s (most {max(taken):.3f}), CPU {100 * cpu:.0f} %")
        job.ask("cancel")
        job.end()
        return "; ".join(said)


def durations():
    """Durations that nobody can mean are refused in one line."""
    for words in (["run", "--interval", "1e20d"], ["run", "--walltime", "1e20d"], ["run", "--start-timeout", "1e18"],
                  ["run", "--interval", "auto", "--mtbf", "nan"], ["run", "--walltime", "-5m"]):
        done = call(*words, "-n", "1", "--", "/bin/true")
        check(done.returncode == 2 and done.stderr.count("\n") == 1 and words[-2] in done.stderr, f"{words}: {done}")
    done = call("checkpoint", "--job", "none", "--timeout", "1e18")
    check(done.returncode == 2 and done.stderr.count("\n") == 1, str(done))


CASES = {"flood": flood, "ports": ports, "key": key, "agents": agents, "cost": cost, "durations": durations}


def run(name, *rest):
    return CASES[name](*rest)


if __name__ == "__main__":
    own_network()
    sys.exit(main(run, CASES))
