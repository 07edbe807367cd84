#!/usr/bin/env python3
"""Node daemons below node daemons: the real `fermata`, root and daemons with fake ranks (as in job_test.py), in a
narrow tree. Daemons die, stand still and lose their connections, in every phase of a checkpoint.

    tree_test.py BUILD [--list | CASE…]
    tree_test.py BUILD storm [--seed S] [--turns N]      connections cut at random moments, for longer
"""
import argparse
import ctypes
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

import job_test
from job_test import PATIENCE, good, refused

CASES = {}
NODES, RANKS = 5, 10


def case(function):
    CASES[function.__name__] = function
    return function


class Tree:
    """A job in a tree of this radix: with 1, daemon 0 stands below the root, 1 below 0, and so on."""

    def __init__(self, place, radix=1, *words, **env):
        self.place, self.env = place, {"FERMATA_TREE_RADIX": str(radix), "FAKE_NODES": str(NODES), "FAKE_ALONE": "1", **env}
        self.job = place.job("-n", RANKS, *words, **self.env)
        status = self.status()
        self.root = status["pid"]
        self.hosts = [node["host"] for node in status["nodes"]]  # in the order of their numbers

    def status(self):
        return json.loads(good(self.place.call("status", "--json")))

    def daemon(self, number):
        mark = f"FERMATA_NODE={self.hosts[number]}\0".encode()
        for pid, command in self.place.processes():
            try:
                if b"noded" in command and mark in open(f"/proc/{pid}/environ", "rb").read():
                    return pid
            except OSError:
                pass
        raise AssertionError(f"no daemon {number}")


def connections(pid):
    """Descriptors of established TCP connections."""
    established = set()
    for table in ("tcp", "tcp6"):
        for line in open(f"/proc/{pid}/net/{table}").readlines()[1:]:
            fields = line.split()
            if fields[3] == "01":
                established.add(f"socket:[{fields[9]}]")
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{fd}") in established:
                found.append(int(fd))
        except OSError:
            pass
    return found


def cut(pid, fd):
    """Ends a connection of another process, at both ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    mine = libc.syscall(438, pidfd, fd, 0)  # pidfd_getfd
    os.close(pidfd)
    if mine < 0:
        return False
    with socket.socket(fileno=mine) as sock:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return False
    return True


@case
def depth(place):
    """A chain of daemons does what a flat tree does: checkpoint, who waits where, stop, and again in another shape."""
    tree = Tree(place)
    assert len(connections(tree.root)) == 1, connections(tree.root)
    assert [len(connections(tree.daemon(i))) for i in range(NODES)] == [2] * (NODES - 1) + [1]
    assert json.loads(good(place.call("checkpoint", "--json")))["generation"] == "gen-000001"
    waits = good(place.call("status", "--waits"))
    for rank in range(RANKS):
        assert f"rank {rank} on fake{rank % NODES}: main thread: MPI_Recv from rank {(rank + 1) % RANKS}" in waits, waits
    good(place.call("checkpoint", "--stop"))
    out, _ = tree.job.communicate(timeout=PATIENCE)
    assert tree.job.returncode == 85 and out == "started\n", (tree.job.returncode, out)
    place.nothing_left()
    again = Tree(place, 2, "--restart")
    assert len(connections(again.root)) == 2, connections(again.root)
    good(place.call("checkpoint"))
    out, _ = place.end(again.job, 0)
    assert out == "finished, count 3\n", out
    place.nothing_left()


@case
def one_file(place):
    """What is for one daemon alone (the places of its ranks in the file of all images) finds its way."""
    tree = Tree(place, 1, "--save-options", "layout=shared")
    done = place.call("checkpoint", "--json")
    said = json.loads(good(done))
    begins = sorted(int(line.split()[-1]) for line in said["warnings"])
    assert len(set(begins)) == RANKS, said
    place.end(tree.job, 0)
    place.nothing_left()


@case
def files_of_groups(place):
    """A file for each node, then one for every three ranks: each rank hears of its place in there, and of its node."""
    for word, group_of, names in (("node", lambda rank: rank % NODES, range(NODES)), ("group:3", lambda rank: rank // 3, (0, 3, 6, 9))):
        tree = Tree(place, 1, "--save-options", f"layout={word}")
        said = json.loads(good(place.call("checkpoint", "--json")))
        begins = {}
        for line in said["warnings"]:
            words = line.split()
            rank, lowest = int(words[1]), int(words[7])
            assert lowest == rank % NODES, line
            begins.setdefault(group_of(rank), []).append((rank, int(words[-1])))
        assert sum(map(len, begins.values())) == RANKS, said
        for group in begins.values():
            places = [begin for _, begin in sorted(group)]
            assert places == [(1 + i) << 21 for i in range(len(places))], said
        made = sorted(path.name for path in (place.path / "fermata-ckpt" / said["generation"]).glob("*.img"))
        assert made == [f"ranks-{number:06}.img" for number in names], made
        place.end(tree.job, 0)
        place.nothing_left()


def killed_in(place, phase, shown, victims, complete=None):
    """A relay dies while a rank elsewhere holds the phase up: the checkpoint is given up with the reason, all that
    are left go on, and the newest complete generation is there for a restart."""
    holder = 0
    tree = Tree(place, 1, "--restart", "--generation", "latest", FAKE_HANG=f"{phase}:{holder}")
    number = next(i for i in victims if tree.hosts[i] != f"fake{holder}")
    request = subprocess.Popen([job_test.FERMATA, "checkpoint"], env=place.env, cwd=place.path, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    place.until(lambda: tree.status()["phase"] in shown, f"one of {shown}")
    time.sleep(0.05)
    os.kill(tree.daemon(number), signal.SIGKILL)
    _, err = request.communicate(timeout=PATIENCE)
    assert request.returncode not in (0, 85), err
    assert f"the node daemon of {tree.hosts[number]} (pid" in err and "is gone" in err, err
    if complete:
        assert f"generation {complete} is complete" in err, err
    place.until(lambda: place.state() in ("broken", "finishing", ""), "the state")
    place.end(tree.job, 0)
    place.nothing_left()


@case
def relay_killed(place):
    """In every phase in which ranks are waited for, one after the other."""
    tree = Tree(place)
    good(place.call("checkpoint", "--stop"))
    tree.job.communicate(timeout=PATIENCE)
    killed_in(place, "begin", ("targets", "converge"), (2, 1))
    killed_in(place, "freeze", ("freeze",), (0, 1))
    killed_in(place, "drain", ("drain",), (3, 2))
    killed_in(place, "save", ("suspend", "save"), (1, 2))
    assert place.generations() == ["gen-000001"], place.generations()
    killed_in(place, "resume", ("resume",), (2, 3), "gen-000002")
    assert place.generations() == ["gen-000001", "gen-000002"], place.generations()
    out, _ = place.end(Tree(place, 1, "--restart", "--generation", "latest").job, 0)
    assert out == "finished, count 2\n", out
    place.nothing_left()


@case
def relay_stands_still(place):
    """A daemon that is not heard for too long is cut off, and those below it find another parent; when it wakes up it
    learns what has become of the job."""
    tree = Tree(place, 1, FERMATA_TREE_SILENT="1500")
    stopped = tree.daemon(1)
    os.kill(stopped, signal.SIGSTOP)
    refused(place.call("checkpoint", "--timeout", "60s"), "the node daemon of", "has not been heard for too long")
    place.until(lambda: place.state() == "broken", "the state")
    place.until(lambda: len(connections(tree.daemon(0))) == 2, "the grandchild")
    os.kill(stopped, signal.SIGCONT)
    place.end(tree.job, 0)
    place.nothing_left()


def cut_one(tree, rng):
    """A connection of a daemon that lives; False: there was none at that moment."""
    pid = tree.daemon(rng.randrange(NODES))
    fds = connections(pid)
    return bool(fds) and cut(pid, rng.choice(fds))


def cut_and_go_on(place, rng, turns):
    """Connections break while checkpoints are taken: each is good or says why not, and the job goes on."""
    tree = Tree(place, rng.choice((1, 2)))
    made = lost = 0
    for turn in range(turns):
        request = subprocess.Popen([job_test.FERMATA, "checkpoint", "--timeout", "60s"], env=place.env, cwd=place.path,
                                   text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(rng.random() * 0.15)
        cut_one(tree, rng)
        _, err = request.communicate(timeout=PATIENCE)
        if request.returncode == 0:
            made += 1
        else:
            lost += 1
            assert "node daemon" in err, err
        assert tree.job.poll() is None, tree.job.communicate()
    good(place.call("checkpoint"))
    assert place.state() == "running", place.state()
    out, _ = place.end(tree.job, 0)
    count = int(out.split()[-1])
    # A rank counts the images that it has written; those of a checkpoint that was given up later are no generations.
    assert made + 1 <= count <= turns + 1 and len(place.generations()) == made + 1, (out, made, place.generations())
    place.nothing_left()
    return f"{made} made, {lost} given up"


@case
def connections_break(place):
    cut_and_go_on(place, random.Random(20261126), 6)


def storm(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--turns", type=int, default=200)
    options = parser.parse_args(arguments)
    place = job_test.Place()
    failed = True
    try:
        print(f"seed {options.seed}: {cut_and_go_on(place, random.Random(options.seed), options.turns)}", flush=True)
        failed = False
    finally:
        place.close(failed)


if __name__ == "__main__":
    if sys.argv[2:3] == ["storm"]:
        storm(sys.argv[3:])
    else:
        job_test.main(CASES)
