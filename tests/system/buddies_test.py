#!/usr/bin/env python3
"""Second copies in the memory of other nodes (--levels "memory T, buddy"): kept there while the job runs, and gone on
from when a node is lost with its memory, or when an image is damaged. Nodes are namespaces (nodes_test.py).

    buddies_test.py CASE openmpi|mpich [--seed S]
    buddies_test.py moments openmpi|mpich COUNT [--nodes 6] [--launcher own] [--seed S]

--nodes 6: what six_nodes.py does, with spares.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time

import harness
import nodes_test
import six_nodes
from harness import PROGRAMS, Failure, Scratch, check

NAMES = nodes_test.ALL_NAMES[:3]
STEPS, MIB, RANKS = 600, 2, 3


class Bench:
    level, ranks = "buddied", RANKS  # where `status` says which generation outlives a node

    def __init__(self, cwd, cluster, mpi, rng):
        self.cwd, self.cluster, self.mpi, self.rng = cwd, cluster, mpi, rng
        self.program = [PROGRAMS / f"steady.{mpi}", STEPS, MIB]
        self.natively = {}  # by ranks
        self.of_ranks(self.ranks)
        self.env = dict(os.environ, STEADY_PAUSE="3000", FERMATA_SSH=f"{cwd}/rsh")
        self.key = []

    def of_ranks(self, ranks):
        self.ranks = ranks
        if ranks not in self.natively:
            self.natively[ranks] = harness.native(self.program, ranks, self.mpi, self.cwd)
        self.wanted = self.natively[ranks]

    def job(self, words, nodes, *extra):
        over = ["--mpiexec-args", self.cluster.over(self.mpi, self.ranks, nodes)]
        return harness.Job([*words[:1], "--mpi", self.mpi, "--ckpt-dir", "ckpt", *over, *self.key, *extra, *words[1:]],
                           self.cwd, env=self.env, on=self.cluster.nodes[0].on)

    def run(self, levels, *extra, nodes=(0, 1, 2)):
        return self.job(["run", "-n", self.ranks, "--", *self.program], nodes, "--levels", levels, *extra)

    def restart(self, *extra, nodes=(0, 1, 2)):
        return self.job(["restart"], nodes, *extra)

    def listed(self):
        done = harness.call("list", "--json", "--ckpt-dir", "ckpt", cwd=self.cwd)
        return {one["generation"]: one for one in json.loads(done.stdout)} if done.returncode == 0 else {}

    def newest(self, level):
        return max((name for name, one in self.listed().items() if one["state"] == "complete" and one["level"] == level),
                   default="")

    def held(self, job, level=""):
        """The newest generation that buddies have, or that has parity (parity_test.py); "": none, or the job has ended."""
        done = job.ask("status", "--json")
        return json.loads(done.stdout).get("memory", {}).get(level or self.level, "") if done.returncode == 0 else ""

    def buddied(self, job, after="", level=""):
        """One that is newer than `after`."""
        found = [""]

        def there():
            found[0] = self.held(job, level)
            return found[0] > after
        job.wait_until(there, f"a generation: {level or self.level}")
        return found[0]

    def past_files(self, job, levels, rng):
        """Half of the time, where files are a level: one there, the third or later: increments need what is older than that."""
        return self.buddied(job, "gen-000002", "files") if "files" in levels and rng.random() < 0.5 else ""

    def images(self, node, generation, rank):
        """Paths below /proc, where another mount namespace can be looked into."""
        root = pathlib.Path(f"/proc/{node.holder.pid}/root/dev/shm")
        return list(root.glob(f"fermata-memory-*/*/{node.name}/{generation}/rank-{rank:06}.img"))

    def lose(self, *nodes, memory=True):
        """All at once, so that none is restarted from before the others are gone."""
        found = {node: node.pids() for node in nodes}
        for node, pids in found.items():
            check(pids, f"nothing was on {node.name}")
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        for node in nodes:  # their latest children
            node.kill()
        if memory:
            self.wipe(*nodes)

    def wipe(self, *nodes):
        for node in nodes:
            for path in pathlib.Path(f"/proc/{node.holder.pid}/root/dev/shm").glob("fermata-memory-*"):
                shutil.rmtree(path, ignore_errors=True)

    def kill_all(self, job):
        for node in self.cluster.nodes:
            node.kill()
        job.process.wait()
        for node in self.cluster.nodes:
            node.empty()

    def restored(self, job):
        """The generation that a restarted job has gone on from; none when it has ended meanwhile."""
        found = re.findall(r"going on from (gen-\d+)|restarting from (gen-\d+)|^fermata: (gen-\d+): the image", job.errors(), re.M)
        return "".join(found[-1]) if found else ""

    def end(self, job):
        """To the program's end. MPICH 4.0.2's MPI_Finalize between nodes hangs natively at times: on one node."""
        if self.mpi == "mpich":
            job.checkpoint("--stop")
            self.ends_as_wanted(job.finish(expected=85), whole=False)
            with self.restart(nodes=(0,)) as last:
                return self.ends_as_wanted(last.finish())
        return self.ends_as_wanted(job.finish())

    def ends_as_wanted(self, lines, whole=True):
        check(not whole or lines and lines[-1] == self.wanted[-1], f"{lines[-1:]} for {self.wanted[-1]}")
        at = {line: i for i, line in enumerate(self.wanted)}
        wrong = [i for i, line in enumerate(lines) if line.startswith("step ") and line not in at]
        # MPICH 4.0.2's MPI_Allreduce says MPI_SUCCESS of a wrong sum when a rank died (internals/bindings.md): what a life
        # prints between that and its end may be wrong. What follows it is not.
        if self.mpi == "mpich":
            step = lambda i: int(lines[i].split()[1])
            ends = {i - 1 for i in range(1, len(lines)) if lines[i].startswith("step ") and lines[i - 1].startswith("step ")
                    and step(i) <= step(i - 1)}
            if not whole and lines:
                ends.add(len(lines) - 1)
            while wrong and (wrong[-1] in ends or wrong[-1] + 1 in ends):
                ends.add(wrong.pop())
        check(not wrong, f"wrong lines: {[lines[i] for i in wrong]}")

    def fresh(self, rng):
        """A new directory, and a key or none; the words of --save-options."""
        shutil.rmtree(self.cwd / "ckpt", ignore_errors=True)
        save = rng.choice(("", "forked", "incremental", "incremental,forked", "compress=lz4"))
        self.key = []
        if rng.random() < 0.3:
            key = self.cwd / "key"
            key.unlink(missing_ok=True)
            key.write_text(rng.randbytes(32).hex() + "\n")
            key.chmod(0o600)
            self.key = ["--encrypt-key", "key"]
        return save

    def nothing_left(self):
        for node in self.cluster.nodes:
            node.empty()
            left = subprocess.run([*node.on, "sh", "-c", "ls -d /dev/shm/fermata-memory-*/*"], capture_output=True, text=True)
            check(not left.stdout, f"left on {node.name}: {left.stdout}")


def running(job):
    def state():
        done = job.ask("status", "--json")
        return json.loads(done.stdout)["state"] if done.returncode == 0 else ""
    job.wait_until(lambda: state() == "running", "running")


def flip(path, rng):
    """A bit of what the image is made of: its header."""
    with open(path, "r+b") as file:
        at = rng.randrange(64)
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << rng.randrange(8)]))


def node_dies(bench):
    """With its memory: its ranks' images come from its buddy's, onto the node that is there again, or onto the others."""
    for launcher in ("mpiexec", "own"):
        harness.LAUNCHER = launcher
        shutil.rmtree(bench.cwd / "ckpt", ignore_errors=True)
        with bench.run("memory 0.2s, buddy", "--max-restarts", 3) as job:
            known = bench.buddied(job)
            time.sleep(bench.rng.random() * 0.3)
            bench.lose(bench.cluster.nodes[bench.rng.choice((1, 2))])
            job.wait_until(lambda: "restarting from" in job.errors(), "a restart")
            running(job)
            restored = job.status()["restored"]
            check(restored >= known, f"gone on from {restored}, and buddies had {known}: {job.errors()}")
            check("its buddy" in job.errors(), job.errors())
            # Both copies are there again: another node, and the same once more.
            known = bench.buddied(job, restored)
            bench.lose(bench.cluster.nodes[bench.rng.choice((1, 2))])
            job.wait_until(lambda: job.errors().count("restarting from") == 2, "a restart")
            running(job)
            bench.end(job)
            check(job.errors().count("its buddy") >= 2, job.errors())
        bench.nothing_left()


def byte_flips(bench):
    """One in its own node's copy: taken from the buddy. One in both: the next level, and that is said."""
    with bench.run("memory 0.2s, buddy") as job:
        nodes_test.steps(job, 5)
        job.checkpoint()  # to files
        first = bench.newest("files")
        known = bench.buddied(job, first)
        bench.kill_all(job)
    newest = bench.newest("memory")
    rank = bench.rng.randrange(RANKS)
    held = [path for node in bench.cluster.nodes for path in bench.images(node, known, rank)]
    check(len(held) == 2, f"{known} of rank {rank}: {held}")
    if newest != known:
        for node in bench.cluster.nodes:
            for path in bench.images(node, newest, rank):
                path.unlink()
    own, other = bench.images(bench.cluster.nodes[rank], known, rank)[0], [
        path for path in held if NAMES[rank] not in str(path)][0]
    flip(own, bench.rng)
    with bench.restart() as job:
        running(job)
        check(job.status()["restored"] == known, job.errors())
        check(f"{known}: the image of rank {rank} from the memory of" in job.errors(), job.errors())
        check("its buddy" in job.errors(), job.errors())
        bench.kill_all(job)
    # The restart has mended it.
    check(own.read_bytes() == other.read_bytes(), "not mended")
    flip(own, bench.rng)
    flip(other, bench.rng)
    with bench.restart() as job:
        job.wait_until(lambda: "going on from" in job.errors(), "a loss")
        check(f"going on from {first}, in files" in job.errors(), job.errors())
        running(job)
        bench.end(job)
    bench.nothing_left()


def refused(bench):
    """Where there can be no buddy."""
    (bench.cwd / "domains").write_text("".join(f"{name} switch1\n" for name in NAMES))
    (bench.cwd / "some").write_text("fermata-a s1\n")
    for nodes, words, line in (((0,), [], "the job is on one node"), ((0, 1), ["--domains", "domains"], "failure domain switch1"),
                               ((0, 1), ["--domains", "some"], "does not name fermata-b")):
        with bench.run("memory 10s, buddy", *words, nodes=nodes) as job:
            check(job.end() == 2, job.errors())
            check([line in said for said in job.errors().splitlines() if said.startswith("fermata:")] == [True], job.errors())
    with bench.run("memory 0.2s, buddy anywhere", "--domains", "domains", nodes=(0, 1)) as job:
        bench.buddied(job)
        check("same failure domain" in job.errors(), job.errors())
        bench.end(job)
    bench.nothing_left()


def daemon_dies(bench):
    """While it copies, or during the restart: never a mix, never a job that hangs."""
    for moment in ("copy", "restart"):
        shutil.rmtree(bench.cwd / "ckpt", ignore_errors=True)
        with bench.run("memory 0.1s, buddy", "--max-restarts", 3, "--copy-limit", 10) as job:
            bench.buddied(job)
            if moment == "copy":
                job.wait_until(lambda: "to_buddies" in job.status()["memory"], "a copy")
            else:
                bench.lose(bench.cluster.nodes[1])
                job.wait_until(lambda: "restarting from" in job.errors(), "a restart")
                end = time.monotonic() + 20  # until a node has come back, and is about to ask for images
                while not bench.cluster.nodes[1].pids() and time.monotonic() < end:
                    time.sleep(0.005)
                time.sleep(bench.rng.random() * 0.5)
            restarts = job.errors().count("restarting from")
            victim = bench.cluster.nodes[bench.rng.choice((1, 2))]
            victim.kill("noded")
            code = job.end()
            check(code == 0 or job.errors(), "ended without a word")
            bench.ends_as_wanted(job.lines(), whole=code == 0)
        if code != 0:
            for node in bench.cluster.nodes:
                node.kill()
                node.empty()
            with bench.restart() as job:
                running(job)
                bench.end(job)
        elif job.errors().count("restarting from") == restarts:
            # The job came to its end before it was to be started again, with nobody on that node to clear it.
            subprocess.run([*victim.on, "sh", "-c", "rm -rf /dev/shm/fermata-memory-*/*"], check=True)
        bench.nothing_left()


def given_up(bench):
    """A job that nobody restarts, and a node is gone: what its buddy has comes to files before the job ends."""
    with bench.run("memory 0.2s, buddy") as job:
        known = bench.buddied(job)
        time.sleep(bench.rng.random() * 0.3)
        bench.lose(bench.cluster.nodes[bench.rng.choice((1, 2))])
        check(job.end() not in (0, 85), job.errors())
    check(bench.newest("files") >= known, f"{known} was with buddies; in files: {bench.listed()}; {job.errors()}")
    if "goes on from there if it still is" not in job.errors():  # a newer one without a second copy stays where it is
        bench.nothing_left()
    with bench.restart(nodes=(0,)) as job:
        bench.ends_as_wanted(job.finish())


def compared(bench):
    """A byte has flipped in a node's memory: the copy to files finds it, its buddy has it still, and it comes to files from there;
    so it does at the end of a job that nobody restarts."""
    bench.env["STEADY_PAUSE"] = "20000"
    own = lambda known, rank: bench.images(bench.cluster.nodes[rank], known, rank)[0]
    for kind in ("period", "end"):
        shutil.rmtree(bench.cwd / "ckpt", ignore_errors=True)
        rank = bench.rng.randrange(RANKS)
        levels, words = ("memory 3s, buddy, files 5s", ["--copy-limit", 4]) if kind == "period" else ("memory 4s, buddy", [])
        with bench.run(levels, *words) as job:
            if kind == "period":
                job.wait_until(job.lines, "the first line")

                def being_copied():  # one that buddies have
                    memory = job.status()["memory"]
                    return memory["copying"] if "copying" in memory and memory["copying"] == memory.get("buddied") else ""
                job.wait_until(being_copied, "a copy to files")
                known = job.status()["memory"]["buddied"]
                flip(own(known, rank), bench.rng)
                job.wait_until(lambda: "could not be copied" in job.errors(), "a word of it")
                job.wait_until(lambda: f"{known}: repaired: " in job.errors() or "no other copy" in job.errors(), "a repair")
                mended = f"{known}: repaired: the image of rank {rank} in the memory of {NAMES[rank]} from the memory of"
                check(mended in job.errors(), job.errors())
                bench.buddied(job, known if bench.held(job, "files") > known else "", "files")
                bench.kill_all(job)
            else:
                known = bench.buddied(job)
                flip(own(known, rank), bench.rng)
                for pid in bench.cluster.nodes[1].pids():
                    if "steady" in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
                        os.kill(pid, signal.SIGKILL)
                check(job.end() not in (0, 85), job.errors())
                check(f"{known} could not be copied" in job.errors(), job.errors())
                check(f"{known}: each image was intact on some node; it is in" in job.errors(), job.errors())
                check(bench.newest("files") == known, bench.listed())
        bench.wipe(*bench.cluster.nodes)
        done = harness.call("verify", "--ckpt-dir", "ckpt", "--generation", bench.newest("files")[4:].lstrip("0"), cwd=bench.cwd)
        check(done.returncode == 0, f"{done.stdout}{done.stderr}")


def cut_file(bench):
    """An image in files is cut or missing, and its rank comes to another node: from the memory of the node that has it still."""
    bench.env["STEADY_PAUSE"] = "10000"
    for _ in range(5):
        shutil.rmtree(bench.cwd / "ckpt", ignore_errors=True)
        with bench.run("memory 2s, files 2s") as job:
            known = bench.buddied(job, level="files")
            bench.kill_all(job)
        if all(bench.images(node, known, rank) for rank, node in enumerate(bench.cluster.nodes)):
            break  # else the machine was slow, and memory has the next one already
        bench.wipe(*bench.cluster.nodes)
    else:
        raise Failure("never in both")
    image = bench.cwd / "ckpt" / known / "rank-000001.img"
    image.unlink() if bench.rng.random() < 0.5 else os.truncate(image, image.stat().st_size // 2)
    for node in bench.cluster.nodes:  # of what is newer
        root = pathlib.Path(f"/proc/{node.holder.pid}/root/dev/shm")
        for path in root.glob(f"fermata-memory-*/*/{node.name}/gen-*"):
            if path.name > known:
                shutil.rmtree(path)
    with bench.restart(nodes=(0, 2, 1)) as job:
        running(job)
        check(job.status()["restored"] == known, job.errors())
        check(f"{known}: the image of rank 1 from the memory of {NAMES[1]}" in job.errors(), job.errors())
        check(f"{image}" in job.errors() and "is read instead" in job.errors(), job.errors())
        bench.end(job)
    bench.nothing_left()


def repaired(bench):
    """While the job runs, `verify --repair` mends what is damaged in the memory of its nodes: a node's own image, and one that
    another keeps as a buddy; what is intact stays as it is."""
    def damaged_of(held):
        own, kept = bench.rng.sample(range(bench.ranks), 2)
        return {next(path for path in held[own] if NAMES[own] in str(path)): own,
                next(path for path in held[kept] if NAMES[kept] not in str(path)): kept}
    repaired_in(bench, "memory 3s, buddy", damaged_of, "the memory of ")


def repair(bench):
    """`fermata verify --repair` on the first node, through the running job."""
    return harness.call("verify", "--repair", "--ckpt-dir", "ckpt", *bench.key, cwd=bench.cwd, on=bench.cluster.nodes[0].on)


def repair_newest(bench, job, files_of, harm):
    """Of the newest generation `files_of` gives the paths, and `harm` damages some: they are repaired, to what they were before.
    Again with the next one when that has taken its place meanwhile. Gives the generation, content and inode of each path before
    and after, what `harm` gave, and what the command said."""
    known = ""
    for _ in range(3):
        known = bench.buddied(job, known)
        paths = files_of(known)
        look = lambda: {path: (path.read_bytes(), path.stat().st_ino) for path in paths}
        before = look()
        harmed = harm(paths)
        done = repair(bench)
        try:
            after = look()
            break
        except FileNotFoundError:
            continue  # a newer one has taken its place
    else:
        raise Failure(f"the generation had always gone: {done}")
    check(done.returncode == 0, f"{done}")
    for path in before:
        check(after[path][0] == before[path][0], f"{path} is not what it was")
    again = repair(bench)
    check(again.returncode == 0 and "repaired" not in again.stdout, f"{again}")
    return known, before, after, harmed, done


def repaired_in(bench, levels, damaged_of, source):
    """`damaged_of`: from paths by rank, those that are to be damaged, with their ranks."""
    bench.env["STEADY_PAUSE"] = "20000"
    held = {}

    def images_of(known):
        held.update({rank: [path for node in bench.cluster.nodes for path in bench.images(node, known, rank)]
                     for rank in range(bench.ranks)})
        return [path for paths in held.values() for path in paths]

    def harm(_):
        damaged = damaged_of(held)
        for i, path in enumerate(damaged):
            path.unlink() if i > 0 and bench.rng.random() < 0.5 else flip(path, bench.rng)
        return damaged
    with bench.run(levels) as job:
        known, before, after, damaged, done = repair_newest(bench, job, images_of, harm)
        for path, rank in damaged.items():
            node = next(name for name in nodes_test.ALL_NAMES if f"/{name}/" in str(path))
            check(f"{known}  repaired: the image of rank {rank} in the memory of {node} from {source}" in done.stdout, f"{done}")
        for path in before:
            check(path in damaged or after[path][1] == before[path][1], f"{path} was written over")
        bench.end(job)
    bench.nothing_left()


def repair_ends(bench):
    """A node daemon dies while `verify --repair` is at work: one line, at once, and the job goes on from what is whole."""
    bench.env["STEADY_PAUSE"] = "10000"
    with bench.run("memory 2s, buddy", "--max-restarts", 2, "--copy-limit", 1) as job:
        known = bench.buddied(job)
        for rank in range(bench.ranks):
            flip(next(path for node in bench.cluster.nodes for path in bench.images(node, known, rank) if NAMES[rank] in str(path)),
                 bench.rng)
        words = [*bench.cluster.nodes[0].on, harness.FERMATA, "verify", "--repair", "--ckpt-dir", "ckpt"]
        with subprocess.Popen(words, cwd=bench.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as verify:
            time.sleep(0.1 + bench.rng.random() * 1.5)
            bench.cluster.nodes[bench.rng.choice((1, 2))].kill("noded")
            out, err = verify.communicate(timeout=60)
            errors = [line for line in err.splitlines() if line.startswith("fermata: error")]
            check(verify.returncode in (0, 1, 6) and (verify.returncode == 0) == (not errors), f"{verify.returncode}: {out}{err}")
        code = job.end()
        bench.ends_as_wanted(job.lines(), whole=code == 0)
        check(code == 0 or job.errors(), "ended without a word")
    for node in bench.cluster.nodes:
        node.kill()
        node.empty()
    return f"verify ended with {verify.returncode}: {errors[:1]}"


def in_copy(bench):
    """A copy to buddies or to files is under way when the link is cut, when the buddy has no memory left, when everything is
    killed: what was whole before stays, what is not whole is not there."""
    for kind in ("link", "memory", "flush"):
        shutil.rmtree(bench.cwd / "ckpt", ignore_errors=True)
        globals()[f"{kind}_in_copy"](bench)
        bench.nothing_left()


def link_in_copy(bench):
    """The node is back when it has been given up, and the job with it."""
    bench.env["FERMATA_TREE_SILENT"] = "1000"
    try:
        with bench.run("memory 0.2s, buddy", "--max-restarts", 3, "--copy-limit", 2) as job:
            bench.buddied(job)
            job.wait_until(lambda: "to_buddies" in job.status()["memory"], "a copy")
            known = job.status()["memory"]["buddied"]
            cable = [*bench.cluster.nodes[bench.rng.choice((1, 2))].on, "ip", "link", "set", "cable"]
            subprocess.run([*cable, "down"], check=True)
            try:  # one that comes back before is forgiven
                job.wait_until(lambda: '"event":"loss"' in (bench.cwd / "ckpt" / "journal.jsonl").read_text(), "a lost node")
            finally:
                subprocess.run([*cable, "up"], check=True)
            job.wait_until(lambda: "restarting from" in job.errors(), "a restart")
            running(job)
            check(job.status()["restored"] >= known, f"from {job.status()['restored']}, and buddies had {known}: {job.errors()}")
            bench.end(job)
    finally:
        del bench.env["FERMATA_TREE_SILENT"]


def memory_in_copy(bench):
    """Said once; the job goes on, and buddies have copies again when there is memory."""
    victim = bench.cluster.nodes[1]
    with bench.run("memory 0.2s, buddy") as job:
        known = bench.buddied(job)
        # What the reserve of a node leaves is nothing then.
        subprocess.run([*victim.on, "mount", "-o", "remount,size=96m", "/dev/shm"], check=True)
        job.wait_until(lambda: "of memory for" in job.errors(), "a word of it")
        check(job.status()["memory"]["buddied"] >= known, job.status())
        subprocess.run([*victim.on, "mount", "-o", "remount,size=4g", "/dev/shm"], check=True)
        bench.buddied(job, bench.newest("memory"))
        bench.end(job)


def flush_in_copy(bench):
    """Of a copy to files that was killed nothing counts."""
    with bench.run("memory 0.2s, buddy, files 0.5s", "--copy-limit", 2) as job:
        bench.buddied(job)
        job.wait_until(lambda: "copying" in job.status()["memory"], "a copy to files")
        status = job.status()["memory"]
        bench.kill_all(job)
    done = harness.call("verify", "--ckpt-dir", "ckpt", *bench.key, cwd=bench.cwd)
    check(done.returncode in (0, 6) and "damaged" not in done.stdout, f"{done.stdout}{done.stderr}")
    listed = bench.listed()
    check(listed[status["copying"]]["level"] == "memory" or status["copying"] > status["buddied"], f"{status}: {listed}")
    with bench.restart() as job:
        running(job)
        check(job.status()["restored"] >= status["buddied"], f"{status}: {job.errors()}")
        bench.end(job)


def planned(bench):
    """--levels auto: buddies are measured and are in the plan, or were left out of it by the formula; a lost node is gone on
    from, and the plan is made anew on the nodes as they are then."""
    def plan(job):
        found = {}

        def there():
            done = job.ask("status", "--json")
            found.update(json.loads(done.stdout)["memory"].get("auto", {}) if done.returncode == 0 else {})
            return "levels" in found
        job.wait_until(there, "a plan")
        names = [one["name"] for one in found["levels"]]
        check(names in (["memory", "buddy", "files"], ["memory", "files"]) and "no_buddies" not in found, found)
        check(all(one["cost"] > 0 and one["period"] > 0 for one in found["levels"]) and 0 < found["loss"], found)
    with bench.run("auto", "--mtbf", "20s", "--max-restarts", 3) as job:
        plan(job)
        known = max(bench.held(job), bench.newest("files"))
        check(known, "neither buddies nor files have been measured")
        bench.lose(bench.cluster.nodes[bench.rng.randint(1, 2)])
        job.wait_until(lambda: "restarting from" in job.errors(), "a restart")
        running(job)
        check(job.status()["restored"] >= known, f"from {job.status()['restored']}, and {known} was with buddies or in files")
        plan(job)
        bench.end(job)
    bench.nothing_left()


def moments(bench, count=1):
    """A node, a daemon, a rank or an image at any moment: never a wrong result, and nothing older than buddies had."""
    if bench.cluster.size == 6:
        return six_nodes.moments(bench, count)
    seen = collections.Counter()
    for moment in range(count):
        rng = bench.rng
        save = bench.fresh(rng)
        levels = rng.choice(("memory 0.1s, buddy", "memory 0.1s, buddy 0.3s", "memory 0.15s, buddy, files 0.6s"))
        words = ["--save-options", save] if save else []
        with bench.run(levels, "--max-restarts", 6, *words) as job:
            kills, known = [], ""
            for _ in range(rng.randint(1, 2)):
                try:
                    known = max(known, bench.buddied(job, max(known, bench.past_files(job, levels, rng))))
                    time.sleep(rng.random() * 0.4)
                    known = max(known, bench.held(job))
                except Failure:
                    break  # it has ended
                if job.process.poll() is not None or len(job.lines()) > STEPS - 40:
                    break
                before = job.errors().count("restarting from")
                what = rng.choice(("node", "node", "processes", "rank", "image", "all"))
                kills.append(what)
                if what == "all":
                    bench.kill_all(job)
                    bench.wipe(rng.choice(bench.cluster.nodes))
                    break
                strike(bench, job, what, rng)
                try:
                    job.wait_until(lambda: job.errors().count("restarting from") > before, "a restart")
                    running(job)
                except Failure as failure:
                    if job.process.poll() is None:
                        raise
                    if job.process.returncode == 0:
                        break
                    raise Failure(f"moment {moment}, {kills}, {levels}, {save}: {failure}") from None
                restored = job.status()["restored"]
                check(restored >= known, f"moment {moment}, {kills}, {levels}, {save}: from {restored}, and {known} was with buddies: "
                      f"{job.errors()}")
            try:
                if kills[-1:] != ["all"]:
                    bench.end(job)
            except Failure as failure:
                raise Failure(f"moment {moment}, {kills}, {levels}, {save}: {failure}: {job.errors()}") from None
            said = job.errors()
        if kills[-1:] == ["all"]:
            with bench.restart() as job:
                try:
                    running(job)
                    check(job.status()["restored"] >= known, f"from {job.status()['restored']}, and {known} was with buddies")
                    bench.end(job)
                except Failure as failure:
                    raise Failure(f"moment {moment}, {kills}, {levels}, {save}: {failure}: {job.errors()}") from None
                said += job.errors()
        seen.update(kills or ["nothing"])
        seen["from a buddy"] += said.count("buddy")
        seen["lost"] += said.count("lost: ")
        bench.nothing_left()
    return f"{count} moments; " + ", ".join(f"{name} {number}" for name, number in sorted(seen.items()))


def strike(bench, job, what, rng):
    nodes = bench.cluster.nodes
    victim = nodes[rng.choice((1, 2))]
    if what in ("node", "processes"):
        return bench.lose(victim, memory=what == "node")
    ranks = [rank["pid"] for rank in json.loads(job.ask("status", "--json").stdout)["ranks"]]
    if what == "image":
        damaged = [path for node in nodes[:1] for path in pathlib.Path(f"/proc/{node.holder.pid}/root/dev/shm").glob(
            "fermata-memory-*/*/*/gen-*/rank-*.img")]
        for path in rng.sample(damaged, min(1, len(damaged))):
            try:
                flip(path, rng)
            except (OSError, IndexError):
                pass  # it has gone meanwhile
    try:
        os.kill(rng.choice(ranks), signal.SIGKILL)
    except ProcessLookupError:
        pass


CASES = {f.__name__: f for f in (node_dies, byte_flips, refused, daemon_dies, given_up, compared, cut_file, repaired, repair_ends, in_copy, planned, moments)}


def case(name, mpi, *rest, cases=None, names=NAMES, bench_of=Bench):
    """Of parity_test.py, too."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", help="of moments")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--launcher", default=harness.LAUNCHER)
    parser.add_argument("--nodes", type=int, default=len(names), choices=(len(names), 6))
    given = parser.parse_args(rest)
    harness.LAUNCHER = given.launcher
    with Scratch(f"levels-{name}") as cwd, nodes_test.Cluster(cwd, given.nodes) as cluster:
        bench = bench_of(cwd, cluster, mpi, random.Random(given.seed))
        said = (cases or CASES)[name](bench, *([given.count] if given.count else []))
    return f"seed {given.seed}" + (f"; {said}" if said else "")


if __name__ == "__main__":
    raise SystemExit(harness.main(case, CASES))
