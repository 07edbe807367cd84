#!/usr/bin/env python3
"""Jobs over two nodes: namespaces of network, host name, IPC and mounts that the test makes, joined by a virtual
cable. The launchers start their half on the other node as they do with rsh; ranks of different nodes reach each
other, and the node daemons their root, by TCP only.

    nodes_test.py CASE openmpi|mpich [--seed S]
"""
import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import harness
from harness import PROGRAMS, Failure, Job, Scratch, check

STEPS, MIB, PAUSE = 600, 2, 2000
ALL_NAMES = tuple(f"fermata-{letter}" for letter in "abcdef")
NAMES = ALL_NAMES[:2]
# PyPI's mpich 5, where tests/suites/wheels_suite.py has built it.
WHEEL = pathlib.Path(os.environ.get("FERMATA_SUITES", pathlib.Path.home() / ".cache" / "fermata-suites")) / "wheels-mpich"
RSH = """#!/bin/sh
# rsh [OPTIONS] HOST COMMAND…, with a fresh environment
while case $1 in -*) true ;; *) false ;; esac; do shift; done
host=$1
shift
exec nsenter -t "$(cat {cwd}/pid.$host)" --net --uts --ipc --mount env -i PATH="$PATH" HOME="$HOME" sh -c "$*"
"""


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}")


def uts(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/uts")
    except OSError:
        return None


class Node:
    """One process holds the namespaces; they go with the last process inside."""

    def __init__(self, cwd, number):
        self.name, self.address, self.cwd = ALL_NAMES[number], f"10.213.77.{number + 1}", cwd
        base = os.environ.get("FERMATA_RUN_DIR", f"/tmp/fermata-{os.geteuid()}")
        os.makedirs(base, mode=0o700, exist_ok=True)
        # A sysfs that shows this network: UCX looks for its devices there.
        inside = (f"hostname {self.name} && mount --bind {cwd}/hosts /etc/hosts && mount -t tmpfs tmpfs /dev/shm && "
                  f"mount -t tmpfs -o mode=700 tmpfs {base} && mount -t sysfs sysfs /sys && ip link set lo up && "
                  f"echo ready && exec cat")  # until the test is gone, however it ends
        self.holder = subprocess.Popen(["unshare", "--net", "--uts", "--ipc", "--mount", "--propagation", "private",
                                        "sh", "-c", inside], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            raise Failure(f"no namespaces for {self.name}: {self.holder.communicate()[1]}")
        (cwd / f"pid.{self.name}").write_text(str(self.holder.pid))
        self.on = ["nsenter", "-t", str(self.holder.pid), "--net", "--uts", "--ipc", "--mount", "env", "-C", str(cwd)]

    def pids(self):
        mine = uts(self.holder.pid)
        return [int(entry.name) for entry in pathlib.Path("/proc").iterdir()
                if entry.name.isdigit() and int(entry.name) != self.holder.pid and uts(entry.name) == mine]

    def kill(self, what=""):
        """SIGKILL to every process of the node, or to those whose command line has this word; how many."""
        killed = 0
        for pid in self.pids():
            try:
                if what.encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
            except OSError:
                pass
        return killed

    def answer(self, yes):
        """Whether ssh reaches it: the next life of a job that has lost it goes on without it when not."""
        there, away = (self.cwd / f"{name}.{self.name}" for name in ("pid", "away"))
        if (away if yes else there).exists():
            (away if yes else there).rename(there if yes else away)

    def empty(self):
        """Nothing of a job is left."""
        end = time.monotonic() + 20
        while self.pids() and time.monotonic() < end:
            time.sleep(0.05)
        left = [pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() for pid in self.pids()]
        check(not left, f"left on {self.name}: {left}")


class Cluster:
    """Two nodes share one cable; of more each has a cable to a switch, which is a network of its own."""

    def __init__(self, cwd, size=2):
        self.cwd, self.size, self.names, self.switch = cwd, size, ALL_NAMES[:size], None
        (cwd / "hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"10.213.77.{i + 1} {name}\n" for i, name in enumerate(ALL_NAMES[:size])))
        (cwd / "rsh").write_text(RSH.format(cwd=cwd))
        (cwd / "rsh").chmod(0o755)
        self.nodes = []

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def own_job(self, share):
        """Words of `run`, environment and prefix of a job that Fermata starts itself, with so many ranks a node."""
        hosts = ",".join(f"{node.name}:{share}" for node in self.nodes)
        return ["--launcher", "own", "--hosts", hosts], dict(os.environ, FERMATA_SSH=f"{self.cwd}/rsh"), self.nodes[0].on

    def build(self):
        for number in range(self.size):
            self.nodes.append(Node(self.cwd, number))
        if self.size == 2:
            a, b = self.nodes
            run("ip", "link", "add", "cable", "netns", a.holder.pid, "type", "veth", "peer", "name", "cable", "netns",
                b.holder.pid)
        else:
            self.plug_in()
        for node in self.nodes:
            run(*node.on, "ip", "address", "add", f"{node.address}/24", "dev", "cable")
            run(*node.on, "ip", "link", "set", "cable", "up")
        for node in self.nodes:  # UCX takes only what is up by then
            run(*node.on, "timeout", 20, "sh", "-c",
                "until [ $(cat /sys/class/net/cable/operstate) = up ]; do sleep 0.02; done")

    def plug_in(self):
        self.switch = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link add switch type bridge && ip link set switch up && "
                                        "echo ready && exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        check(self.switch.stdout.readline() == "ready\n", "no switch")
        inside = ["nsenter", "-t", self.switch.pid, "--net"]
        for number, node in enumerate(self.nodes):
            run("ip", "link", "add", "cable", "netns", node.holder.pid, "type", "veth", "peer", "name", f"port{number}",
                "netns", self.switch.pid)
            run(*inside, "ip", "link", "set", f"port{number}", "master", "switch", "up")

    def __exit__(self, *_):
        if self.switch:
            self.switch.kill()
            self.switch.wait()
        for node in self.nodes:
            node.kill()
            node.holder.kill()
            node.holder.wait()

    def over(self, mpi, ranks, nodes):
        """The launcher's words for `ranks` on these nodes."""
        names = [self.nodes[i].name for i in nodes]
        if harness.LAUNCHER == "own":
            return f"--hosts {','.join(f'{name}:{-(-ranks // len(names))}' for name in names)}"
        if mpi == "mpich":
            return f"-launcher rsh -launcher-exec {self.cwd}/rsh -hosts {','.join(names)}"
        share = -(-ranks // len(names))
        # Each node would bind its ranks to the same cores, and Open MPI 5 refuses more ranks than cores.
        return f"--mca plm_rsh_agent {self.cwd}/rsh --bind-to none -host {','.join(f'{name}:{share}' for name in names)}"

    def start(self, mpi, ranks, nodes=(0, 1), extra=(), library=None, env=()):
        return Job.run(program(mpi), ranks, self.cwd, mpi=library or mpi, on=self.nodes[0].on,
                       extra=["--mpiexec-args", self.over(mpi, ranks, nodes), *extra],
                       env=dict(os.environ, STEADY_PAUSE=str(PAUSE), FERMATA_SSH=f"{self.cwd}/rsh", **dict(env)))

    def restart(self, mpi, ranks, nodes=(0, 1), extra=(), library=None):
        return Job.restart(self.cwd, mpi=library or mpi, on=self.nodes[0].on, env=dict(os.environ, FERMATA_SSH=f"{self.cwd}/rsh"),
                           extra=["--mpiexec-args", self.over(mpi, ranks, nodes), *extra])

    def hosts_of(self, job):
        return sorted({node["host"] for node in job.status()["nodes"]})


def program(mpi):
    return [PROGRAMS / f"steady.{mpi}", STEPS, MIB]


def reference(mpi, ranks, cwd):
    return harness.native(program(mpi), ranks, mpi, cwd)


def same(found, wanted, what):
    check(found == wanted, f"{what}: {len(found)} lines for {len(wanted)}; first difference: "
          f"{next(((a, b) for a, b in zip(found, wanted) if a != b), None)}")


def steps(job, number):
    job.wait_until(lambda: len(job.lines()) >= number, f"{number} lines")


def stop(job):
    """Stopped by a checkpoint; the lines it said."""
    job.checkpoint("--stop")
    return job.finish(expected=85)


def life(cluster, mpi, rng):
    """Over two nodes, continued on the other library with the nodes changed round, at last on one node alone."""
    ranks = 2 if mpi == "mpich" else 3
    wanted = reference(mpi, ranks, cluster.cwd)
    other = "openmpi" if mpi == "mpich" else "mpich"
    with cluster.start(mpi, ranks) as job:
        steps(job, rng.randint(1, 150))
        check(cluster.hosts_of(job) == sorted(NAMES), f"on {cluster.hosts_of(job)}")
        job.checkpoint()
        lines = stop(job)
    for library, nodes in ((other, (1, 0)), (mpi, (0, 1))):
        with cluster.restart(library, ranks, nodes) as job:
            steps(job, rng.randint(1, 100))
            check(cluster.hosts_of(job) == sorted(NAMES), f"on {cluster.hosts_of(job)}")
            lines += stop(job)
    with cluster.restart(other, ranks, (0,)) as job:
        lines += job.finish()
    same(lines, wanted, "four lives")


def node_dies(cluster, mpi, rng):
    """Everything on one node is gone: the job ends and says so, and goes on without that node."""
    wanted = reference(mpi, 2, cluster.cwd)
    with cluster.start(mpi, 2) as job:
        before = rng.randint(1, 150)
        steps(job, before)
        job.checkpoint()
        kept = len(job.lines())
        steps(job, kept + rng.randint(1, 100))
        check(cluster.nodes[1].kill() > 0, "nothing was on the second node")
        check(job.end() not in (0, 85), f"the job ended well: {job.errors()}")
        check(job.errors(), "nothing was said")
    cluster.nodes[0].empty()
    with cluster.restart(mpi, 2, (0,)) as job:
        lines = job.finish()
    # Some lines may still have been on their way through the launcher when `kept` was counted.
    check(lines and len(wanted) - kept - 50 <= len(lines) <= len(wanted) - before,
          f"{len(lines)} lines after the restart")
    same(lines, wanted[-len(lines):], "after the restart")


def daemon_dies(cluster, mpi, rng):
    """The node daemon of either node, while checkpoints are made: the job runs to its end (under own, whose daemons are
    the parents of the ranks, it ends with a line), and what was committed is whole."""
    wanted = reference(mpi, 2, cluster.cwd)
    for moment in range(2):
        shutil.rmtree(cluster.cwd / "ckpt", ignore_errors=True)
        with cluster.start(mpi, 2, extra=["--interval", "0.1s", "--keep", "2"]) as job:
            steps(job, 20)
            job.wait_until(lambda: list((cluster.cwd / "ckpt").glob("gen-*/manifest.json")), "a generation")
            time.sleep(rng.random() * 0.3)
            check(cluster.nodes[moment % 2].kill("noded") == 1, "not one node daemon")
            if harness.LAUNCHER == "own":
                check(job.end() not in (0, 85) and "the node daemon of " in job.errors(), f"{job.process.returncode}: {job.errors()}")
            else:
                said = job.ask("checkpoint", "--timeout", "20s")
                check(said.returncode != 0 and "node daemon" in said.stderr, f"{said.returncode}: {said.stderr}")
                # Open MPI 5's mpiexec exits with 0 when a node is lost, too: near the job's end nobody can tell the two.
                hides = mpi == "openmpi" and harness.version(mpi) >= (5,)
                check(job.end() == 0 or hides and job.process.returncode == 1, f"{job.process.returncode}: {job.errors()}")
                same(job.lines(), wanted, f"moment {moment}, not disturbed")
        for node in cluster.nodes:
            node.empty()
        with cluster.restart(mpi, 2, ((0,), (0, 1))[moment % 2]) as job:
            lines = job.finish()
        check(lines, "no line after the restart")
        same(lines, wanted[-len(lines):], f"moment {moment}, restarted")


def root_gone(cluster, mpi, _):
    """The machine of `fermata run` goes without a word, its cable first: nobody on the other one computes on. While the
    root stands still, for longer than that takes, they do."""
    silent = 1  # s; what is not confirmed for twice as long is lost
    a, b = cluster.nodes
    words = ["--launcher", "own", "--hosts", f"{a.name}:1,{b.name}:1"]
    env = dict(os.environ, STEADY_PAUSE="20000", FERMATA_SSH=f"{cluster.cwd}/rsh", FERMATA_TREE_SILENT=str(1000 * silent))
    with Job.run(program(mpi), 2, cluster.cwd, mpi=mpi, on=a.on, extra=words, env=env) as job:
        steps(job, 10)
        job.process.send_signal(signal.SIGSTOP)
        time.sleep(4 * silent)
        job.process.send_signal(signal.SIGCONT)
        steps(job, len(job.lines()) + 10)
        check(b.pids(), "nobody on the second node")
        run(*a.on, "ip", "link", "set", "cable", "down")
        a.kill()
        b.empty()
        job.process.wait(harness.PATIENCE)


def file_per_node(cluster, mpi, _):
    """Each node has its file; a rank finds its image wherever it runs: on the other node, and all on one."""
    ranks = 3
    wanted = reference(mpi, ranks, cluster.cwd)
    words = ["--layout", "node", "--save-options", "incremental"]

    def files(number):
        return [path.name for path in sorted((cluster.cwd / "ckpt" / f"gen-{number:06}").glob("rank*.img"))]

    with cluster.start(mpi, ranks, extra=words) as job:
        steps(job, 50)
        job.checkpoint()
        lines = stop(job)
    check(len(files(1)) == len(files(2)) == 2 and files(1)[0] == "ranks-000000.img", f"{files(1)} {files(2)}")
    with cluster.restart(mpi, ranks, (1, 0), words) as job:
        steps(job, 50)
        lines += stop(job)
    check(len(files(3)) == 2, f"{files(3)}")
    with cluster.restart(mpi, ranks, (0,), ["--mapped", *words]) as job:
        steps(job, 50)
        lines += stop(job)
    check(files(4) == ["ranks-000000.img"], f"{files(4)}")
    with cluster.restart(mpi, ranks, (0,)) as job:
        lines += job.finish()
    same(lines, wanted, "four lives")


def netmod(cluster, mpi, _):
    """An MPICH from 4.3 on that has UCX and libfabric, here a pretended one, takes the latter between nodes."""
    pretended = {"FERMATA_LOWER_PRELOAD": PROGRAMS / "libucx_and_ofi.mpich.so"}
    for nodes, wanted, used, said in (((0, 1), None, "ofi", "netmod ofi"), ((0, 1), "ucx", "ucx", "warning: this MPICH"),
                                         ((0,), None, "not set", None)):
        env = dict(pretended, **({"MPIR_CVAR_CH4_NETMOD": wanted} if wanted else {}))
        shutil.rmtree(cluster.cwd / "ckpt", ignore_errors=True)
        with cluster.start(mpi, 2, nodes, env=env) as job:
            steps(job, 1)
            stop(job)
            lines = job.errors().splitlines()
            told = [line for line in lines if "this MPICH" in line]
            check(lines.count(f"netmod {used}") == 2 and len(told) == (1 if said else 0) and all(said in line for line in told),
                  f"on {nodes}, wanted {wanted}: {lines}")


def wheel(cluster, mpi, _):
    """PyPI's mpich 5 in truth, which over UCX stands still within some steps, natively too."""
    check((WHEEL / "lib" / "libmpi.so.12").exists(), f"nothing in {WHEEL}: wheels_suite.py build")
    wanted = reference(mpi, 2, cluster.cwd)
    with cluster.start(mpi, 2, library=WHEEL, extra=["--interval", "0.3s", "--keep", "2"]) as job:
        steps(job, 200)
        lines = stop(job)
    with cluster.restart(mpi, 2, library=WHEEL) as job:
        lines += job.finish()
    same(lines, wanted, "PyPI's MPICH")


CASES = {f.__name__: f for f in (life, node_dies, daemon_dies, root_gone, file_per_node, netmod, wheel)}


def case(name, mpi, *rest):
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(time.time()))
    seed = parser.parse_args(rest).seed
    with Scratch(f"nodes-{name}") as cwd, Cluster(cwd) as cluster:
        CASES[name](cluster, mpi, random.Random(seed))
    return f"seed {seed}"


if __name__ == "__main__":
    raise SystemExit(harness.main(case, CASES))
