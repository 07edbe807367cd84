#!/usr/bin/env python3
"""How images are written: compressed, past the page cache, by a forked child; and what becomes of the job when the
child dies.

    store_test.py CASE
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import harness
from harness import FERMATA, PROGRAMS, Job, Scratch, call, check, go, resting

MIX = [PROGRAMS / "mix.openmpi", "80", "500"]
# With 24 MiB a rank and a slow codec on one thread the writer needs seconds: time enough to meet it at work.
LONG = [PROGRAMS / "mix.openmpi", "1000000", "4000", "24"]
SLOW = "forked threads=1 compress=zstd:12"


def children_of(pid):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(words[1]) == pid and words[0] != "Z":
                found.append(int(entry.name))
    return found


def writers(job, count, timeout=harness.PATIENCE):
    """The forked writers of `count` ranks, once they are there."""
    ranks = job.rank_pids()
    deadline = time.monotonic() + timeout
    while True:
        found = [child for rank in ranks for child in children_of(rank)]
        if len(found) >= count:
            return found
        check(time.monotonic() < deadline, "no forked writer was seen")
        time.sleep(0.002)


def asked(job):
    return subprocess.Popen([str(FERMATA), "checkpoint", "--job", job.name, "--json"], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def answer(client):
    out, err = client.communicate(timeout=harness.PATIENCE)
    return client.returncode, out, err


def advances(job, lines=2):
    before = len(job.lines())
    job.wait_until(lambda: len(job.lines()) >= before + lines, "the job to go on")


def ways(cwd):
    """Every way to write gives a generation from which both libraries continue, and `verify` agrees."""
    reference = harness.native(MIX, 2, "openmpi", cwd)
    for i, options in enumerate(("compress=shuffle-lz4 io=buffered threads=2", "compress=zstd:3 forked")):
        ckpt = f"ckpt{i}"
        with Job.run(MIX, 2, cwd, ckpt=ckpt, extra=["--save-options", options], env=resting(cwd)) as job:
            job.wait_until(lambda: len(job.lines()) >= 5, "five lines")
            first = job.checkpoint()
            job.kill_ranks()
        done = call("verify", "--ckpt-dir", ckpt, cwd=cwd)
        check(done.returncode == 0, f"{options}: verify: {done.stderr}")
        image = json.loads(call("inspect", "--json", "--ckpt-dir", ckpt, cwd=cwd).stdout)["images"][0]
        codecs = set(image["blocks"]) - {"none"}
        check(codecs == ({options.split()[0].split("=")[1].split(":")[0]} if "compress" in options else set()),
              f"{options}: blocks {image['blocks']}")
        check(image["content"] > 1 << 20 and first["bytes"] > 0, f"{options}: {image}")
        go(cwd)
        with Job.restart(cwd, ckpt=ckpt, mpi=("openmpi", "mpich")[i % 2]) as job:
            lines = job.finish()
            check(lines and lines == reference[-len(lines):], f"{options}: wrong after restart: {lines[-2:]}")
        (cwd / "go").unlink()


def only_images(writer):
    """Does it hold nothing of the program's?"""
    folder = f"/proc/{writer}/fd"
    try:
        held = [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)]
    except FileNotFoundError:
        return False  # one was just closed
    own = f"/proc/{writer}/pagemap"  # while it looks for mutexes
    return all(name.endswith(".img") or name == own for name in held)


def forked_goes_on(cwd):
    """The program goes on while its image is written; a child is not seen by it and holds none of its descriptors."""
    with Job.run(LONG, 2, cwd, extra=["--save-options", SLOW]) as job:
        job.wait_until(lambda: len(job.lines()) >= 3, "three lines")
        client = asked(job)
        for child in writers(job, 2):
            # As soon as it runs: a busy machine may not have let it begin.
            job.wait_until(lambda: only_images(child), f"the descriptors of writer {child} to be closed")
        advances(job, 5)
        check(client.poll() is None and not (cwd / "ckpt" / "gen-000001" / "manifest.json").exists(),
              "committed before it was written")
        code, out, err = answer(client)
        check(code == 0, err)
        phases = json.loads(out)["phases"]
        check(phases["suspend"] + phases["resume"] < phases["save"], f"the job stood still: {phases}")
        before = job.lines()
        job.kill_ranks()
    with Job.restart(cwd) as job:
        job.wait_until(lambda: len(job.lines()) >= 40, "forty lines")
        after = job.lines()
    check(after[0] in before, f"a restart from another moment: {after[0]}")
    at = before.index(after[0])
    both = min(len(before) - at, len(after))
    check(before[at:at + both] == after[:both], "wrong after restart")


def held_mutexes(cwd):
    """Mutexes that know their owner by its id: found by whoever writes the image, by the child, too, and told the new ids."""
    program = [PROGRAMS / "mutex.openmpi", "400"]
    for options in ("", "forked", "forked incremental"):
        ckpt = f"ckpt-{options.replace(' ', '-')}"
        with Job.run(program, 2, cwd, ckpt=ckpt, extra=["--save-options", options]) as job:
            for lines in (3, 9):  # two: the second increment is where the first search has been
                job.wait_until(lambda: len(job.lines()) >= lines, "lines")
                job.checkpoint()
            job.kill_ranks()
        with Job.restart(cwd, ckpt=ckpt) as job:
            lines = job.finish()
        check(lines and lines[-1] == "step 399", f"{options}: {lines[-1:]}")
        wrong = [line for line in lines if "wrong" in line]
        check(not wrong, f"{options}: {wrong[:1]}")


def forked_child_dies(cwd):
    """One writer is killed: that generation fails in one line, the one before stays, the job goes on and can be
    checkpointed again."""
    with Job.run(LONG, 2, cwd, extra=["--save-options", SLOW]) as job:
        job.wait_until(lambda: len(job.lines()) >= 3, "three lines")
        job.checkpoint()
        client = asked(job)
        victim = writers(job, 1)[0]
        os.kill(victim, signal.SIGKILL)
        code, out, err = answer(client)
        lines = err.strip().splitlines()
        check(code not in (0, 85) and len(lines) == 1 and "signal 9" in lines[0], f"{code}: {out}{err}")
        print("  ", lines[0])
        check([entry.name for entry in sorted((cwd / "ckpt").glob("gen-*"))] == ["gen-000001"], "something is left")
        deadline = time.monotonic() + 20
        while left := [child for rank in job.rank_pids() for child in children_of(rank)]:
            check(time.monotonic() < deadline, f"writers are left: {left}")
            time.sleep(0.01)
        advances(job)
        job.checkpoint()
        job.kill_ranks()
    with Job.restart(cwd) as job:
        advances(job, 5)


def rank_dies_while_forked(cwd):
    """A rank dies while its child writes: no success, the child dies with it, the generation before stays."""
    with Job.run(LONG, 2, cwd, extra=["--save-options", SLOW]) as job:
        job.wait_until(lambda: len(job.lines()) >= 3, "three lines")
        job.checkpoint()
        client = asked(job)
        children = writers(job, 2)
        os.kill(job.rank_pids()[1], signal.SIGKILL)
        code, out, _ = answer(client)
        check(code not in (0, 85), f"called good: {out}")
        check(job.end() != 0, "a job with a killed rank ended with success")
        deadline = time.monotonic() + 20
        while any(os.path.exists(f"/proc/{child}/fd") and os.path.exists(f"/proc/{child}/exe") for child in children):
            check(time.monotonic() < deadline, "a writer outlives its job")
            time.sleep(0.01)
    with Job.restart(cwd) as job:
        advances(job, 5)


def busy(cwd):
    """A second request while one is being written: refused when asked for, else it waits."""
    for options, refused in ((SLOW + " busy=refuse", True), (SLOW, False)):
        ckpt = f"ckpt-{refused}"
        with Job.run(LONG, 2, cwd, ckpt=ckpt, extra=["--save-options", options]) as job:
            job.wait_until(lambda: len(job.lines()) >= 3, "three lines")
            first = asked(job)
            writers(job, 2)
            second = asked(job)
            code, out, err = answer(second)
            check((code == 3) == refused and (code == 0) != refused, f"{options}: {code} {out}{err}")
            code, out, err = answer(first)
            check(code == 0, f"{options}: {err}")


def incremental(cwd, word="incremental"):
    """Generations that refer to earlier ones: much smaller, kept as long as they are needed, each restarts right; after
    a restart and after a failed checkpoint the next one is right, too."""
    program = [PROGRAMS / "mix.openmpi", "150", "300", "24"]
    reference = harness.native(program, 2, "openmpi", cwd)
    with Job.run(program, 2, cwd, extra=["--save-options", f"{word} chain=3", "--keep", "2"], env=resting(cwd)) as job:
        sizes, taken = [], []
        for i in range(5):
            job.wait_until(lambda: len(job.lines()) >= 3 * i + 3, "lines")
            said = job.checkpoint()
            sizes.append(said["bytes"])
            taken.append(said["generation"])
        job.kill_ranks()
    print("  ", sizes)
    # full, two increments, full, one increment
    check(all(20 * sizes[i] < sizes[0] * 4 for i in (1, 2, 4)) and sizes[3] > sizes[0] // 2, f"sizes {sizes}")
    kept = sorted(path.name for path in (cwd / "ckpt").glob("gen-*"))
    check(kept == ["gen-000004", "gen-000005"], f"kept {kept}")
    check(call("verify", "--ckpt-dir", "ckpt", cwd=cwd).returncode == 0, "verify")
    with Job.restart(cwd, mpi="mpich", extra=["--save-options", word]) as job:
        job.wait_until(lambda: len(job.lines()) >= 3, "lines")
        job.checkpoint()
        job.checkpoint()
        job.kill_ranks()
    go(cwd)
    with Job.restart(cwd) as job:
        lines = job.finish()
    check(lines and lines == reference[-len(lines):], f"wrong after restart: {lines[-2:]}")


def incremental_hashes(cwd):
    """The same where the kernel does not tell who wrote what; with huge pages, encrypted, compressed and forked, too."""
    incremental(cwd, "incremental=hashes")
    shutil.rmtree(cwd / "ckpt")
    (cwd / "go").unlink()
    program = [PROGRAMS / "mix.openmpi", "80", "300", "12"]
    reference = harness.native(program, 2, "openmpi", cwd)
    with open(os.open(cwd / "key", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(os.urandom(32).hex())
    environment = resting(cwd, dict(os.environ, FERMATA_ENCRYPT_KEY=str(cwd / "key")))
    words = ["--save-options", "incremental=hashes forked compress=shuffle-lz4"]
    with Job.run(program, 2, cwd, extra=words, env=environment) as job:
        sizes = []
        for _ in range(3):
            job.wait_until(lambda: len(job.lines()) >= 3, "lines")
            sizes.append(job.checkpoint()["bytes"])
        job.kill_ranks()
    check(all(3 * size < sizes[0] for size in sizes[1:]), f"{sizes}")
    go(cwd)
    for extra in ((), ("--mapped",)):
        with Job.restart(cwd, extra=extra, env=environment) as job:
            lines = job.finish()
        check(lines and lines == reference[-len(lines):], f"wrong after restart: {lines[-2:]}")


def mapped(cwd):
    """A restart that reads memory as it is touched: right with both libraries; a checkpoint that comes at once waits for
    the memory and is whole; increments follow; the image may be gone by then."""
    program = [PROGRAMS / "mix.openmpi", "80", "500", "24"]
    reference = harness.native(program, 2, "openmpi", cwd)
    with Job.run(program, 2, cwd, extra=["--save-options", "compress=shuffle-lz4"], env=resting(cwd)) as job:
        job.wait_until(lambda: len(job.lines()) >= 5, "five lines")
        job.checkpoint()
        job.kill_ranks()
    with Job.restart(cwd, mpi="mpich", extra=["--mapped", "--save-options", "incremental", "--keep", "1"]) as job:
        job.wait_until(lambda: call("status", "--job", job.name).returncode == 0, "the job")
        job.checkpoint()
        job.wait_until(lambda: len(job.lines()) >= 3, "lines")
        job.checkpoint()
        harness.check_mapped(job)
        job.kill_ranks()
    go(cwd)
    check(call("verify", "--ckpt-dir", "ckpt", cwd=cwd).returncode == 0, "verify")
    with Job.restart(cwd, extra=["--mapped"]) as job:
        lines = job.finish()
    check(lines and lines == reference[-len(lines):], f"wrong after restart: {lines[-2:]}")


def mapped_damaged(cwd):
    """A block whose checksum is wrong is never used: the rank ends with one line that names file and offset."""
    with Job.run(LONG, 2, cwd, env=resting(cwd)) as job:
        job.wait_until(lambda: len(job.lines()) >= 3, "three lines")
        job.checkpoint("--stop")
        job.end()
    path = cwd / "ckpt" / "gen-000001" / "rank-000001.img"
    middle = path.stat().st_size // 2
    for at in range(middle, middle + (8 << 20), 1 << 20):  # some blocks of its large array
        flip(path, at)
    with Job.restart(cwd, extra=["--mapped"]) as job:
        code = job.end()
        said = [line for line in job.errors().splitlines() if "rank-000001.img is damaged: checksum" in line]
    check(code not in (0, 85) and len(said) == 1 and "offset" in said[0], f"{code}: {job.errors()}")
    print("  ", said[0])


def shared(cwd):
    """One file for all ranks, with every way to write: both libraries continue from it, mapped or not, also after it was
    compacted; damage to it is refused with file and offset."""
    program = [PROGRAMS / "mix.openmpi", "80", "500", "12"]
    reference = harness.native(program, 2, "openmpi", cwd)
    words = ["--layout", "shared", "--save-options", "forked incremental compress=shuffle-lz4"]
    with Job.run(program, 2, cwd, extra=words, env=resting(cwd)) as job:
        for _ in range(2):
            job.wait_until(lambda: len(job.lines()) >= 3, "lines")
            job.checkpoint()
        job.kill_ranks()
    last = cwd / "ckpt" / "gen-000002"
    check([path.name for path in sorted(last.glob("ra*"))] == ["ranks.img"], f"{sorted(last.iterdir())}")
    listed = json.loads(call("list", "--json", "--ckpt-dir", "ckpt", cwd=cwd).stdout)
    check([(one["layout"], one["kind"]) for one in listed] == [("shared", "full"), ("shared", "delta")], f"{listed}")
    # (By soft-dirty bits files' pages are not followed: the text of libraries, here 3.7 of 4.7 MB, is saved again.)
    soft_dirty = "followed by soft-dirty bits" in harness.doctor("incremental")["found"]
    check(listed[1]["bytes"] < listed[0]["bytes"] / (1 if soft_dirty else 4), f"{listed}")
    with Job.restart(cwd, mpi="mpich", extra=["--mapped", "--layout", "shared"]) as job:
        job.wait_until(lambda: len(job.lines()) >= 3, "lines")
        job.checkpoint("--stop")
        job.end()
    done = call("compact", "--generation", "2", "--ckpt-dir", "ckpt", cwd=cwd)
    check(done.returncode == 0, done.stderr)
    shutil.rmtree(cwd / "ckpt" / "gen-000001")
    texts = sum(path.stat().st_size for path in last.glob("text-*.img"))
    images = json.loads(call("inspect", "--json", "--generation", "2", "--ckpt-dir", "ckpt", cwd=cwd).stdout)["images"]
    check(texts > 1 << 20 and all(image["content"] - image["written"] >= texts for image in images), f"{texts}: {images}")
    listed = json.loads(call("list", "--json", "--ckpt-dir", "ckpt", cwd=cwd).stdout)[0]
    check(listed["bytes"] == texts + sum(image["bytes"] for image in images), f"{listed}: {texts}")
    done = call("verify", "--ckpt-dir", "ckpt", cwd=cwd)
    check(done.returncode == 0, done.stderr)
    go(cwd)
    for generation, mpi in (("2", "mpich"), ("3", "openmpi")):
        with Job.restart(cwd, mpi=mpi, extra=["--generation", generation]) as job:
            lines = job.finish()
        check(lines and lines == reference[-len(lines):], f"wrong after restart of {generation}: {lines[-2:]}")

    images = json.loads(call("inspect", "--json", "--ckpt-dir", "ckpt", cwd=cwd).stdout)["images"]
    path = cwd / "ckpt" / "gen-000003" / "ranks.img"
    at = images[1]["offset"] + images[1]["bytes"] // 2
    flip(path, at)
    done = call("verify", "--generation", "3", "--ckpt-dir", "ckpt", cwd=cwd)
    said = re.search(r"ranks.img is damaged: checksum of the (\d+) bytes at offset (\d+)", done.stderr)
    check(done.returncode == 6 and said, f"{done.returncode}: {done.stderr}")
    check(int(said[2]) <= at < int(said[2]) + int(said[1]), f"{at}: {done.stderr}")
    print("  ", done.stderr.strip())
    done = call("restart", "--ckpt-dir", "ckpt", "--generation", "latest", cwd=cwd)
    check(done.returncode not in (0, 85) and "ranks.img is damaged" in done.stderr, f"{done.returncode}: {done.stderr}")
    flip(path, 40)  # where the first part begins
    done = call("verify", "--generation", "3", "--ckpt-dir", "ckpt", cwd=cwd)
    check(done.returncode == 6 and "ranks.img is damaged: checksum of its table at offset 0" in done.stderr, done.stderr)
    flip(path, 40)
    os.truncate(path, images[1]["offset"] + 100)
    for command in ("verify", "restart"):
        done = call(command, "--ckpt-dir", "ckpt", "--generation", "3", cwd=cwd)
        check(done.returncode == 6 and "ranks.img" in done.stderr and "instead of" in done.stderr, done.stderr)


def files_of(generation):
    return sorted(path.name for path in generation.glob("ra*"))


def groups(cwd):
    """A file per node or per two ranks, encrypted, compressed, forked and with increments: both libraries continue from each,
    in another layout, mapped or not, also after it was compacted; what is not needed goes."""
    program = [PROGRAMS / "mix.openmpi", "200", "3000", "4"]
    reference = harness.native(program, 3, "openmpi", cwd)
    with open(os.open(cwd / "key", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(os.urandom(32).hex())
    env = dict(os.environ, FERMATA_ENCRYPT_KEY=str(cwd / "key"))
    words = ["--save-options", "forked incremental compress=shuffle-lz4", "--keep", "1"]
    folder = cwd / "ckpt"

    def two_more(job):
        for _ in range(2):
            seen = len(job.lines())
            job.wait_until(lambda: len(job.lines()) >= seen + 3, "lines")
            job.checkpoint()

    def listed(first):
        all = json.loads(call("list", "--json", "--ckpt-dir", "ckpt", cwd=cwd, env=env).stdout)
        # (By soft-dirty bits files' pages are not followed: see shared.)
        check([one["kind"] for one in all] == ["full", "delta"] and all[0]["generation"] == first, f"{all}")
        done = call("verify", "--ckpt-dir", "ckpt", cwd=cwd, env=env)
        check(done.returncode == 0, done.stderr)
        return [one["layout"] for one in all]

    with Job.run(program, 3, cwd, extra=[*words, "--layout", "group:2"], env=env) as job:
        two_more(job)
        job.kill_ranks()
    check(listed("gen-000001") == ["group:2"] * 2, "layouts")
    check(files_of(folder / "gen-000002") == ["ranks-000000.img", "ranks-000002.img"], files_of(folder / "gen-000002"))
    with Job.restart(cwd, mpi="mpich", extra=[*words, "--mapped", "--layout", "node"], env=env) as job:
        two_more(job)
        job.kill_ranks()
    check(listed("gen-000003") == ["node"] * 2 and files_of(folder / "gen-000004") == ["ranks-000000.img"], "a file per node")
    done = call("compact", "--ckpt-dir", "ckpt", "--keep", "1", cwd=cwd, env=env)
    check(done.returncode == 0, done.stderr)
    check([path.name for path in folder.glob("gen-*")] == ["gen-000004"], f"left: {list(folder.glob('gen-*'))}")
    with Job.restart(cwd, mpi="openmpi", extra=[*words, "--layout", "group:2"], env=env) as job:
        two_more(job)
        job.kill_ranks()
    done = call("compact", "--ckpt-dir", "ckpt", cwd=cwd, env=env)
    check(done.returncode == 0 and "stands alone" in done.stdout, done.stderr)
    shutil.rmtree(folder / "gen-000005")
    with Job.restart(cwd, mpi="mpich", extra=["--generation", "6"], env=env) as job:
        lines = job.finish()
    check(lines and lines == reference[-len(lines):], f"wrong after restart: {lines[-2:]}")


def groups_damaged(cwd):
    """A file of some ranks that is missing, cut, changed or another's: refused by verify and restart, with the ranks."""
    with Job.run([PROGRAMS / "mix.openmpi", "100000", "3000", "2"], 3, cwd, extra=["--layout", "group:2"]) as job:
        job.wait_until(lambda: len(job.lines()) >= 3, "lines")
        job.checkpoint()
        job.checkpoint("--stop")
        job.end()
    path, other = (cwd / "ckpt" / "gen-000002" / name for name in ("ranks-000000.img", "ranks-000002.img"))
    images = json.loads(call("inspect", "--json", "--ckpt-dir", "ckpt", cwd=cwd).stdout)["images"]
    check([image["file"] for image in images] == [path.name, path.name, other.name], f"{images}")

    def refused(*said):
        for command in ("verify", "restart"):
            done = call(command, "--ckpt-dir", "ckpt", "--generation", "2", cwd=cwd)
            check(done.returncode == 6 and all(word in done.stderr for word in said), f"{command}: {done.returncode}: {done.stderr}")
        print("  ", done.stderr.strip())

    path.rename(cwd / "aside")
    refused("ranks-000000.img", "images of ranks 0,1")
    os.link(cwd / "ckpt" / "gen-000001" / path.name, path)
    refused("ranks-000000.img", "images of ranks 0,1")
    path.unlink()
    (cwd / "aside").rename(path)
    at = images[1]["offset"] + images[1]["bytes"] // 2
    for place, said in ((at, ("checksum of the", "image of rank 1")), (40, ("checksum of its table", "images of ranks 0,1"))):
        flip(path, place)
        refused("ranks-000000.img is damaged", *said)
        flip(path, place)
    size = other.stat().st_size
    os.truncate(other, images[2]["offset"] + 100)
    refused("ranks-000002.img", "instead of", "images of rank 2")
    os.truncate(other, size)
    done = call("verify", "--generation", "1", "--ckpt-dir", "ckpt", cwd=cwd)
    check(done.returncode == 0, done.stderr)
    with Job.restart(cwd, extra=["--fallback"]) as job:
        advances(job, 3)
        check("gen-000001" in job.errors(), f"not the one before: {job.errors()}")


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def text(cwd):
    """Program text is in a generation once, not once per rank, also after a restart and with increments; a restart takes it
    from there, whatever has become of the file; damage to it is refused by name."""
    program = [cwd / "mix", "80", "500"]
    shutil.copy(MIX[0], program[0])
    reference = harness.native(program, 3, "openmpi", cwd)

    def texts(generation):
        return {path.name: path.stat().st_size for path in (cwd / "ckpt" / generation).glob("text-*.img")}

    def private(generation):
        return [path.stat().st_size for path in (cwd / "ckpt" / generation).glob("rank-*.img")]

    with Job.run(program, 3, cwd, env=resting(cwd)) as job:
        job.wait_until(lambda: len(job.lines()) >= 3, "lines")
        job.checkpoint()
        # The old text stays mapped; its file is gone, and later another one has its name.
        program[0].unlink()
        job.checkpoint("--stop")
        job.end()
    first = texts("gen-000001")
    print("  ", sum(first.values()), private("gen-000001"))
    check(first and sum(first.values()) > 1 << 20 and first == texts("gen-000002"), f"{first} {texts('gen-000002')}")
    image = json.loads(call("inspect", "--json", "--regions", "--ckpt-dir", "ckpt", cwd=cwd).stdout)["images"][0]
    libraries = sum(region["saved"] for region in image["region_list"] if region["access"] == "r-x")
    check(libraries > 1 << 20 and image["content"] - image["written"] >= libraries, f"{libraries}: {image['content']}")
    shutil.copy("/bin/true", program[0])
    with Job.restart(cwd, mpi="mpich", extra=["--save-options", "incremental"]) as job:
        job.wait_until(lambda: len(job.lines()) >= 3, "lines")
        job.checkpoint()
        job.checkpoint()
        job.kill_ranks()
    check(texts("gen-000003").keys() == first.keys(), f"after a restart: {texts('gen-000003')}")
    go(cwd)
    check(not texts("gen-000004"), f"an increment holds text: {texts('gen-000004')}")
    check(call("verify", "--ckpt-dir", "ckpt", cwd=cwd).returncode == 0, "verify")
    with Job.restart(cwd, extra=["--mapped"]) as job:
        lines = job.finish()
    check(lines and lines == reference[-len(lines):], f"wrong after restart: {lines[-2:]}")
    name = max(first, key=first.get)
    flip(cwd / "ckpt" / "gen-000003" / name, first[name] - 1)
    done = call("restart", "--ckpt-dir", "ckpt", "--generation", "latest", cwd=cwd)
    check(done.returncode == 6 or done.returncode == 1, f"{done.returncode}")
    check(f"{name} is damaged: checksum" in done.stderr and len(done.stderr.splitlines()) <= 2, done.stderr)
    (cwd / "ckpt" / "gen-000003" / name).unlink()
    done = call("restart", "--ckpt-dir", "ckpt", "--generation", "latest", cwd=cwd)
    check(done.returncode != 0 and name in done.stderr, done.stderr)


CASES = {function.__name__: function for function in (ways, forked_goes_on, held_mutexes, forked_child_dies, rank_dies_while_forked,
                                                      busy, incremental, incremental_hashes, mapped, mapped_damaged, shared, groups, groups_damaged, text)}


def run(name):
    with Scratch(name) as cwd:
        CASES[name](cwd)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
