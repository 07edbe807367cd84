#!/usr/bin/env python3
"""Generations in local directories of nodes (--levels "local T" and "memory T, local T"): kept there, gone on from when
memory is lost, never believed when damaged, and gone when the job is done. Cases in `nodes` need namespaces.

    local_test.py CASE openmpi|mpich [--seed S] [--save-options WORDS] [--encrypt]
    local_test.py moments openmpi|mpich COUNT [--seed S]
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time

import buddies_test
import harness
import levels_test
import nodes_test
from harness import PROGRAMS, Failure, Job, Scratch, check

RANKS = levels_test.RANKS


class Bench(levels_test.Bench):
    """With a local directory of its own."""

    def __init__(self, cwd, memory, mpi, seed, options):
        super().__init__(cwd, memory, mpi, seed, options)
        self.local = cwd / "local"
        self.local.mkdir(mode=0o700)
        self.env["FERMATA_LOCAL_DIR"] = str(self.local)

    def in_local(self, generation="gen-*"):
        return sorted(self.local.glob(f"*/*/*/{generation}"))

    def nothing_left(self):
        super().nothing_left()
        check(not list(self.local.glob("*/*")), f"left in local directories: {list(self.local.rglob('*'))[:5]}")

    def reboot(self, job):
        """The machine: all processes end, and memory is empty."""
        self.kill_all(job)
        shutil.rmtree(self.memory)
        self.memory.mkdir(mode=0o700)

    def localed(self, job, after=""):
        """A generation that `status` has in local directories, newer than that."""
        found = [""]

        def there():
            done = job.ask("status", "--json")
            found[0] = json.loads(done.stdout)["memory"].get("local", "") if done.returncode == 0 else ""
            return found[0] > after
        job.wait_until(there, "a generation in local directories")
        return found[0]

    def newest_local(self):
        """The newest generation that a restart can have for all ranks from local directories."""
        whole = [name for name, one in self.listed().items() if one["state"] == "complete" and
                 len(list(self.local.glob(f"*/*/*/{name}/rank-*.img"))) == RANKS]
        return max(whole, default="")

    def verify(self, generation, *more):
        return harness.call("verify", "--generation", generation[4:].lstrip("0"), "--ckpt-dir", "ckpt", *self.key, *more,
                            cwd=self.cwd, env=self.env)


def alone(bench):
    """As the first level: gone on from after a rank's death, and after a reboot; shown, verified, and gone at the end."""
    with bench.run("local 0.2s", "--max-restarts", 2) as job:
        known = bench.committed(job, "local")
        for path in (bench.local.glob("*").__next__(), bench.local.glob("*/*/*").__next__()):
            check(oct(path.stat().st_mode & 0o777) == "0o700", f"others may look into {path}")
        os.kill(bench.rng.choice(job.rank_pids()), signal.SIGKILL)
        job.wait_until(lambda: "restarting from" in job.errors(), "a restart")
        check("lost:" not in job.errors(), job.errors())
        known = bench.committed(job, "local", known)
        known = bench.localed(job, known)
        check("in local" in job.ask("status").stdout, job.ask("status").stdout)
        bench.reboot(job)
    newest = bench.newest_local()
    check(newest >= known and bench.listed()[newest]["nodes"], f"{newest}, {known}: {bench.listed()}")
    done = harness.call("list", "--ckpt-dir", "ckpt", cwd=bench.cwd, env=bench.env)
    check(", local of " in done.stdout, done.stdout)
    done = bench.verify(newest)
    check(done.returncode == 0 and "in the local directory" in done.stdout, f"{done}")
    done = harness.call("inspect", "--ckpt-dir", "ckpt", *bench.key, cwd=bench.cwd, env=bench.env)
    check(done.returncode == 0 and "rank" in done.stdout, f"{done}")
    with bench.restart() as job:
        bench.ends_as_wanted(job.finish())
        check("lost" not in job.errors(), job.errors())
    bench.nothing_left()


def memory_lost(bench):
    """Memory is empty after a reboot: the job goes on from what was copied to local directories before."""
    with bench.run("memory 0.1s, local 0.3s, files 1h") as job:
        known = bench.localed(job, bench.localed(job))
        check(job.status()["memory"]["memory"] >= known, job.status()["memory"])
        bench.reboot(job)
    newest = bench.newest_local()
    check(newest >= known, f"{newest} after {known}")
    check(bench.listed()[newest].get("local_copies"), bench.listed()[newest])
    with bench.restart() as job:
        job.wait_until(lambda: "going on from" in job.errors() or f"{newest}: the image" in job.errors(), "a restart")
        bench.ends_as_wanted(job.finish())
        check(re.search(f"{newest}: the images of ranks 0[-,]1 from the local directory of", job.errors()), job.errors())
        lost = max(bench.wanted and re.findall(r"lost: (gen-\d+)", job.errors()), default="")
        check(not lost or lost > newest, job.errors())
    bench.nothing_left()


def flip_somewhere(path, rng):
    at = rng.randrange(path.stat().st_size)
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << rng.randrange(8)]))
    return at


def byte_flips(bench):
    """A single one in a local image: mended from memory; with nothing else there, refused, or the next level is taken."""
    bench.env["STEADY_PAUSE"] = "10000"
    for _ in range(5):
        with bench.run("memory 1.5s, local 1.5s") as job:
            newest = bench.localed(job)
            bench.kill_all(job)
        if list(bench.memory.glob(f"*/*/*/{newest}/rank-000001.img")):
            break  # else the machine was slow, and memory has the next one already
        for path in (bench.cwd / "ckpt", bench.memory, bench.local):
            shutil.rmtree(path)
        bench.memory.mkdir(mode=0o700)
        bench.local.mkdir(mode=0o700)
    else:
        raise Failure("never in both")
    check(bench.verify(newest).returncode == 0, bench.verify(newest))
    image = bench.rng.choice(sorted(bench.local.glob(f"*/*/*/{newest}/rank-*.img")))
    before = image.read_bytes()
    levels_test.flip(image, bench.rng)
    done = bench.verify(newest)
    check(done.returncode == 6 and image.name in done.stderr and "verify --repair" in done.stderr, f"{done}")
    done = bench.verify(newest, "--repair")
    check(done.returncode == 0 and f"repaired: {image} from the memory of " in done.stdout, f"{done}")
    check(image.read_bytes() == before, "not what it was")
    # Anywhere, and memory is lost.
    shutil.rmtree(bench.memory)
    bench.memory.mkdir(mode=0o700)
    at = flip_somewhere(image, bench.rng)
    flagged = bench.verify(newest).returncode == 6
    check(flagged or at % 4096 != 0, "not seen")
    with bench.restart(generation=newest[4:].lstrip("0")) as job:
        code = job.end()
        # (Bytes between the parts of an image are nobody's.)
        check(code == (6 if flagged else 0), f"byte {at} of {image}: {code}: {job.errors()}")
        check(not flagged or "nothing to restart from" in job.errors(), job.errors())


def byte_flips_alone(bench):
    """Likewise where local is the first level, with one in files before."""
    with bench.run("local 0.2s, files 0.5s") as job:
        first = bench.committed(job, "files")
        newest = bench.committed(job, "local", first)
        bench.reboot(job)
    newest = bench.newest_local()
    if bench.listed()[newest]["level"] == "files":
        return "it was in files already"
    first = max(name for name, one in bench.listed().items() if one["state"] == "complete" and one["level"] == "files")
    levels_test.flip(bench.rng.choice(sorted(bench.local.glob(f"*/*/*/{newest}/rank-*.img"))), bench.rng)
    check(bench.verify(newest).returncode == 6, bench.verify(newest))
    with bench.restart() as job:
        bench.ends_as_wanted(job.finish())
        check(f"lost: {newest}" in job.errors() and f"going on from {first}, in files" in job.errors(), job.errors())
    bench.nothing_left()
    return None


def full(bench):
    """A local file system without room: files are next, or memory alone, which is said in a line, and the job goes on."""
    with open(bench.cwd / "disk", "wb") as disk:
        disk.truncate(160 << 20)  # with the reserve hardly anything is left of it
    subprocess.run(["mkfs.ext4", "-q", "-F", bench.cwd / "disk"], check=True)
    on = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
          f'mount -o loop {bench.cwd}/disk {bench.local} && exec "$@"', "sh"]
    with bench.run("local 0.2s", on=on) as job:
        bench.committed(job, "files")
        check("goes to files, not to local directories: " in job.errors(), job.errors())
        bench.ends_as_wanted(job.finish())
    shutil.rmtree(bench.cwd / "ckpt")
    with bench.run("memory 0.1s, local 0.2s", on=on) as job:
        job.wait_until(lambda: "could not be copied to local directories: " in job.errors(), "a refusal")
        bench.committed(job, "memory", bench.committed(job, "memory"))
        check("local_trouble" in job.status()["memory"], job.status()["memory"])
        bench.ends_as_wanted(job.finish())
        check(job.errors().count("could not be copied to local directories") == 1, job.errors())
    bench.nothing_left()


def left_over(bench):
    """Of a dead job: it stays for a week while a restart could go on from it, and goes with its manifests."""
    with bench.run("local 0.2s") as job:
        bench.committed(job, "local", bench.committed(job, "local"))
        bench.reboot(job)
    check(bench.in_local(), "nothing was left")

    def another():
        short = [PROGRAMS / f"steady.{bench.mpi}", 3, 1]
        with Job.run(short, 1, bench.cwd, ckpt="other", mpi=bench.mpi, extra=["--levels", "local 10s"], env=bench.env) as job:
            job.finish()

    def age(days):
        for path in bench.in_local():
            os.utime(path, (time.time() - days * 86400,) * 2)
    age(6)
    another()
    check(bench.in_local(), "it went too early")
    kept = bench.cwd / "kept"
    shutil.copytree(bench.local, kept)
    age(8)
    another()
    bench.nothing_left()
    shutil.rmtree(bench.local)
    kept.rename(bench.local)
    check(bench.in_local(), "nothing to remove")
    (bench.cwd / "ckpt").rename(bench.cwd / "away")
    another()
    bench.nothing_left()


def stopped(bench):
    """SIGTERM: the last one is in files, and nothing stays on the node. A job that fails has its newest in files."""
    for levels in ("local 0.1s", "memory 0.1s, local 0.1s"):
        with bench.run(levels) as job:
            bench.localed(job)
            job.process.send_signal(signal.SIGTERM)
            check(job.end() == 85, job.errors())
        bench.nothing_left()
        with bench.restart("--levels", levels) as job:
            bench.localed(job)
            os.kill(job.rank_pids()[0], signal.SIGKILL)
            check(job.end() not in (0, 85), job.errors())
        bench.nothing_left()
        with bench.restart() as job:
            bench.ends_as_wanted(job.finish())
        shutil.rmtree(bench.cwd / "ckpt")


def refused(bench):
    """Words that make no sense, and a directory that others can reach."""
    for words, why in (("local", "how often"), ("local 1m, buddy", "no memory"), ("memory 1m, local 1s", "as often as local"),
                       ("local 1m, files 1s", "as often as files")):
        with bench.run(words) as job:
            check(job.end() == 2 and why in job.errors(), job.errors())
    (bench.local / f"fermata-local-{os.geteuid()}").mkdir(mode=0o777)
    (bench.local / f"fermata-local-{os.geteuid()}").chmod(0o777)
    with bench.run("local 0.2s") as job:
        bench.committed(job, "files")
        check("is not a directory of this user's alone" in job.errors(), job.errors())
        bench.ends_as_wanted(job.finish())


def newest_to_be_had(bench, damaged):
    """By what is in files, in memory and in local directories and was not damaged; "": none."""
    def is_there(name, one, rank):
        found = list(bench.memory.glob(f"*/*/*/{name}/rank-{rank:06}.img")) + list(bench.local.glob(f"*/*/*/{name}/rank-{rank:06}.img"))
        return one["level"] == "files" or any(path not in damaged for path in found)
    return max((name for name, one in bench.listed().items() if one["state"] == "complete" and
                all(is_there(name, one, rank) for rank in range(RANKS))), default="")


def moments(bench, count=2):
    """Everything dies at any moment, then memory, local directories or single images are lost or damaged: never a wrong
    result, and never from anything older than what is left."""
    went = {}
    for moment in range(count):
        for path in (bench.cwd / "ckpt", bench.memory, bench.local):
            shutil.rmtree(path, ignore_errors=True)
        for path in (bench.memory, bench.local):
            path.mkdir(mode=0o700)
        save = bench.rng.choice(("", "forked", "incremental", "incremental,forked", "compress=lz4"))
        bench.options = ["--save-options", save]
        bench.key = []
        if bench.rng.random() < 0.3:
            (bench.cwd / "key").unlink(missing_ok=True)
            bench.encrypt()
        levels = bench.rng.choice(("local 0.1s", "local 0.1s, files 0.4s", "memory 0.1s, local 0.2s", "memory 0.1s, local 0.3s, files 0.6s"))
        with bench.run(levels) as job:
            bench.localed(job)
            time.sleep(bench.rng.random() * 0.5)
            bench.kill_all(job)
            if job.process.returncode == 0:
                continue
        damaged = set()
        what = bench.rng.choice(("nothing", "memory", "local", "gone", "flip", "both"))
        if what in ("memory", "both"):
            shutil.rmtree(bench.memory)
            bench.memory.mkdir(mode=0o700)
        if what == "local":
            shutil.rmtree(bench.local)
            bench.local.mkdir(mode=0o700)
        images = [path for base in (bench.memory, bench.local) for path in sorted(base.glob("*/*/*/gen-*/rank-*.img"))]
        if what in ("gone", "flip", "both") and images:
            victim = bench.rng.choice(images)
            damaged.add(victim)
            whole = victim.stat().st_size > 4096  # else it was just begun
            levels_test.flip(victim, bench.rng) if whole and what != "gone" else victim.unlink()
        best = newest_to_be_had(bench, damaged)
        newest = max((name for name, one in bench.listed().items() if one["state"] == "complete"), default="")
        case_ = f"moment {moment}: {levels}, {save}, {what}, newest {newest}, best {best}"
        with bench.restart() as job:
            code = job.end()
            said = job.errors()
            if code == 0:
                bench.ends_as_wanted(job.lines())
                from_ = (re.findall(r"going on from (gen-\d+)", said) or [newest])[-1]
                # What an increment needs may be what was lost.
                check(from_ >= best or "incremental" in save and damaged, f"{case_}: from {from_}: {said}")
                bench.nothing_left()
            else:
                check(code == 6 and (not best or "incremental" in save and damaged), f"{case_}: {code}: {said}")
            went[code] = went.get(code, 0) + 1
    return f"{count} moments; exit codes of restarts {went}"


class NodesBench(buddies_test.Bench):
    def __init__(self, cwd, cluster, mpi, rng):
        super().__init__(cwd, cluster, mpi, rng)
        self.local = cwd / "local"
        self.local.mkdir(mode=0o700)

    def run(self, levels, *extra, nodes=(0, 1, 2)):
        return super().run(levels, "--local-dir", self.local, *extra, nodes=nodes)

    def restart(self, *extra, nodes=(0, 1, 2)):
        return super().restart("--local-dir", self.local, *extra, nodes=nodes)

    def wipe_local(self, name):
        for path in self.local.glob(f"*/*/{name}"):
            shutil.rmtree(path)

    def nothing_left(self):
        super().nothing_left()
        check(not list(self.local.glob("*/*")), f"left: {list(self.local.rglob('*'))[:5]}")


def mixed(bench):
    """Each node lost something else: one rank from local, one from memory, one from its buddy's memory."""
    bench.env["STEADY_PAUSE"] = "20000"
    with bench.run("memory 3s, local 3s, buddy") as job:
        memory = {}

        def everywhere():
            done = job.ask("status", "--json")
            memory.update(json.loads(done.stdout).get("memory", {}) if done.returncode == 0 else {})
            return memory.get("local") and memory["local"] == memory.get("buddied") == memory.get("memory")
        job.wait_until(everywhere, "a generation everywhere")
        known = memory["local"]
        bench.kill_all(job)
    lost, _ = list(memory["buddies"].items())[bench.rng.randrange(3)]
    keeps = memory["buddies"][lost]
    third = next(name for name in buddies_test.NAMES if name not in (lost, keeps))
    by_name = {node.name: node for node in bench.cluster.nodes}
    bench.wipe(by_name[lost], by_name[third])
    bench.wipe_local(lost)
    bench.wipe_local(keeps)
    with bench.restart() as job:
        buddies_test.running(job)
        check(job.status()["restored"] == known, job.errors())
        for words in (f"from the local directory of {third}", f"from the memory of {keeps}, its buddy"):
            check(words in job.errors(), f"{words}: {job.errors()}")
        bench.end(job)
    bench.nothing_left()


def nodes_reboot(bench):
    """All nodes lose their memory, with the job: local alone, on whichever nodes the ranks come to."""
    with bench.run("local 0.2s") as job:
        known = bench.buddied(job, level="local")
        bench.kill_all(job)
    bench.wipe(*bench.cluster.nodes)
    with bench.restart() as job:
        buddies_test.running(job)
        check(job.status()["restored"] >= known and "lost:" not in job.errors(), job.errors())
        bench.end(job)
    bench.nothing_left()


ONE = {f.__name__: f for f in (alone, memory_lost, byte_flips, byte_flips_alone, full, left_over, stopped, refused, moments)}
NODES = {f.__name__: f for f in (mixed, nodes_reboot)}


def case(name, mpi, *rest):
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", help="of moments")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--save-options", default="")
    parser.add_argument("--encrypt", action="store_true")
    given = parser.parse_args(rest)
    with Scratch(f"local-{name}") as cwd, levels_test.own_memory() as memory:
        if name in NODES:
            with nodes_test.Cluster(cwd, len(buddies_test.NAMES)) as cluster:
                said = NODES[name](NodesBench(cwd, cluster, mpi, random.Random(given.seed)))
        else:
            bench = Bench(cwd, pathlib.Path(memory), mpi, given.seed, given.save_options)
            if given.encrypt:
                bench.encrypt()
            said = ONE[name](bench, *([given.count] if name == "moments" and given.count else []))
    return f"seed {given.seed}" + (f"; {said}" if said else "")


if __name__ == "__main__":
    raise SystemExit(harness.main(case, {**ONE, **NODES}))
