#!/usr/bin/env python3
"""Generations in the memory of nodes: kept there, copied to files, gone on from, and lost.

    levels_test.py CASE openmpi|mpich [--seed S] [--save-options WORDS]
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

import harness
import nodes_test
from harness import PROGRAMS, Failure, Job, Scratch, check

STEPS, MIB, RANKS = 300, 2, 2


def own_memory():
    """A directory in memory, for one test."""
    return tempfile.TemporaryDirectory(prefix="fermata-levels-", dir="/dev/shm", ignore_cleanup_errors=True)


class Bench:
    """A scratch directory with a memory of its own, which is one: images there are written over those before."""

    def __init__(self, cwd, memory, mpi, seed, options):
        self.cwd, self.mpi, self.rng = cwd, mpi, random.Random(seed)
        self.memory = memory
        self.options = ["--save-options", options] if options else []
        self.program = [PROGRAMS / f"steady.{mpi}", STEPS, MIB]
        self.wanted = harness.native(self.program, RANKS, mpi, cwd)
        self.env = dict(os.environ, STEADY_PAUSE="4000", FERMATA_MEMORY_DIR=str(self.memory))
        self.key = []

    def encrypt(self):
        (self.cwd / "key").write_text(self.rng.randbytes(32).hex() + "\n")
        (self.cwd / "key").chmod(0o600)
        self.key = ["--encrypt-key", "key"]

    def run(self, levels, *extra, on=()):
        return Job.run(self.program, RANKS, self.cwd, self.mpi, extra=["--levels", levels, *self.options, *self.key,
                                                                      *extra], env=self.env, on=on)

    def restart(self, *extra, generation=None):
        words = ["restart", "--ckpt-dir", "ckpt", *self.key, *extra]
        return Job(words + (["--generation", generation] if generation else []), self.cwd, env=self.env)

    def in_memory(self):
        return sorted(path.name for path in self.memory.glob("*/*/*/gen-*"))

    def nothing_left(self):
        check(not list(self.memory.glob("*/*")), f"left in memory: {list(self.memory.rglob('*'))[:5]}")

    def listed(self):
        done = harness.call("list", "--json", "--ckpt-dir", "ckpt", cwd=self.cwd, env=self.env)
        return {one["generation"]: one for one in json.loads(done.stdout)} if done.returncode == 0 else {}

    def committed(self, job, level, after=""):
        """Waits for a generation at this level; its name."""
        newest = []

        def there():
            newest[:] = [name for name, one in self.listed().items()
                         if one["state"] == "complete" and one["level"] == level and name > after]
            return newest
        job.wait_until(there, f"a generation in {level}")
        return newest[-1]

    def ends_as_wanted(self, lines):
        check(lines and lines == self.wanted[-len(lines):], f"{len(lines)} lines of {len(self.wanted)}: {lines[-3:]}")

    def kill_all(self, job):
        """The root, its launcher, ranks and daemons, as when a machine stops; memory stays."""
        pids = job.rank_pids() + job.daemon_pids() + [job.process.pid]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # the launcher was faster
        job.process.wait()
        end = time.monotonic() + 10
        while any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < end:
            time.sleep(0.02)


def rank_dies(bench):
    """Twice, at any moment: the job goes on from memory, ends as if nothing had been, and leaves nothing there."""
    with bench.run("memory 0.2s", "--max-restarts", 5) as job:
        for _ in range(2):
            newest = bench.committed(job, "memory")
            check(oct(bench.memory.glob("*/*/*").__next__().stat().st_mode & 0o777) == "0o700", "others may look")
            time.sleep(bench.rng.random() * 0.2)
            os.kill(bench.rng.choice(job.rank_pids()), signal.SIGKILL)
            job.wait_until(lambda: job.errors().count("restarting from") > _, "a restart")
            check("lost:" not in job.errors(), job.errors())
            job.wait_until(lambda: job.ask("status").returncode == 0 and job.status()["state"] == "running", "running")
            bench.committed(job, "memory", newest)
        lines = job.finish()
    bench.ends_as_wanted(lines[-20:])
    check(lines[-1] == bench.wanted[-1], f"{lines[-1]} for {bench.wanted[-1]}")
    bench.nothing_left()
    check(not [one for one in bench.listed().values() if one["level"] == "memory"], bench.listed())


def mapped(bench):
    """--mapped: the program goes on before all of its image has been read out of memory; the next generation is there, and
    the image removed, while it is still being read; then `fermata restart` by hand."""
    bench.program[2] = 64
    bench.env["STEADY_PAUSE"] = "6000"
    bench.wanted = harness.native(bench.program, RANKS, bench.mpi, bench.cwd)
    with bench.run("memory 0.3s", "--max-restarts", 5, "--mapped") as job:
        newest = bench.committed(job, "memory")
        os.kill(bench.rng.choice(job.rank_pids()), signal.SIGKILL)
        job.wait_until(lambda: "restarting from" in job.errors(), "a restart")
        bench.committed(job, "memory", bench.committed(job, "memory", newest))
        harness.check_mapped(job)
        bench.kill_all(job)
    newest = max(name for name, one in bench.listed().items() if one["state"] == "complete")
    with bench.restart("--mapped") as job:
        bench.ends_as_wanted(job.finish())
        check("lost" not in job.errors() and f"restarting from {newest}" in job.errors(), f"{newest}: {job.errors()}")
        harness.check_mapped(job)
    bench.nothing_left()


def used_again(bench):
    """Each image is written over the one before the last, pages and all, and what is gone on from is the newest, whole."""
    bench.program[2] = 24  # huge pages, too
    bench.env["STEADY_PAUSE"] = "20000"  # time for seven generations on a quiet machine
    bench.wanted = harness.native(bench.program, RANKS, bench.mpi, bench.cwd)
    with bench.run("memory 0.2s") as job:
        files, newest = {}, ""
        for _ in range(7):
            newest = bench.committed(job, "memory", newest)
            for path in bench.memory.glob(f"*/*/*/{newest}/rank-*.img"):
                files.setdefault(path.name, []).append(path.stat().st_ino)
        check(len(files) == RANKS and all(len(seen) >= 5 for seen in files.values()), f"images that were there to be looked at: {files}")
        check(all(len(set(seen)) <= 3 for seen in files.values()), f"new files for images: {files}")
        bench.kill_all(job)
    newest = max(name for name, one in bench.listed().items() if one["state"] == "complete")
    done = harness.call("verify", "--ckpt-dir", "ckpt", cwd=bench.cwd, env=bench.env)
    check(done.returncode == 0, f"{done.stdout}{done.stderr}")
    with bench.restart() as job:
        bench.ends_as_wanted(job.finish())
        check("lost" not in job.errors() and f"restarting from {newest}" in job.errors(), f"{newest}: {job.errors()}")
    bench.nothing_left()


def copied(bench):
    """Generations come to files while the job runs, are whole there, and are gone on from when memory is lost."""
    with bench.run("memory 0.1s, files 0.4s") as job:
        first = bench.committed(job, "files")
        bench.committed(job, "files", first)
        status = job.status()["memory"]
        check(status["memory"] and status["files"], status)
        bench.kill_all(job)
    done = harness.call("verify", "--ckpt-dir", "ckpt", *bench.key, cwd=bench.cwd, env=bench.env)
    check(done.returncode == 0, f"{done.stdout}{done.stderr}")
    for path in bench.memory.glob("*/*/*/gen-*/rank-000001.img"):
        path.unlink()
    listed = {name: one for name, one in bench.listed().items() if one["state"] == "complete"}
    lost = listed[max(listed)]["level"] == "memory"  # or its copy was done in time
    with bench.restart() as job:
        bench.ends_as_wanted(job.finish())
        check(("lost: gen-" in job.errors() and "in files" in job.errors()) == lost, job.errors())
    bench.nothing_left()


def root_dies(bench):
    """What is in memory only is gone on from by hand; the one that is asked for, or nothing."""
    with bench.run("memory 0.2s") as job:
        bench.committed(job, "memory", bench.committed(job, "memory"))
        bench.kill_all(job)
    newest = max(bench.listed())
    check(bench.listed()[newest]["level"] == "memory", bench.listed())
    done = harness.call("verify", "--ckpt-dir", "ckpt", *bench.key, cwd=bench.cwd, env=bench.env)
    check(done.returncode == 0 and "in the memory" in done.stdout, f"{done.stdout}{done.stderr}")
    done = harness.call("inspect", "--ckpt-dir", "ckpt", *bench.key, cwd=bench.cwd, env=bench.env)
    check(done.returncode == 0, f"{done.stdout}{done.stderr}")
    with bench.restart() as job:
        bench.ends_as_wanted(job.finish())
        check("lost" not in job.errors(), job.errors())
    bench.nothing_left()


def daemon_dies(bench):
    """The parent of the ranks, with nothing in files: the node is there, and so is what its memory holds."""
    with bench.run("memory 0.2s", "--launcher", "own") as job:
        known = bench.committed(job, "memory", bench.committed(job, "memory"))
        for pid in job.daemon_pids():
            os.kill(pid, signal.SIGKILL)
        check(job.end() not in (0, 85) and "goes on from there if it still is" in job.errors(), job.errors())
    check(max(bench.listed(), default="") >= known, bench.listed())
    with bench.restart() as job:
        bench.ends_as_wanted(job.finish())
        check("lost" not in job.errors(), job.errors())
    bench.nothing_left()


def left_over(bench):
    """In memory, of generations that files have, and nothing of that when the job that goes on comes to its end."""
    with bench.run("memory 0.1s, files 0.2s") as job:
        bench.committed(job, "files")
        bench.kill_all(job)
    check(bench.in_memory(), "nothing is in memory")
    for path in (bench.cwd / "ckpt").glob("gen-*/manifest.json"):
        if bench.listed().get(path.parent.name, {}).get("level") == "memory":
            shutil.rmtree(path.parent)
    with bench.restart() as job:
        bench.ends_as_wanted(job.finish())
    bench.nothing_left()


def byte_flips(bench):
    """A single one, in memory: found, and nothing else there: refused."""
    with bench.run("memory 0.2s") as job:
        bench.committed(job, "memory")
        bench.kill_all(job)
    newest = max(name for name, one in bench.listed().items() if one["state"] == "complete")
    image = bench.rng.choice(sorted(bench.memory.glob(f"*/*/*/{newest}/rank-*.img")))
    at = bench.rng.randrange(image.stat().st_size)
    with open(image, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << bench.rng.randrange(8)]))
    done = harness.call("verify", "--ckpt-dir", "ckpt", "--generation", newest[4:].lstrip("0"), *bench.key,
                        cwd=bench.cwd, env=bench.env)
    flagged = done.returncode == 6
    with bench.restart(generation=newest[4:].lstrip("0")) as job:
        code = job.end()
        # (Bytes between the parts of an image are nobody's.)
        check(code == (6 if flagged else 0), f"byte {at} of {image}: verify {done.returncode}, restart {code}: "
              f"{job.errors()}")
        check(not flagged or "nothing to restart from" in job.errors(), job.errors())
    check(flagged or at % 4096 != 0, "not seen")


def flip(path, rng):
    """A byte that matters to everybody: of the header or the index."""
    content = bytearray(path.read_bytes())
    at = rng.choice((rng.randrange(40), len(content) - 1 - rng.randrange(40)))
    content[at] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def compared(bench):
    """A byte that has flipped in memory while, or before, it is copied to files does not come there: that is said, nothing is left
    of the copy, and the next generation comes to files, whole."""
    bench.env["STEADY_PAUSE"] = "30000"
    with bench.run("memory 1s, files 1s", "--copy-limit", 4) as job:
        names = []

        def copying():
            done = job.ask("status", "--json")
            names[:] = [json.loads(done.stdout)["memory"].get("copying")] if done.returncode == 0 else []
            return any(names)
        job.wait_until(copying, "a copy to files")
        name = names[0]
        image = next(bench.memory.glob(f"*/*/*/{name}/rank-{RANKS - 1:06}.img"))  # the last that is copied
        with open(image, "r+b") as file:
            at = bench.rng.choice((bench.rng.randrange(40), image.stat().st_size // 2))
            byte = os.pread(file.fileno(), 1, at)[0]
            os.pwrite(file.fileno(), bytes([byte ^ 1 << bench.rng.randrange(8)]), at)
        job.wait_until(lambda: "could not be copied" in job.errors(), "a word of it")
        check(f"{name} could not be copied" in job.errors() and str(image) in job.errors(), job.errors())
        check(name not in bench.listed() or bench.listed()[name]["level"] == "memory", bench.listed())
        left = list((bench.cwd / "ckpt" / name).glob("*.img"))
        check(not left, f"left: {left}")
        known = bench.committed(job, "files", name)
        bench.kill_all(job)
    shutil.rmtree(bench.memory)
    done = harness.call("verify", "--ckpt-dir", "ckpt", "--generation", known[4:].lstrip("0"), *bench.key, cwd=bench.cwd, env=bench.env)
    check(done.returncode == 0, f"{done.stdout}{done.stderr}")


def in_both(bench):
    """A job that was killed when its newest generation was in memory and in files, and an older one in files: its directories."""
    bench.env["STEADY_PAUSE"] = "10000"
    for _ in range(5):
        with bench.run("memory 1.5s, files 1.5s") as job:
            nodes_test.steps(job, 2)
            job.checkpoint()  # to files
            older = bench.committed(job, "files")
            newest = bench.committed(job, "files", older)
            bench.kill_all(job)
        in_files = bench.cwd / "ckpt" / newest
        in_memory = next(bench.memory.glob(f"*/*/*/{newest}"), None)
        if in_memory and all((in_memory / f"rank-{rank:06}.img").exists() for rank in range(RANKS)):
            return in_files, in_memory, older  # else the machine was slow, and memory has the next one already
        shutil.rmtree(bench.cwd / "ckpt")
        shutil.rmtree(bench.memory)
        bench.memory.mkdir(mode=0o700)
    raise Failure("never in both")


def cut(path):
    os.truncate(path, path.stat().st_size * 2 // 3)


def broken(bench, breaks):
    """An image in files is broken: the one in memory is taken; without that the next older generation, and never a mix."""
    in_files, in_memory, older = in_both(bench)
    newest = in_files.name
    image = f"rank-{bench.rng.randrange(RANKS):06}.img"
    breaks(in_files / image)
    kept = bench.cwd / "kept"
    shutil.copytree(bench.cwd / "ckpt", kept)
    with bench.restart() as job:
        bench.ends_as_wanted(job.finish())
        check(f"{in_memory / image} is read instead" in job.errors() and "lost" not in job.errors(), job.errors())
    bench.nothing_left()
    shutil.rmtree(bench.cwd / "ckpt")
    kept.rename(bench.cwd / "ckpt")
    # The end of that one took the memory with it.
    with bench.restart("--levels", "memory 10s", generation=newest[4:].lstrip("0")) as job:
        code = job.end()
        said = [line for line in job.errors().splitlines() if line.startswith("fermata: error")]
        check(code == 6 and len(said) == 1 and "no node has another copy" in said[0] and image in said[0], job.errors())
    with bench.restart("--levels", "memory 10s") as job:
        bench.ends_as_wanted(job.finish())
        lost = f"lost: {newest}: {in_files / image}"
        check(lost in job.errors() and f"going on from {older}, in files" in job.errors(), job.errors())
    bench.nothing_left()


def cut_file(bench):
    """As broken()."""
    broken(bench, cut)


def missing_file(bench):
    """As broken()."""
    broken(bench, pathlib.Path.unlink)


def mended(bench):
    """What is damaged in files comes from memory and the other way round, by hand and at a restart; never from damage."""
    in_files, in_memory, _ = in_both(bench)
    newest = in_files.name
    words = ["--generation", newest[4:].lstrip("0"), "--ckpt-dir", "ckpt", *bench.key]
    call = lambda *more: harness.call("verify", *words, *more, cwd=bench.cwd, env=bench.env)
    check(call().returncode == 0, call().stderr)
    image = f"rank-{bench.rng.randrange(RANKS):06}.img"
    text = next(in_files.glob("text-*.img")).name
    for folder, source in ((in_files, "the memory of "), (in_memory, "files")):
        for name in (image, text):
            path = folder / name
            before = path.read_bytes()
            path.unlink() if folder is in_files and bench.rng.random() < 0.3 else flip(path, bench.rng)
            done = call()
            check(done.returncode == 6 and name in done.stderr and "verify --repair" in done.stderr, f"{done}")
            done = call("--repair")
            check(done.returncode == 0 and f"repaired: {path} from {source}" in done.stdout, f"{done}")
            check(path.read_bytes() == before, f"{path} is not what it was")
            check(not [one for one in folder.iterdir() if one.name.startswith(".coming")], "left")
    flip(in_files / image, bench.rng)
    with bench.restart(generation=newest[4:].lstrip("0")) as job:
        job.wait_until(lambda: "is read instead" in job.errors(), "the other copy")
        bench.kill_all(job)
    flip(in_memory / image, bench.rng)
    before = (in_files / image).read_bytes(), (in_memory / image).read_bytes()
    done = call("--repair")
    check(done.returncode == 6 and "no other copy of it is here" in done.stderr, f"{done}")
    check(before == ((in_files / image).read_bytes(), (in_memory / image).read_bytes()), "written to")
    with bench.restart(generation=newest[4:].lstrip("0")) as job:
        check(job.end() == 6 and image in job.errors(), job.errors())


def planned(bench):
    """auto: refused without --mtbf; else each level is measured, and the plan and its numbers are in status."""
    with bench.run("auto") as job:
        check(job.end() == 2 and "--mtbf" in job.errors(), job.errors())
    bench.env["STEADY_PAUSE"] = "20000"
    plan = {}

    def there():
        done = job.ask("status", "--json")
        plan.update(json.loads(done.stdout)["memory"].get("auto", {}) if done.returncode == 0 else {})
        return "levels" in plan
    with bench.run("auto", "--mtbf", "20s") as job:
        job.wait_until(there, "a plan")
        check([one["name"] for one in plan["levels"]] == ["memory", "files"] and "one node" in plan["no_buddies"], plan)
        check(all(one["cost"] > 0 and one["period"] > 0 for one in plan["levels"]) and 0 < plan["loss"], plan)
        check("planned" in job.ask("status").stdout, job.ask("status").stdout)
        bench.committed(job, "files")
        bench.ends_as_wanted(job.finish())
    bench.nothing_left()


def given_up(bench):
    """A job that nobody restarts: what is in memory comes to files before the job ends."""
    with bench.run("memory 0.1s", "--copy-limit", 1) as job:
        bench.committed(job, "memory")
        os.kill(job.rank_pids()[0], signal.SIGKILL)
        check(job.end() not in (0, 85), job.errors())
    bench.nothing_left()
    check([one["level"] for one in bench.listed().values() if one["state"] == "complete"] == ["files"], bench.listed())
    with bench.restart() as job:
        bench.ends_as_wanted(job.finish())


def stopped(bench):
    """SIGTERM: the last one is in files, and nothing stays in memory."""
    with bench.run("memory 0.1s") as job:
        bench.committed(job, "memory")
        job.process.send_signal(signal.SIGTERM)
        check(job.end() == 85, job.errors())
    bench.nothing_left()
    with bench.restart() as job:
        bench.ends_as_wanted(job.finish())


def no_memory(bench):
    """A node has less than the ranks: the generation goes to files, and this is said."""
    on = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
          f'mount -t tmpfs -o size=1m,mode=700 tmpfs {bench.memory} && exec "$@"', "sh"]
    with bench.run("memory 0.2s", on=on) as job:
        bench.committed(job, "files")
        check("goes to files, not to memory" in job.errors(), job.errors())
        job.finish()


def small_group(bench):
    """A control group without room for a second generation: it goes to files, and nobody is killed for it."""
    old = pathlib.Path("/sys/fs/cgroup/memory")
    group = (old if old.exists() else old.parent) / f"fermata-levels-{os.getpid()}"
    limit = group / ("memory.limit_in_bytes" if old.exists() else "memory.max")
    try:
        group.mkdir()
    except OSError as error:
        print(f"skipped: no control group can be made here: {error}")
        sys.exit(77)
    try:
        if not limit.exists():
            print("skipped: no memory controller here")
            sys.exit(77)
        bench.program[2] = 48
        bench.env["STEADY_PAUSE"] = "15000"
        bench.wanted = harness.native(bench.program, RANKS, bench.mpi, bench.cwd)
        with bench.run("memory 1.5s", on=["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]) as job:
            bench.committed(job, "memory")
            has = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            used = sum(int(has.get(name, 0)) for name in ("anon", "rss", "shmem"))
            limit.write_text(str(used + RANKS * (bench.program[2] << 20) // 2))
            bench.committed(job, "files")
            bench.ends_as_wanted(job.finish())
            check("goes to files, not to memory" in job.errors(), job.errors())
    finally:
        end = time.monotonic() + 10
        while group.exists() and time.monotonic() < end:
            try:
                group.rmdir()
            except OSError:
                time.sleep(0.05)


def left_behind(bench):
    """What a dead job has left goes at the next start, once nobody would go on from it."""
    with bench.run("memory 0.2s") as job:
        bench.committed(job, "memory")
        bench.kill_all(job)
    check(bench.in_memory(), "nothing was left")
    words = dict(extra=["--levels", "memory 10s"], env=bench.env, mpi=bench.mpi)
    short = [PROGRAMS / f"steady.{bench.mpi}", 3, 1]
    with Job.run(short, 1, bench.cwd, ckpt="other", **words) as job:
        job.finish()
    check(bench.in_memory(), "it went too early")
    (bench.cwd / "ckpt").rename(bench.cwd / "away")
    with Job.run(short, 1, bench.cwd, ckpt="other", **words) as job:
        job.finish()
    bench.nothing_left()


def moments(bench, count=2):
    """Something dies at any moment, and memory with it or not: never a wrong result, and never a job without one."""
    from_memory = from_files = 0
    for moment in range(count):
        for path in (bench.cwd / "ckpt", bench.memory):
            shutil.rmtree(path, ignore_errors=True)
        bench.memory.mkdir(mode=0o700)
        bench.options = ["--save-options", bench.rng.choice(("", "forked", "incremental", "incremental,forked", "compress=lz4"))]
        bench.key = []
        if bench.rng.random() < 0.3:
            (bench.cwd / "key").unlink(missing_ok=True)
            bench.encrypt()
        with bench.run("memory 0.1s, files 0.5s", "--max-restarts", 3, "--keep", bench.rng.randint(1, 3)) as job:
            first = bench.committed(job, bench.rng.choice(("memory", "files")))
            time.sleep(bench.rng.random() * 0.4)
            what = bench.rng.choice(("rank", "root", "all", "memory", "image"))
            if job.process.poll() is not None:
                what = "nothing"
            elif what == "rank":
                try:
                    os.kill(bench.rng.choice(job.rank_pids()), signal.SIGKILL)
                except (ProcessLookupError, Failure):
                    pass  # at its end
            elif what == "root":
                job.process.kill()
            else:
                bench.kill_all(job)
            code = job.end()
            lines = job.lines()
        if code == 0:
            check(lines[-1] == bench.wanted[-1], f"moment {moment}, {what}: {lines[-1]}")
            continue
        check(code in (-signal.SIGKILL, 137), f"moment {moment}, {what}: {code}: {job.errors()}")
        if what == "memory":
            shutil.rmtree(bench.memory)
            bench.memory.mkdir(mode=0o700)
        if what == "image":
            found = sorted(bench.memory.glob("*/*/*/gen-*/rank-*.img"))
            if found:
                bench.rng.choice(found).unlink()
        end = time.monotonic() + 20  # ranks of a dead root end by themselves
        while job.daemon_pids() and time.monotonic() < end:
            time.sleep(0.05)
        in_files = any(one["state"] == "complete" and one["level"] == "files" for one in bench.listed().values())
        with bench.restart() as job:
            code = job.end()
            lost = "lost: " in job.errors() or "nothing to restart from" in job.errors()
            if code == 0:
                bench.ends_as_wanted(job.lines())
                from_files += lost
                from_memory += not lost
            else:
                check(code == 6 and not in_files and what in ("memory", "image"),
                      f"moment {moment}, {what}, first {first}: {code}: {job.errors()}")
            check(not lost or what in ("memory", "image"), f"moment {moment}, {what}: {job.errors()}")
    return f"{count} moments; {from_memory} gone on from memory, {from_files} from files after a loss"


def node_dies(cwd, mpi, seed):
    """Of two nodes: its processes alone, then its memory as well. The memory of both, or files."""
    rng = random.Random(seed)
    with nodes_test.Cluster(cwd) as cluster:
        wanted = nodes_test.reference(mpi, 2, cwd)
        for lost in (False, True):
            shutil.rmtree(cwd / "ckpt", ignore_errors=True)
            listed = lambda: json.loads(harness.call("list", "--json", "--ckpt-dir", "ckpt", cwd=cwd).stdout or "[]")
            with cluster.start(mpi, 2, extra=["--levels", "memory 0.15s, files 0.6s", "--max-restarts", 2]) as job:
                for level in ("memory", "files"):
                    job.wait_until(lambda: any(one.get("level") == level for one in listed()), f"one in {level}")
                where = [one["nodes"] for one in listed() if one.get("level") == "memory"]
                check(not where or where[-1] == list(nodes_test.NAMES), where)
                time.sleep(rng.random() * 0.3)
                check(cluster.nodes[1].kill() > 0, "nothing was on the second node")
                if lost:
                    harness.subprocess.run([*cluster.nodes[1].on, "sh", "-c", "rm -rf /dev/shm/fermata-memory-*"])
                time.sleep(0.2)  # a copy to files that was nearly done
                newest = max((one for one in listed() if one.get("level")), key=lambda one: one["generation"])
                missed = lost and newest["level"] == "memory"
                lines = job.finish()
                check(lines[-1] == wanted[-1], f"lost {lost}: {lines[-1]} for {wanted[-1]}\n{job.errors()}")
                check(("lost: " in job.errors()) == missed, f"{newest}\n{job.errors()}")
                check("restarting from" in job.errors(), job.errors())
            for node in cluster.nodes:
                node.empty()
                left = harness.subprocess.run([*node.on, "sh", "-c", "ls -d /dev/shm/fermata-memory-*/*"],
                                              capture_output=True, text=True)
                check(not left.stdout, f"left on {node.name}: {left.stdout}")


CASES = {f.__name__: f for f in (rank_dies, mapped, used_again, copied, root_dies, daemon_dies, left_over, byte_flips, compared, cut_file, missing_file, mended, planned, given_up, stopped, no_memory, small_group, left_behind,
                                 moments)}
CASES["node_dies"] = None


def case(name, mpi, *rest):
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", help="of moments")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--save-options", default="")
    parser.add_argument("--encrypt", action="store_true")
    given = parser.parse_args(rest)
    with Scratch(f"levels-{name}") as cwd, own_memory() as memory:
        if name == "node_dies":
            node_dies(cwd, mpi, given.seed)
            return f"seed {given.seed}"
        bench = Bench(cwd, pathlib.Path(memory), mpi, given.seed, given.save_options)
        if given.encrypt:
            bench.encrypt()
        said = CASES[name](bench, *([given.count] if name == "moments" and given.count else []))
    return f"seed {given.seed}" + (f"; {said}" if said else "")


if __name__ == "__main__":
    raise SystemExit(harness.main(case, CASES))
