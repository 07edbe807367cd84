#!/usr/bin/env python3
"""Encrypted images: nothing of the program is in a file, the key is in no image, the results are right, and whatever
does not fit is refused in one line.

    encryption_test.py CASE
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import harness
from harness import BUILD, PROGRAMS, Job, call, check, go, resting

import store_test

PROGRAM = [PROGRAMS / "mix.openmpi", "80", "500", "6"]
# In the environment of the program, so in its memory.
SECRET = "the-horses-of-the-sea-4711"
# Of every program, in the table of its mappings, in the environment.
EVERYWHERE = [b"libfermata-front.so", b"/libc.so.6", SECRET.encode()]
KEY = "--encrypt-key"


def make_key(path, digits=None):
    digits = digits or os.urandom(32).hex()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(digits + "\n")
    return digits


def contents(directory, rank, key=None):
    words = [BUILD / "bin" / "image_contents", directory, rank, *([key] if key else [])]
    done = subprocess.run([str(word) for word in words], capture_output=True, check=False)
    check(done.returncode == 0, f"image_contents: {done.stderr}")
    return done.stdout


def files(directory):
    return [path for path in directory.rglob("*.img")]


def nothing_in_files(directory, digits):
    found = files(directory)
    check(found, f"no files in {directory}")
    for path in found:
        data = path.read_bytes()
        for word in EVERYWHERE + [bytes.fromhex(digits), digits.encode()]:
            check(word not in data, f"{path} holds {word}")


def no_key_in_images(generation, ranks, key, digits):
    """All that an image would restore: the program's own, and nothing of the key."""
    for rank in range(ranks):
        data = contents(generation, rank, key)
        for word in EVERYWHERE:
            check(word in data, f"{generation}: {word} is not there: this test finds nothing")
        for word in (bytes.fromhex(digits), digits.encode()):
            check(word not in data, f"{generation}: the key is in the image of rank {rank}")


def refused(code, said, *arguments, cwd):
    done = call(*arguments, cwd=cwd)
    check(done.returncode == code and said in done.stderr and len(done.stderr.splitlines()) == 1,
          f"{arguments}: {done.returncode}, {done.stderr}")


def life(cwd, layout):
    """A job on encrypted images: by a forked child, increments, both libraries, mapped and not, compacted."""
    environment = resting(cwd, dict(os.environ, MIX_SECRET=SECRET))
    digits = make_key(cwd / "key")
    make_key(cwd / "other")
    reference = harness.native(PROGRAM, 2, "openmpi", cwd)
    with Job.run(PROGRAM, 2, cwd, ckpt="plain", env=environment) as job:
        job.wait_until(lambda: len(job.lines()) >= 3, "lines")
        job.checkpoint()
        job.kill_ranks()
    plain = b"".join(path.read_bytes() for path in files(cwd / "plain"))
    check(all(word in plain for word in EVERYWHERE), "this test finds nothing in plain images")

    words = ["--layout", layout, "--save-options", "forked incremental compress=shuffle-lz4", KEY, "key"]
    with Job.run(PROGRAM, 2, cwd, extra=words, env=environment) as job:
        for _ in range(2):
            job.wait_until(lambda: len(job.lines()) >= 3, "lines")
            job.checkpoint()
        job.kill_ranks()
    nothing_in_files(cwd / "ckpt", digits)
    no_key_in_images(cwd / "ckpt" / "gen-000002", 2, cwd / "key", digits)
    listed = json.loads(call("list", "--json", "--ckpt-dir", "ckpt", cwd=cwd).stdout)
    check([(one["encrypted"], one["kind"]) for one in listed] == [(True, "full"), (True, "delta")], f"{listed}")

    with Job.restart(cwd, mpi="mpich", extra=["--mapped", "--layout", layout, KEY, "key"]) as job:
        job.wait_until(lambda: len(job.lines()) >= 3, "lines")
        job.checkpoint("--stop")
        job.end()
        harness.check_mapped(job)
    nothing_in_files(cwd / "ckpt", digits)
    no_key_in_images(cwd / "ckpt" / "gen-000003", 2, cwd / "key", digits)

    done = call("compact", "--generation", "2", "--ckpt-dir", "ckpt", KEY, "key", cwd=cwd)
    check(done.returncode == 0, done.stderr)
    shutil.rmtree(cwd / "ckpt" / "gen-000001")
    nothing_in_files(cwd / "ckpt", digits)
    environment = dict(os.environ, FERMATA_ENCRYPT_KEY="key")
    done = call("verify", "--ckpt-dir", "ckpt", cwd=cwd, env=environment)
    check(done.returncode == 0, done.stderr)
    done = call("inspect", "--ckpt-dir", "ckpt", cwd=cwd, env=environment)
    check(done.returncode == 0 and "descriptor" in done.stdout, done.stderr)
    go(cwd)
    for generation, mpi, extra in (("2", "mpich", ()), ("3", "openmpi", ("--mapped",))):
        with Job.restart(cwd, mpi=mpi, extra=["--generation", generation, *extra], env=environment) as job:
            lines = job.finish()
        check(lines and lines == reference[-len(lines):], f"wrong after restart of {generation}: {lines[-2:]}")

    for command, *more in (("restart", "--generation", "latest"), ("verify",), ("inspect",), ("compact",)):
        refused(1, "gen-000003 is encrypted: name its key" if command != "verify" else "is encrypted: name its key",
                command, *more, "--ckpt-dir", "ckpt", cwd=cwd)
        refused(1, "is encrypted with another key", command, *more, "--ckpt-dir", "ckpt", KEY, "other", cwd=cwd)
        refused(1, "is not encrypted: leave out the key", command, *more, "--ckpt-dir", "plain", KEY, "key", cwd=cwd)
        refused(1, "the key file nothing cannot be opened", command, *more, "--ckpt-dir", "ckpt", KEY, "nothing", cwd=cwd)
    refused(1, "another key", "restart", "--generation", "latest", "--fallback", "--ckpt-dir", "ckpt", KEY, "other", cwd=cwd)
    (cwd / "key").chmod(0o644)
    refused(1, "chmod 600", "restart", "--ckpt-dir", "ckpt", KEY, "key", cwd=cwd)
    refused(1, "chmod 600", "run", KEY, "key", "--", "/bin/true", cwd=cwd)


def files_of_ranks(cwd):
    life(cwd, "files")


def file_of_all(cwd):
    life(cwd, "shared")


def exchanged(cwd):
    """Whoever may write to the directory, but has no key: images and manifests of another rank or generation, changed
    bytes. (Manifests with right checksums: store_test.)"""
    make_key(cwd / "key")
    with Job.run(PROGRAM, 2, cwd, extra=[KEY, "key"], env=resting(cwd)) as job:
        for _ in range(2):
            job.wait_until(lambda: len(job.lines()) >= 3, "lines")
            job.checkpoint()
        job.kill_ranks()
    good, bad = cwd / "ckpt", cwd / "bad"

    def judge(change, said):
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(good, bad)
        change(bad / "gen-000002")
        for command, more in (("verify", ()), ("restart", ()), ("restart", ("--mapped",))):
            done = call(command, "--ckpt-dir", "bad", KEY, "key", "--generation", "2", *more, cwd=cwd)
            check(done.returncode not in (0, 85) and said in done.stderr, f"{command}: {done.returncode} {done.stderr}")
        print("  ", done.stderr.splitlines()[-1])

    def other_rank(generation):
        shutil.copy(generation / "rank-000000.img", generation / "rank-000001.img")

    def rolled_back(generation):
        shutil.copy(generation.parent / "gen-000001" / "rank-000001.img", generation / "rank-000001.img")

    def whole_rolled_back(generation):
        shutil.rmtree(generation)
        shutil.copytree(generation.parent / "gen-000001", generation)

    def manifest_of_the_earlier(generation):
        shutil.copy(generation.parent / "gen-000001" / "manifest.json", generation / "manifest.json")

    def flipped(generation):
        path = generation / "rank-000001.img"
        store_test.flip(path, path.stat().st_size // 2)

    def text(generation):
        path = max(generation.glob("text-*.img"), key=lambda one: one.stat().st_size)
        store_test.flip(path, path.stat().st_size // 3)

    judge(other_rank, "rank-000001.img")
    judge(rolled_back, "rank-000001.img")
    judge(whole_rolled_back, "is of generation 1")
    judge(manifest_of_the_earlier, "is of generation 1")
    judge(flipped, "not what was encrypted")
    judge(text, "not what was encrypted")
    check(call("verify", "--ckpt-dir", "ckpt", KEY, "key", cwd=cwd).returncode == 0, "the original")


CASES = {function.__name__: function for function in (files_of_ranks, file_of_all, exchanged)}


def run(name):
    with harness.Scratch(name) as cwd:
        CASES[name](pathlib.Path(cwd))


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
