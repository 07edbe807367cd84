#!/usr/bin/env python3
"""Files of a program that is killed some time after its checkpoint and continued: as an undisturbed run leaves them.

    files_test.py CASE openmpi|mpich [--seed N]

killed: checkpointed three times at random moments of files.c, killed at one, continued on the other library; what the ranks wrote
after the checkpoint is kept beside. memory: in /dev/shm. off: the same with --files off finds what it should not (the program checks it).
moved: copied and moved folders, with and without --map. tmpdir: the first one is gone. compacted: an increment that was made to
stand alone. encrypted: said, not kept. damaged: a copy that was changed is found by verify, and refused at a restart.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

import harness
from harness import PROGRAMS, Job, Scratch, call, check

STEPS, PAUSE = 150, 30  # ms: a checkpoint that is asked for at step 95 comes before the last one
OTHER = {"openmpi": "mpich", "mpich": "openmpi"}


def contents(directory):
    """Of the program's files; links by what they point to."""
    found = {}
    for path in sorted(directory.iterdir()):
        if path.is_symlink():
            found[path.name] = os.readlink(path)
        elif path.is_file() and ".after-gen-" not in path.name and ".end-after-gen-" not in path.name:
            found[path.name] = path.read_bytes()
    return found


def place(cwd, name):
    (cwd / name).mkdir()
    return cwd / name


class Run:
    """One run of files.c in a folder of its own; output and checkpoints are beside it."""

    def __init__(self, cwd, mpi, rng):
        self.cwd, self.mpi, self.rng = cwd, mpi, rng
        self.folder = place(cwd, f"job-{mpi}")

    def start(self, *extra, env=None):
        job = Job(["run", "-n", 2, "--mpi", self.mpi, "--ckpt-dir", self.cwd / "ckpt", *extra, "--",
                   PROGRAMS / f"files.{self.mpi}", STEPS, PAUSE], self.folder, env=env)
        return self.elsewhere(job)

    def elsewhere(self, job):
        """Its output is not among the program's files."""
        for name in ("out_path", "err_path"):
            path = getattr(job, name)
            setattr(job, name, path.rename(self.cwd / path.name))
        return job

    def restart(self, mpi, *extra):
        return self.elsewhere(Job(["restart", "--ckpt-dir", self.cwd / "ckpt", "--mpi", mpi, *extra], self.folder))

    def reach(self, job, step):
        job.wait_line(f"step {step}")


def reference(cwd, mpi):
    folder = place(cwd, "native")
    harness.native([PROGRAMS / f"files.{mpi}", STEPS, 0], 2, mpi, folder)
    return contents(folder)


def memory(cwd, mpi, rng):
    """Files in /dev/shm, which are no devices."""
    with tempfile.TemporaryDirectory(prefix="fermata-files-", dir="/dev/shm") as folder:
        return killed(pathlib.Path(folder), mpi, rng)


def killed(cwd, mpi, rng):
    due = reference(cwd, mpi)
    run = Run(cwd, mpi, rng)
    with run.start() as job:
        run.reach(job, rng.randrange(1, 40))
        job.checkpoint()
        time.sleep(2.1)  # what is as old as this may be shared with the next generation
        run.reach(job, rng.randrange(45, 80))
        job.checkpoint()
        run.reach(job, rng.randrange(80, 95))
        job.checkpoint()
        run.reach(job, rng.randrange(95, 140))
        job.kill_ranks()
    check(call("verify", "--ckpt-dir", cwd / "ckpt").returncode == 0, "verify")
    said = json.loads(call("inspect", "--json", "--ckpt-dir", cwd / "ckpt").stdout)
    kept = [entry for image in said["images"] for entry in image["process"]["kept"]]
    names = [os.path.basename(entry["path"]) for entry in kept]
    check(len(names) == len(set(names)), f"a file is in the care of two ranks: {sorted(names)}")
    check({"all.log", "first.txt", "fortran.out", "latest", "mpi.dat", "open.log", "replaced.txt", "rotated.log",
           "table.db"} <= set(names), f"kept: {sorted(names)}")
    first = next(entry["name"] for entry in kept if entry["path"].endswith("/first.txt"))
    check((cwd / "ckpt" / "gen-000003" / "files" / first).stat().st_nlink >= 2, "an unchanged file was copied again")
    # Killed in the middle of it, and once more: the same again.
    for more in (PAUSE, 0):
        with run.restart(OTHER[mpi]) as job:
            if more:
                lines = rng.randrange(1, 20)
                job.wait_until(lambda: len(job.lines()) >= lines, f"{lines} steps")
                job.kill_ranks()
            else:
                job.finish()
            check("are as at gen-000003 again" in job.errors(), f"nothing said: {job.errors()}")
    got = contents(run.folder)
    different = [name for name in sorted(set(due) | set(got)) if due.get(name) != got.get(name)]
    check(not different, f"different from an undisturbed run: {different}; said: {job.errors()}")
    aside = [path.name for path in run.folder.iterdir() if "after-gen-000003" in path.name]
    check(any(name.startswith("all.log.end-after-") for name in aside) and
          any(name.startswith("table.db.after-") for name in aside), f"newer versions: {aside}")
    return f"{len(names)} files in care, {len(aside)} kept beside"


def off(cwd, mpi, rng):
    run = Run(cwd, mpi, rng)
    with run.start("--files", "off") as job:
        run.reach(job, rng.randrange(1, 40))
        job.checkpoint()
        run.reach(job, rng.randrange(60, 100))
        job.kill_ranks()
    check(not list((cwd / "ckpt" / "gen-000001").glob("files/*")) or
          all(path.stat().st_size == 0 for path in (cwd / "ckpt" / "gen-000001").glob("files/*")), "copies")
    with run.restart(mpi, "--files", "off") as job:
        code = job.end()
    check(code == 9, f"{code}: the program found nothing wrong in files that are newer than it")
    check("not true" in job.output(), job.output()[-1000:])


def encrypted(cwd, mpi, rng):
    key = cwd / "key"
    key.touch(0o600)
    key.write_text("".join(rng.choice("0123456789abcdef") for _ in range(64)))
    run = Run(cwd, mpi, rng)
    with run.start("--encrypt-key", key) as job:
        run.reach(job, 5)
        job.checkpoint("--stop")
        job.finish(expected=85)
        check("not kept with encrypted checkpoints" in job.errors(), job.errors())
    copies = [path for path in (cwd / "ckpt" / "gen-000001").glob("files/*") if path.stat().st_size]
    check(not copies, f"plain copies beside encrypted images: {copies}")


def compacted(cwd, mpi, rng):
    due = reference(cwd, mpi)
    run = Run(cwd, mpi, rng)
    with run.start("--save-options", "incremental") as job:
        for least in (1, 40):
            run.reach(job, rng.randrange(least, least + 40))
            job.checkpoint()
        run.reach(job, rng.randrange(90, 140))
        job.kill_ranks()
    for words in (["compact", "--keep", "1"], ["verify"]):
        done = call(*words, "--ckpt-dir", cwd / "ckpt")
        check(done.returncode == 0, f"{words}: {done.stderr}")
    check(not (cwd / "ckpt" / "gen-000001").exists(), "the first generation is still there")
    with run.restart(OTHER[mpi]) as job:
        job.finish()
    check(contents(run.folder) == due, f"{sorted(contents(run.folder))}; {job.errors()}")


def damaged(cwd, mpi, rng):
    run = Run(cwd, mpi, rng)
    with run.start() as job:
        run.reach(job, 20)
        job.checkpoint()
        run.reach(job, 60)
        job.kill_ranks()
    copies = [path for path in (cwd / "ckpt" / "gen-000001" / "files").iterdir() if path.stat().st_size]
    check(len(copies) >= 9, f"{copies}")
    before = contents(run.folder)
    for copy in copies:
        bytes_ = bytearray(copy.read_bytes())
        bytes_[rng.randrange(len(bytes_))] ^= 1
        copy.write_bytes(bytes_)
    done = call("verify", "--ckpt-dir", cwd / "ckpt")
    check(done.returncode != 0 and "/files/" in done.stderr, f"verify: {done.returncode} {done.stderr}")
    with run.restart(mpi) as job:
        check(job.end() != 0, "a restart with damaged copies went on")
    check("is damaged" in job.errors() and "cannot be put back" in job.errors(), job.errors())
    check(contents(run.folder)["table.db"] == before["table.db"], "a file was touched")


def moved(cwd, mpi, rng):
    due = reference(cwd, mpi)
    old, copy, gone = place(cwd, "project"), cwd / "copy", cwd / "moved"
    words = ["run", "-n", 2, "--mpi", mpi, "--", PROGRAMS / f"files.{mpi}", STEPS, PAUSE]
    run = Run(cwd, mpi, rng)
    with run.elsewhere(Job(words, old)) as job:
        run.reach(job, rng.randrange(20, 100))
        job.checkpoint("--stop")
        job.finish(expected=85)
    shutil.copytree(old, copy, symlinks=True)
    # Of several folders the innermost one that a path is in counts; one that nothing is in is said.
    mistaken = "/".join(["", *old.parts[1:-1], "projet"])
    with run.elsewhere(Job(["restart", "--map", f"{cwd}={cwd}/elsewhere", "--map", f"//{cwd}/./x/../{old.name}={copy}", "--map",
                            f"{mistaken}={gone}"], copy)) as job:
        job.finish()
        check("goes on in" not in job.errors(), job.errors())
        check(f"rank 0: --map {mistaken}={gone} changes nothing" in job.errors() and job.errors().count("changes nothing") == 1,
              job.errors())
    check(contents(copy) == due, f"the copy: {sorted(contents(copy))}; {job.errors()}")
    check(contents(old) != due, "the original was continued")
    with run.elsewhere(Job(["restart", "--generation", "latest"], copy)) as job:
        job.finish()
        check(f"goes on in {old}: --map {old}={copy} continues it here" in job.errors(), job.errors())
    check(contents(old) == due, f"the original: {sorted(contents(old))}; {job.errors()}")
    old.rename(gone)
    with run.elsewhere(Job(["restart"], gone)) as job:
        check(job.end() != 0 and f"--map {old}=" in job.errors(), job.errors())
    check(not old.exists(), "something was made where the project had been")
    with run.elsewhere(Job(["restart", "--map", f"{old}/={gone}/"], gone)) as job:
        job.finish()
    check(contents(gone) == due, f"the moved one: {sorted(contents(gone))}; {job.errors()}")


def tmpdir(cwd, mpi, rng):
    first = place(cwd, "tmp-first")
    run = Run(cwd, mpi, rng)
    with run.start(env=dict(os.environ, TMPDIR=str(first))) as job:
        run.reach(job, rng.randrange(1, 50))
        job.checkpoint("--stop")
        job.finish(expected=85)
    shutil.rmtree(first)
    with run.restart(mpi) as job:
        job.finish()
        check(f"{first}, was gone: it is there again" in job.errors(), job.errors())
    check(first.stat().st_mode & 0o777 == 0o700, f"{first.stat()}")


CASES = {"compacted": compacted, "moved": moved, "tmpdir": tmpdir, "killed": killed, "memory": memory, "off": off, "encrypted": encrypted, "damaged": damaged}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=CASES)
    parser.add_argument("mpi", choices=OTHER)
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    options = parser.parse_args()

    def run():
        with Scratch(f"files-{options.case}") as cwd:
            return CASES[options.case](cwd, options.mpi, random.Random(options.seed))

    return harness.verdict(f"files.{options.case}.{options.mpi} --seed {options.seed}", run)


if __name__ == "__main__":
    sys.exit(main())
