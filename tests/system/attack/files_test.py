#!/usr/bin/env python3
"""Files in places that others may reach: whose they are, what lies behind their names, what is removed.

    files_test.py CASE
    files_test.py exchanged RANKS plain|encrypted [RESTARTS]     1,000 by hand

An ordinary user is the victim, another one, or nobody, attacks. Needs root to be both.
"""
import contextlib
import ctypes
import json
import os
import pathlib

import resource
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import FERMATA, PROGRAMS, Job, check
from users import SOON, Users, forge, one_line, root_user, tree

CODE = ".code"  # in fermata-UID: what is known of libraries, not of jobs
SHORT = [PROGRAMS / "mix.openmpi", "20", "1000"]
WHENCE = [PROGRAMS / "whence.openmpi"]
# Goes on until it is ended.
LONG = [PROGRAMS / "mix.openmpi", "1000000", "1000"]


def running(user, *words, **more):
    """A job of the user's that goes on until it is ended."""
    job = user.run(LONG, *words, **more)
    job.wait_until(lambda: len(job.lines()) >= 3, "three lines")
    return job


def generations(user, count=1, ckpt="ckpt", extra=(), cwd=None):
    """A directory with so many generations of a job that was killed; the lines that it printed."""
    with running(user, ckpt=ckpt, extra=extra, cwd=cwd) as job:
        for _ in range(count):
            job.checkpoint()
        job.kill_ranks()
        return job.lines()


def goes_on(user, before, ckpt="ckpt", generation="latest", extra=(), cwd=None):
    """A restart prints what the killed job had printed, and more."""
    with user.restart(ckpt, generation, extra, cwd) as job:
        job.wait_until(lambda: len(job.lines()) >= 5, "the job to go on")
        after = job.lines()
        # The job may have been killed before it printed what came after its last checkpoint.
        step = lambda line: int(line.split()[1])
        check(after[0] in before or 0 < step(after[0]) - step(before[-1]) < 3, f"another job: {after[0]}, not one of {before}")
        both = before[before.index(after[0]):] if after[0] in before else []
        check(all(a == b for a, b in zip(both, after)), f"wrong after restart: {after[:5]}")
        return job.errors()


def whole(job):
    """It goes on, and a checkpoint of it is committed."""
    before = len(job.lines())
    job.wait_until(lambda: len(job.lines()) > before + 2, "the job to go on")
    return job.checkpoint()["generation"]


def unchanged(path, before):
    after = tree(path)
    check(after == before, f"changed in {path}: "
          f"{sorted(name for name in {*before, *after} if before.get(name) != after.get(name))}")


# ---- row 1: the run directory

def run_dir_of_others(victim, _):
    """FERMATA_RUN_DIR names a directory with other things in it: only fermata-UID in it is ours."""
    home = victim.home / "home"
    victim.shell("""mkdir -m 700 home; cd home; mkdir -p thesis/data .venv-311 .dead-1-1-1 .new-1-1-1 empty locked
        echo text > thesis/data/chapter; echo > locked/lock; echo > lock; ln -s thesis link
        touch -d '2 hours ago' .venv-311 .dead-1-1-1 .new-1-1-1 empty locked""")
    victim.run_dir = home
    before = tree(home)

    def others_are_unchanged():
        ours = f"fermata-{victim.uid}"
        after = {name: what for name, what in tree(home).items() if name.split("/")[0] != ours}
        check(after == before, f"touched: {sorted(n for n in {*before, *after} if before.get(n) != after.get(n))}")

    for words in (("status",), ("doctor",), ("cancel",), ("checkpoint",)):
        victim.call(*words)
        others_are_unchanged()
    with victim.run(SHORT) as job:
        job.finish()
    others_are_unchanged()
    with running(victim) as job:
        check(len(list(home.glob(f"fermata-{victim.uid}/*"))) >= 1, f"no run directory below {home}")
        job.checkpoint()
        job.kill_ranks()
    others_are_unchanged()


def run_dir_without_marker(victim, _):
    """In fermata-UID: what has no marker of ours stays; what a killed job left goes."""
    base = victim.home / "run" / f"fermata-{victim.uid}"
    victim.shell(f"""mkdir -m 700 run; mkdir -m 700 {base}; cd {base}; mkdir -p mine/data .venv-311 .dead-x .new-1-1-1/data
        echo text > mine/data/file; mkdir with-lock; echo text > with-lock/lock
        touch -d '2 hours ago' .venv-311 .dead-x .new-1-1-1 with-lock""")
    before = tree(base)
    with running(victim) as job:
        unchanged_but(base, before, job.name)
        os.kill(job.process.pid, signal.SIGKILL)  # setpriv and env have become it
        job.end()
    left = {name for name in os.listdir(base)} - {name.split("/")[0] for name in before} - {CODE}
    check(left, "a killed job left nothing: this test finds nothing")
    deadline = time.monotonic() + SOON
    while left & set(os.listdir(base)):  # daemons end what is left after 5 s
        check(time.monotonic() < deadline, f"not swept: {left & set(os.listdir(base))}")
        with victim.run(SHORT) as job:
            job.finish()
    shutil.rmtree(f"{base}/{CODE}")
    unchanged(base, before)
    victim.call("status")
    unchanged(base, before)


def unchanged_but(base, before, name):
    after = tree(base)
    check(all(after.get(one) == what for one, what in before.items()), f"changed in {base} while {name} runs")


def run_dir_of_a_user_for_root(victim, _):
    """Root with a user's FERMATA_RUN_DIR: works or says why not, and advises nobody to remove anything."""
    victim.shell("mkdir -m 700 run; mkdir run/thesis; echo text > run/thesis/file")
    before = tree(victim.run_dir)
    root = root_user(victim)
    root.run_dir = victim.run_dir
    with root.run(SHORT) as job:
        code = job.end()
        check(code == 0 or job.errors().count("fermata: error:") == 1, job.errors())
        check("remove" not in job.errors(), job.errors())
    after = tree(victim.run_dir)
    check(all(after.get(one) == what for one, what in before.items()), "changed in the user's directory")


# ---- row 3: a generation is one

# At any moment, and in bursts that begin soon after a restart does: SIGUSR1 tells when.
EXCHANGE = """
import ctypes, random, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
one, other, rng = sys.argv[1].encode(), sys.argv[2].encode(), random.Random(int(sys.argv[3]))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
while True:
    if rng.random() < 0.9:
        signal.sigtimedwait([signal.SIGUSR1], 1)
        time.sleep(rng.random() * 0.4)
    for _ in range(rng.randrange(1, 60)):
        for pause in (rng.random() * 0.02 ** rng.randrange(1, 3), rng.random() * 0.005):
            if libc.renameat2(-100, one, -100, other, 2) != 0:
                sys.exit("renameat2: %d" % ctypes.get_errno())
            time.sleep(pause)
"""


def phases(user, ranks, ckpt, first, last, key):
    """A generation per phase of the program, which knows its phase."""
    for end in user.home.glob("*-[0-9]*"):
        end.unlink()
    (user.home / "end").unlink(missing_ok=True)
    for phase in range(1, first):
        user.write(user.home / f"go-{phase}", "")
    with user.run(WHENCE, ranks, ckpt, extra=key) as job:
        for phase in range(1, last + 1):
            job.wait_until(lambda: all((user.home / f"at-{phase}-{rank}").exists() for rank in range(ranks)),
                           f"phase {phase}")
            if phase >= first:
                job.checkpoint()
                user.write(user.home / f"go-{phase}", "")
        job.kill_ranks()


def exchanged(victim, attacker, ranks="2", how="plain", restarts="10", seed="20261126"):
    """Two generations change places while restarts are at work: each continues one of them in all ranks, or is refused.

    Of one job, the numbers in the manifests say that something is wrong half of the time; of two jobs with the same number
    they never do."""
    ranks, restarts = int(ranks), int(restarts)
    key = []
    if how == "encrypted":
        victim.write(victim.home / "key", os.urandom(32).hex() + "\n").chmod(0o600)
        key = ["--encrypt-key", victim.home / "key"]
    phases(victim, ranks, "ckpt", 1, 2, key)
    phases(victim, ranks, "other", 3, 3, key)
    victim.write(victim.home / "end", "")
    seen = {}
    for one, other, generation in (("ckpt/gen-000001", "ckpt/gen-000002", "latest"),
                                   ("ckpt/gen-000001", "other/gen-000001", "1")):
        with victim.start(["python3", "-c", EXCHANGE, one, other, seed]) as loop:
            time.sleep(0.3)  # a signal that comes before it is blocked would end it
            try:
                for turn in range(restarts * 8):
                    if turn >= restarts and seen.keys() & {"1", "2", "3"}: break  # half are refused; on a busy machine more
                    with victim.restart("ckpt", generation, key) as job:
                        loop.send_signal(signal.SIGUSR1)
                        code = job.end()
                        check(loop.poll() is None, "nobody exchanges anything")
                        said = [line for line in job.lines() if line.startswith("whence")]
                        if code == 0:
                            check(len(said) == 1, f"says {job.output()}")
                            numbers = set(said[0].split()[1:])
                            check(len(said[0].split()) == ranks + 1 and len(numbers) == 1 and numbers <= {"1", "2", "3"},
                                  f"A MIXTURE of {generation}: {said[0]}; after {seen}")
                            outcome = numbers.pop()
                        else:
                            errors = [line for line in job.errors().splitlines() if "fermata: error:" in line]
                            # From the command, or from a rank that found another one than was chosen.
                            check(code == 6 and len(errors) == 1 and not said,
                                  f"exit status {code}, not 0 or 6: {job.errors()}\n{job.output()}; after {seen}")
                            outcome = "refused"
                            if os.environ.get("SHOW"): print(errors[0], flush=True)
                        seen[outcome] = seen.get(outcome, 0) + 1
            finally:
                loop.kill()
    check(seen.keys() & {"1", "2", "3"}, f"none went on: {seen}")
    return ", ".join(f"{name}: {count}" for name, count in sorted(seen.items()))


def foreign_image(victim, _):
    """An image of another job, rank, generation, number of ranks under the right name: verify says what restart says."""
    generations(victim, 2)
    number = victim.home / "ckpt" / "gen-000002"
    manifest = json.loads((number / "manifest.json").read_text().rsplit("xxh3-128", 1)[0])
    before = (number / "rank-000001.img").read_bytes()
    for field, value in (("job", 77), ("generation", 1), ("rank", 0), ("ranks", 3)):
        (number / "rank-000001.img").write_bytes(before)
        manifest["images"][1]["checksum"], = forge("header", number / "rank-000001.img", field, value)
        forge("manifest", number / "manifest.json", text=json.dumps(manifest) + "\n")
        os.chown(number / "manifest.json", victim.uid, victim.gid)
        print("  ", field, value, flush=True)
        one_line(victim.call("restart", "--ckpt-dir", "ckpt"), 6, "rank-000001.img")
        one_line(victim.call("verify", "--ckpt-dir", "ckpt", "--generation", "2"), 6, "rank-000001.img")


# ---- row 4: the lock

def lock_link(victim, attacker):
    """fermata-ckpt/.lock -> the victim's file: intact, and the run says what is wrong."""
    shared = victim.home.parent / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    precious = victim.write(victim.home / "precious", "years of work\n")
    for target in (precious, victim.home / "not-there-yet"):
        attacker.shell(f"rm -f {shared}/.lock; ln -s {target} {shared}/.lock")
        with victim.run(SHORT, ckpt=shared) as job:
            code = job.end()
            check(code == 1 and job.errors().count("fermata: error:") == 1 and ".lock" in job.errors(),
                  f"{code}: {job.errors()}")
        check(victim.call("compact", "--ckpt-dir", shared).returncode in (1, 6), "compact")
    check(precious.read_text() == "years of work\n", "overwritten")
    check(not (victim.home / "not-there-yet").exists(), "made through the link")
    attacker.shell(f"rm -f {shared}/.lock; mkfifo -m 666 {shared}/.lock")
    with victim.run(SHORT, ckpt=shared) as job:
        code = job.end(SOON)
        check(code == 1 and job.errors().count("fermata: error:") == 1 and ".lock" in job.errors(),
              f"a pipe: {code}: {job.errors()}")


# ---- row 8: what lies where the program's files were

def other_kinds(victim, attacker):
    """A pipe, a device, a directory where the program's open or mapped file was: refused at once; the user's link is followed."""
    project = victim.home.parent / "project"
    project.mkdir()
    project.chmod(0o777)
    victim.write(project / "opened", "opened one\n")
    victim.write(project / "mapped", "mapped" + "." * 4090)
    project.chmod(0o777)
    precious = victim.write(victim.home / "precious", "years of work\n" * 400)
    os.environ["HOLD_FILE"] = str(project / "go")
    with victim.run([PROGRAMS / "opened.openmpi"], cwd=project, ckpt=victim.home / "ckpt") as job:
        job.wait_line("READY")
        job.checkpoint("--stop")
        job.finish(expected=85)
    for name in ("opened", "mapped"):
        attacker.shell(f"mv {name} {name}.away", project)
        for made, word in (("mkfifo -m 666", "named pipe"), ("ln -s /dev/zero", "device"), ("mkdir -m 777", "directory"),
                           (f"ln -s {precious}", f"{name} is a link of uid {attacker.uid}")):
            attacker.shell(f"{made} {name}", project)
            done = victim.call("restart", "--ckpt-dir", victim.home / "ckpt", cwd=project)
            print("  ", one_line(done, 1, project / name, word), flush=True)
            attacker.shell(f"rm -r {name}", project)
        victim.shell(f"ln -s {name}.away {name}", project)
    victim.write(project / "go", "")
    with victim.restart(victim.home / "ckpt", cwd=project) as job:
        check("opened: right" in job.finish()[-1], job.output())


def link_at_checkpoint(victim, attacker):
    """Another user's link in the place of a file that the program has written: what it leads to is not the program's."""
    project = victim.home.parent / "project"
    project.mkdir()
    project.chmod(0o777)
    precious = victim.write(victim.home / "precious", "years of work\n")
    with victim.run(WHENCE, cwd=project, ckpt=victim.home / "ckpt") as job:
        job.wait_until(lambda: all((project / f"at-1-{rank}").exists() for rank in range(2)), "phase 1")
        attacker.shell(f"mv at-1-0 away; ln -s {precious} at-1-0", project)
        job.checkpoint("--stop")
        job.finish(expected=85)
        check(f"is a link of uid {attacker.uid}" in job.errors(), job.errors())
    precious.write_text("years of work, and a day\n")
    attacker.shell("rm at-1-0; mv away at-1-0", project)
    victim.shell("touch end go-1", project)
    with victim.restart(victim.home / "ckpt", cwd=project) as job:
        job.finish()
    check(precious.read_text() == "years of work, and a day\n", f"put back: {precious.read_text()}")
    check(sorted(os.listdir(victim.home))[-1] != "precious.after-gen-000001", f"{os.listdir(victim.home)}")


def exchanged_directory(victim, attacker):
    """Another user's link, or directory, in the place of the program's working directory: it does not go on in there."""
    project = victim.home.parent / "project"
    project.mkdir()
    project.chmod(0o777)
    victim.shell("mkdir run", project)
    victim.shell("mkdir -m 700 precious")
    with victim.run(WHENCE, cwd=project / "run", ckpt=victim.home / "ckpt") as job:
        job.wait_until(lambda: all((project / "run" / f"at-1-{rank}").exists() for rank in range(2)), "phase 1")
        job.checkpoint("--stop")
        job.finish(expected=85)
    attacker.shell("mv run away", project)
    for more, make, word in (((), f"ln -s {victim.home}/precious run", f"is a link of uid {attacker.uid}"),
                             (("--files", "off"), "mkdir -m 777 run", f"belongs to uid {attacker.uid}")):
        attacker.shell(make, project)
        one_line(victim.call("restart", "--ckpt-dir", victim.home / "ckpt", *more), 1, project / "run", word)
        check(not os.listdir(project / "run"), f"made in there: {os.listdir(project / 'run')}")
        attacker.shell("rm -rf run", project)
    attacker.shell("mv away run", project)
    victim.shell("touch end go-1", project / "run")
    with victim.restart(victim.home / "ckpt") as job:
        job.finish()


# ---- row 5: whose generation

def foreign_generation(victim, attacker):
    """A generation of another user's is a program of another user's: passed over, or refused when it is named."""
    shared = victim.home / "ckpt"
    own = generations(victim)
    shared.chmod(0o777)
    victim.home.chmod(0o711)
    attacker.home.chmod(0o711)  # where its program works
    planted = generations(attacker, ckpt="ckpt")
    shutil.copytree(attacker.home / "ckpt" / "gen-000001", shared / "gen-000002")
    new = shared / "gen-000002"
    manifest = json.loads((new / "manifest.json").read_text().rsplit("xxh3-128", 1)[0])
    manifest["generation"] = 2
    for entry in manifest["images"]:
        entry["checksum"], = forge("header", new / entry["file"], "generation", 2)
    forge("manifest", new / "manifest.json", text=json.dumps(manifest) + "\n")
    for path in (new, *new.iterdir()):
        os.chown(path, attacker.uid, attacker.gid)
        path.chmod(0o755 if path.is_dir() else 0o644)
    before = tree(new)
    # list, inspect and verify say whose it is, and do not speak of the caller's own.
    def owners(code, *words):
        done = ends_soon(victim, code, *words, "--ckpt-dir", "ckpt")
        return [line for line in (done.stdout + done.stderr).splitlines() if f"uid {attacker.uid}" in line]
    # (verify finds that its blocks are said to be of generation 1.)
    for code, words in ((0, ("list",)), (6, ("verify",)), (0, ("inspect", "--generation", "2"))):
        check(len(owners(code, *words)) == 1, f"{words}: {owners(code, *words)}")
    check("gen-000002" in owners(0, "list")[0] and not owners(0, "inspect", "--generation", "1"), "the wrong one")
    # Passed over, which is said.
    for words in ((), ("--mapped",), ("--fallback",), ("--allow-owner", str(attacker.uid + 7))):
        said = goes_on(victim, own, extra=words)
        check(str(attacker.uid) in said and "--allow-owner" in said and "gen-000002" in said, said)
    for words in (("--generation", "2"), ("--generation", "2", "--mapped"),
                  ("--generation", "2", "--allow-owner", str(attacker.uid + 7))):
        one_line(victim.call("restart", "--ckpt-dir", "ckpt", *words), 6, attacker.uid, "--allow-owner", "gen-000002")
    one_line(victim.call("restart", "--ckpt-dir", "ckpt", "--allow-owner", "no-such-user"), 2, "no-such-user")
    said = goes_on(victim, planted, extra=["--allow-owner", attacker.uid])
    check(str(attacker.uid) in said, f"it does not say whose it is: {said}")
    # Neither removed, nor in the way.
    with running(victim, extra=["--keep", "1"]) as job:
        for _ in range(2):
            job.checkpoint()
    check(tree(new) == before, "the other user's generation was touched")


def users_generation_for_root(victim, _):
    """Root runs nobody's program unasked."""
    before = generations(victim)
    root = root_user(victim)
    ckpt = victim.home / "ckpt"
    one_line(root.call("restart", "--ckpt-dir", ckpt), 6, victim.uid, "--allow-owner")
    done = root.call("list", "--json", "--ckpt-dir", ckpt)
    check(done.returncode == 0 and json.loads(done.stdout)[0]["state"] == "complete", f"{done.stdout}{done.stderr}")
    check(root.call("verify", "--ckpt-dir", ckpt).returncode == 0, "root cannot verify a user's generation")
    check(root.call("inspect", "--ckpt-dir", ckpt).returncode == 0, "root cannot inspect a user's generation")
    said = goes_on(root, before, ckpt, extra=["--allow-owner", victim.uid])
    check(str(victim.uid) in said, f"it does not say whose it is: {said}")


def directory_of_all(victim, _):
    """A checkpoint directory that others may write to: one warning, and it works."""
    for mode in (0o777, 0o2770, 0o1777):
        ckpt = victim.home / f"ckpt-{mode:o}"
        victim.shell(f"mkdir {ckpt}; chmod {mode:o} {ckpt}")
        with running(victim, ckpt=ckpt) as job:
            job.checkpoint()
            job.kill_ranks()
            warnings = [line for line in job.errors().splitlines() if "others may write" in line and str(ckpt) in line]
            check(len(warnings) == 1, f"{mode:o}: {job.errors()}")
            lines = job.lines()
        goes_on(victim, lines, ckpt)
    with running(victim) as job:
        check("others may write" not in job.errors(), job.errors())


# ---- row 6: links

def links_as_generations(victim, attacker):
    """A link is no generation: not listed as one, not restarted, and what it leads to is not removed."""
    shared = victim.home.parent / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    own = generations(victim, 2, ckpt="precious")
    precious = victim.home / "precious"
    before = tree(precious)
    attacker.shell(f"""ln -s {precious}/gen-000001 {shared}/gen-000001; ln -s {precious}/gen-000002 {shared}/gen-000002
        ln -s {precious} {shared}/.compact-gen-000001; ln -s {precious} {shared}/.compact-gen-000003""")
    listed = victim.call("list", "--json", "--ckpt-dir", shared)
    check(listed.returncode == 0 and not [one for one in json.loads(listed.stdout) if one["state"] == "complete"],
          f"{listed.stdout}{listed.stderr}")
    for words in ((), ("--generation", "1"), ("--generation", "2"), ("--fallback",)):
        one_line(victim.call("restart", "--ckpt-dir", shared, *words), 6)
    with running(victim, ckpt=shared, extra=["--keep", "1"]) as job:
        made = [job.checkpoint()["generation"] for _ in range(3)]
        job.kill_ranks()
        lines = job.lines()
    unchanged(precious, before)
    check((shared / made[-1]).is_dir() and not (shared / made[0]).exists(), f"{made}: {os.listdir(shared)}")
    victim.call("compact", "--ckpt-dir", shared, "--keep", "1")
    unchanged(precious, before)
    goes_on(victim, lines, shared)
    goes_on(victim, own, precious)


def links_in_generations(victim, _):
    """Manifest, image, text under the name of a link: refused. A directory that the user himself names by a link is right."""
    lines = generations(victim)
    victim.shell("ln -s ckpt by-link")
    goes_on(victim, lines, "by-link")
    generation = victim.home / "ckpt" / "gen-000001"
    text = min(generation.glob("text-*.img"), default=None)
    check(text is not None, "a generation without text: this test finds nothing")
    for name in ("manifest.json", "rank-000001.img", text.name):
        victim.shell(f"mv ckpt/gen-000001/{name} elsewhere; ln -s ../../elsewhere ckpt/gen-000001/{name}")
        one_line(victim.call("restart", "--ckpt-dir", "ckpt"), 6, name if name != "manifest.json" else "gen-000001")
        done = victim.call("verify", "--ckpt-dir", "ckpt")
        check(done.returncode == 6, f"{name}: verify: {done.returncode} {done.stdout}{done.stderr}")
        victim.shell(f"rm ckpt/gen-000001/{name}; mv elsewhere ckpt/gen-000001/{name}")
    goes_on(victim, lines)


REPLACE = """
import os, sys
shared, target, count = sys.argv[1], sys.argv[2], 0
baits = [("manifest.json.new",), ("manifest.json.new", "manifest.json"), ("rank-000000.img", "rank-000001.img", "ranks.img", "ranks-000000.img")]
while True:
    for name in os.listdir(shared):
        path = os.path.join(shared, name)
        if not name.startswith("gen-") or os.path.islink(path) or os.stat(path).st_uid == os.getuid():
            continue
        try:
            bait = os.path.join(shared, "bait-%d" % count)
            os.mkdir(bait); os.chmod(bait, 0o777)
            for one in baits[count % 3]:
                os.symlink(target, os.path.join(bait, one))
            os.rename(path, os.path.join(shared, "taken-%d" % count))
            os.rename(bait, path)
            count += 1
        except OSError:
            pass
"""


def generation_exchanged(victim, attacker):
    """A generation's directory is exchanged as soon as it is there: nothing is written through the links in the other."""
    for layout in ("files", "shared"):
        shared = victim.home.parent / layout
        shared.mkdir()
        shared.chmod(0o777)
        precious = victim.write(victim.home / "precious", "years of work\n")
        failed = 0
        with attacker.start(["python3", "-c", REPLACE, str(shared), str(precious)]) as loop:
            try:
                with running(victim, ckpt=shared, extra=["--layout", layout]) as job:
                    for _ in range(6):
                        done = job.ask("checkpoint", "--timeout", "20s")
                        failed += done.returncode != 0
                        if done.returncode != 0:
                            check(len(done.stderr.splitlines()) == 1, done.stderr)
                        else:  # what is said to be there is there
                            check(loop.poll() is None, "nobody exchanges anything")
                        check(precious.read_text() == "years of work\n", "overwritten")
                    advances = len(job.lines())
                    job.wait_until(lambda: len(job.lines()) > advances, "the job to go on")
            finally:
                loop.kill()
        check(list(shared.glob("taken-*")), "nothing was exchanged: this test finds nothing")


# ---- row 7: pipes, sizes, numbers

def ends_soon(user, code, *words, cwd=None):
    done = user.call(*words, cwd=cwd)
    check(done.returncode == code, f"{words}: {done.returncode}, not {code}: {done.stdout}{done.stderr}")
    return done


def pipe_as_manifest(victim, _):
    """gen-000003/manifest.json is a pipe: nobody waits for it."""
    lines = generations(victim, 2)
    victim.shell("mkdir ckpt/gen-000003; mkfifo ckpt/gen-000003/manifest.json")
    listed = ends_soon(victim, 0, "list", "--ckpt-dir", "ckpt")
    check(len(listed.stdout.splitlines()) == 4, listed.stdout)  # a heading
    one_line(victim.call("verify", "--ckpt-dir", "ckpt"), 6, "gen-000003")
    one_line(victim.call("restart", "--ckpt-dir", "ckpt"), 6, "gen-000003")
    one_line(victim.call("compact", "--ckpt-dir", "ckpt"), 6, "gen-000003")
    ends_soon(victim, 0, "inspect", "--ckpt-dir", "ckpt", "--generation", "2")
    goes_on(victim, lines, extra=["--fallback"])
    with running(victim, extra=["--keep", "2"]) as job:
        ends_soon(victim, 0, "status", "--ckpt-dir", "ckpt")
        check(whole(job) > "gen-000003", "an old number")
        ends_soon(victim, 0, "status", "--job", job.name)
        job.process.send_signal(signal.SIGTERM)
        job.finish(SOON * 2, expected=85)


def pipe_as_image(victim, _):
    """The same for images and text, and for a device."""
    generations(victim)
    generation = victim.home / "ckpt" / "gen-000001"
    text = min(generation.glob("text-*.img")).name
    for name in ("rank-000001.img", text):
        for make in ("mkfifo {0}", "mkdir {0}"):
            path = generation / name
            victim.shell(f"mv {path} elsewhere; " + make.format(path))
            one_line(victim.call("verify", "--ckpt-dir", "ckpt"), 6, name)
            one_line(victim.call("restart", "--ckpt-dir", "ckpt"), 6, name)
            done = victim.call("inspect", "--ckpt-dir", "ckpt")
            check(done.returncode in (1, 6), f"inspect: {done.returncode} {done.stdout}{done.stderr}")
            victim.shell(f"rm -r {path}; mv elsewhere {path}")
    check(victim.call("verify", "--ckpt-dir", "ckpt").returncode == 0, "it is whole again")


def pipe_as_directory(victim, _):
    """A pipe under the name of the checkpoint directory or of a generation."""
    victim.shell("mkfifo pipe; mkdir ckpt; mkfifo ckpt/gen-000001")
    with victim.run(SHORT, ckpt="pipe") as job:
        check(job.end(SOON) == 1 and job.errors().count("fermata: error:") == 1, job.errors())
    one_line(victim.call("list", "--ckpt-dir", "pipe"), 6, "pipe")
    ends_soon(victim, 0, "list", "--ckpt-dir", "ckpt")
    with running(victim) as job:
        whole(job)


def huge_manifest(victim, _):
    """A GiB as a manifest is not read: refused in what memory there is."""
    generations(victim)
    victim.shell("""mkdir ckpt/gen-000002; truncate -s 1G ckpt/gen-000002/manifest.json
        echo x >> ckpt/gen-000002/manifest.json""")

    def limited(*words):
        return subprocess.run([*victim.on, str(FERMATA), *words, "--ckpt-dir", "ckpt"], capture_output=True, text=True,
                              timeout=SOON, cwd=victim.home, stdin=subprocess.DEVNULL,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (768 << 20, 768 << 20)))

    done = limited("list")
    check(done.returncode == 0 and len(done.stdout.splitlines()) == 3 and "damaged" in done.stdout,
          f"list: {done.returncode} {done.stdout}{done.stderr}")
    one_line(limited("verify"), 6, "gen-000002", "manifest.json", never=("bad_alloc",))
    one_line(victim.call("restart", "--ckpt-dir", "ckpt"), 6, "gen-000002", "manifest.json", never=("bad_alloc",))
    with running(victim) as job:
        whole(job)


def high_numbers(victim, _):
    """Generations have at most nine digits: others' directories are no generations, and there is an end."""
    generations(victim)
    ckpt = victim.home / "ckpt"
    victim.shell("""cd ckpt; for n in 4294967294 4294967295 1000000000 0000001 +00002; do cp -r gen-000001 gen-$n; done
        mkdir gen-4294967296 gen-18446744073709551616""")
    before = {path.name: tree(path) for path in ckpt.glob("gen-*") if len(path.name) != 10}
    listed = json.loads(ends_soon(victim, 0, "list", "--json", "--ckpt-dir", "ckpt").stdout)
    check([one["generation"] for one in listed] == ["gen-000001"], f"{listed}")
    with running(victim, extra=["--keep", "1"]) as job:
        made = whole(job)
        check(made == "gen-000002", made)
    for name, what in before.items():
        check((ckpt / name).is_dir() and tree(ckpt / name) == what, f"{name} was touched")
    victim.shell("mv ckpt/gen-000002 ckpt/gen-999999999")
    with running(victim) as job:
        done = job.ask("checkpoint")
        check(done.returncode in (1, 3) and "gen-999999999" in done.stderr and len(done.stderr.splitlines()) == 1,
              f"the last number: {done.returncode} {done.stdout}{done.stderr}")
        lines = len(job.lines())
        job.wait_until(lambda: len(job.lines()) > lines, "the job to go on")


PLANTED = """umask 022; mkdir gen-999999999 gen-4294967294 gen-000001 gen-000003 gen-000004 gen-000005
truncate -s 512M gen-999999999/manifest.json gen-4294967294/manifest.json
mkfifo gen-000001/manifest.json; mkdir -m 700 gen-000002 .compact-gen-000001
echo x > gen-000003/manifest.json; chmod 744 gen-000003
truncate -s 250M gen-000004/manifest.json; mkdir gen-000005/manifest.json; mkfifo gen-000005/.fermata gen-000006"""


def planted_generations(victim, attacker):
    """Another user's directories under names of generations, of any number, open and closed: checkpoints, lists and restarts go on."""
    shared = victim.home.parent / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    attacker.shell(PLANTED, shared)
    before = {name: (shared / name).lstat() for name in os.listdir(shared)}
    begin = time.monotonic()
    with running(victim, ckpt=shared, extra=["--interval", "0.3s"]) as job:
        own = lambda: sorted(one.name for one in shared.glob("gen-*") if one.stat().st_uid == victim.uid and (one / "manifest.json").exists())
        job.wait_until(lambda: len(own()) >= 3, "three generations", timeout=SOON)
        asked = job.checkpoint()
        check(asked["seconds"] < 5, f"a checkpoint took {asked['seconds']} s")
        job.kill_ranks()
        check("not saved" not in job.errors() and "no number" not in job.errors(), job.errors())
        lines = job.lines()
    seconds = time.monotonic() - begin
    check(asked["generation"] > "gen-000006" and asked["generation"] < "gen-001000", f"a strange number: {asked}")
    listed = json.loads(ends_soon(victim, 0, "list", "--json", "--ckpt-dir", shared).stdout)
    check(set(own()) <= {one["generation"] for one in listed if one["state"] == "complete"}, f"{listed}")
    done = ends_soon(victim, 6, "verify", "--ckpt-dir", shared)
    for name in own():
        check(any(name in line and "intact" in line for line in done.stdout.splitlines()), f"{name}: {done.stdout}")
    for words in (("inspect",), ("compact", "--keep", "2")):
        ends_soon(victim, 0, *words, "--ckpt-dir", shared)
    said = goes_on(victim, lines, shared)
    check(f"gen-999999999 belongs to uid {attacker.uid}" in said, said)
    for name, was in before.items():
        now = (shared / name).lstat()
        check((now.st_ino, now.st_mode, now.st_mtime_ns) == (was.st_ino, was.st_mode, was.st_mtime_ns), f"{name} was touched")
    return f"{seconds:.1f} s"


class NoFuse(Exception):
    """Here no file system of a user's can be mounted."""


@contextlib.contextmanager
def file_systems_of(user, *places):
    """File systems of this user's, as fusermount would mount them for him, that nobody serves: nobody else may even look at them."""
    try:
        device = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        raise NoFuse(error) from error
    libc, mounted = ctypes.CDLL(None, use_errno=True), []
    options = f"fd={device},rootmode=40755,user_id={user.uid},group_id={user.gid}"
    nosuid, nodev, detach = 2, 4, 2
    try:
        for place in places:
            user.shell(f"mkdir -m 755 {place}")
            mounted.append(place)
            if libc.mount(b"attack", str(place).encode(), b"fuse", nosuid | nodev, options.encode()) != 0:
                mounted.pop().rmdir()
                raise NoFuse(os.strerror(ctypes.get_errno()))
            os.close(device)
            device = os.open("/dev/fuse", os.O_RDWR)
            options = f"fd={device},rootmode=40755,user_id={user.uid},group_id={user.gid}"
        yield
    finally:
        os.close(device)
        for place in mounted:
            libc.umount2(str(place).encode(), detach)
            place.rmdir()


def foreign_file_systems(victim, attacker):
    """Names of generations, of the run directory and of the memory level are file systems of another user's: none of them is ours."""
    shared = victim.home.parent / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    victim.run_dir = None
    try:
        with file_systems_of(attacker, shared / "gen-000002", shared / ".compact-gen-000001", pathlib.Path(f"/tmp/fermata-{victim.uid}"),
                             pathlib.Path(f"/dev/shm/fermata-memory-{victim.uid}")):
            with running(victim, ckpt=shared, extra=["--levels", "memory 0.3s, files 60s"]) as job:
                made = [whole(job) for _ in range(2)]
                check(json.loads(victim.call("status", "--json").stdout)["job"] == job.name, "not found")
                job.kill_ranks()
                lines = job.lines()
            check("gen-000002" not in made, f"{made}")
            for words in (("list",), ("verify",), ("compact", "--keep", "1")):
                ends_soon(victim, 0, *words, "--ckpt-dir", shared)
            goes_on(victim, lines, shared)
    except NoFuse as error:
        return f"skipped: {error}"
    return None


def planted_own_state(victim, attacker):
    """The same for a program that saves its own state (libfermata), in files and in memory: it starts, saves, restores."""
    for options in ("", "memory=node"):
        shared = victim.home.parent / f"shared-{options}"
        shared.mkdir()
        shared.chmod(0o777)
        attacker.shell(PLANTED, shared)
        for steps in (5, 10):
            done = subprocess.run([*victim.on, "mpiexec.mpich", "-n", "2", str(PROGRAMS / "walk.mpich"), str(shared), str(steps), options],
                                  cwd=victim.home, capture_output=True, text=True, timeout=SOON, stdin=subprocess.DEVNULL)
            said = done.stdout + done.stderr
            check(done.returncode == 0 and "end" in said, f"{options}, {steps}: {done.returncode}: {said}")
            check(said.count("is passed over") == 1, said)
        own = [one.name for one in shared.glob("gen-*") if one.stat().st_uid == victim.uid]
        check(own and all("gen-000006" < name < "gen-000999" for name in own), f"{own}")
    shutil.rmtree(f"/dev/shm/fermata-state-{victim.uid}", ignore_errors=True)


def veloc_scratch(victim, attacker):
    """A scratch that all may write to, with another user's links under the names that routed files will have: none is followed."""
    scratch = victim.home.parent / "scratch"
    scratch.mkdir()
    scratch.chmod(0o1777)
    precious = victim.write(victim.home / "precious", "years of work\n")
    victim.write(victim.home / "veloc.cfg", f"scratch = {scratch}\npersistent = {victim.home}/persistent\n")
    attacker.shell(f"for version in 10 20; do for rank in 0 1; do ln -s {precious} walk-$version-$rank-0; done; done", scratch)

    # Into a file: MPICH 4.2.1's mpiexec may lose what a rank wrote just before it failed.
    said = victim.home / "said"
    program = ["sh", "-c", 'exec "$@" >>said 2>&1', "sh", str(PROGRAMS / "veloc.mpich"), "veloc.cfg", "file", "20"]

    def walk(code, *words):
        said.unlink(missing_ok=True)
        done = subprocess.run([*victim.on, "mpiexec.mpich", "-n", "2", *program], cwd=victim.home, timeout=SOON, stdin=subprocess.DEVNULL)
        text = said.read_text()
        check((done.returncode == 0) == (code == 0) and all(word in text for word in words), f"{done.returncode}: {text}")

    walk(0, "end ")
    walk(0, "from 20")
    check(precious.read_text() == "years of work\n", f"written through the link: {precious.read_text()[:99]}")
    shutil.rmtree(scratch / f"fermata-scratch-{victim.uid}")
    attacker.shell(f"ln -s {victim.home} fermata-scratch-{victim.uid}", scratch)
    walk(1, f"fermata-scratch-{victim.uid} is not a directory of this user's alone")


# ---- the file systems of nodes

def taken_in_memory(victim, attacker):
    """The names of this user's in /dev/shm and /var/tmp are another user's links, directories and files: nothing is made through them,
    and one line says so; generations go to files."""
    precious = victim.home / "precious"
    victim.shell(f"mkdir -m 700 {precious}; echo years > {precious}/work")
    before = tree(precious)
    places = {"memory": pathlib.Path(f"/dev/shm/fermata-memory-{victim.uid}"), "local": pathlib.Path(f"/var/tmp/fermata-local-{victim.uid}")}
    for level, more in (("memory", ("mkdir -m 700 {}",)), ("local", ("mkdir -m 777 {}",))):
        place = places[level]
        for make in (f"ln -s {precious} {{}}", *more):
            attacker.shell(make.format(place))
            was = place.lstat()
            try:
                with running(victim, extra=["--levels", f"{level} 0.3s, files 60s"]) as job:
                    job.wait_until(lambda: list((victim.home / "ckpt").glob("gen-*/manifest.json")), "a generation", timeout=SOON)
                    job.wait_until(lambda: str(place) in job.errors(), "the line", timeout=SOON)
                    whole(job)
                    said = [line for line in job.errors().splitlines() if str(place) in line]
                    # On a busy machine there is a second generation by now, with a line of its own.
                    check(said and len(said) == len(set(said)) and all("alone" in line and "FERMATA_" in line for line in said), f"{make}: {said}")
                    job.kill_ranks()
                now = place.lstat()
                check((now.st_ino, now.st_mode) == (was.st_ino, was.st_mode), f"{make}: {place} was touched")
                check(place.is_symlink() or not place.is_dir() or not os.listdir(place), f"{make}: something was made in {place}")
                unchanged(precious, before)
            finally:
                attacker.shell(f"rm -rf {place}")
            shutil.rmtree(victim.home / "ckpt")


# ---- row 9: /tmp

def name_is_taken(victim, attacker):
    """/tmp/fermata-UID is another user's, a file, a link, or open to others: another name, which is said and found."""
    victim.run_dir = None
    name = pathlib.Path(f"/tmp/fermata-{victim.uid}")
    makers = {"a directory of another user's": (attacker, f"mkdir -m 755 {name}"),
              "one that is closed": (attacker, f"mkdir -m 700 {name}"),
              "one that all may enter": (attacker, f"mkdir -m 777 {name}; chmod 777 {name}"),
              "a file": (attacker, f"echo > {name}"),
              "a link": (attacker, f"ln -s {victim.home} {name}")}
    for what, (user, script) in makers.items():
        user.shell(script)
        before = tree(victim.home)
        status = name.lstat()
        with running(victim) as job:
            check(sum("fermata:" in line and str(name) in line for line in job.errors().splitlines()) == 1,
                  f"{what}: it does not say so: {job.errors()}")
            found = json.loads(victim.call("status", "--json").stdout)
            check(found["job"] == job.name, f"{what}: {found}")
            done = victim.call("checkpoint", "--json", timeout=harness.PATIENCE)
            check(done.returncode == 0, f"{what}: {done.stderr}")
            places = [path for path in pathlib.Path("/tmp").glob(f"fermata-{victim.uid}*") if path != name]
            check(len(places) == 1 and places[0].lstat().st_uid == victim.uid and
                  places[0].lstat().st_mode & 0o7777 == 0o700, f"{what}: {places}")
            job.kill_ranks()
        check(name.lstat().st_ino == status.st_ino and (not name.is_dir() or not os.listdir(name) or name.is_symlink()),
              f"{what}: {name} was touched")
        after = tree(victim.home)
        check(all(after.get(one) == was for one, was in before.items() if not one.startswith("ckpt") and
                  not one.endswith((".out", ".err"))), f"{what}: the victim's home was touched")
        user.shell(f"rm -rf {name}")
        shutil.rmtree(victim.home / "ckpt")


# ---- row 12: images of strangers

def nested_state(victim, _):
    """A process state nested a million times: one line, from whoever reads it."""
    generations(victim)
    generation = victim.home / "ckpt" / "gen-000001"
    image, manifest_path = generation / "rank-000001.img", generation / "manifest.json"
    manifest = json.loads(manifest_path.read_text().rsplit("xxh3-128", 1)[0])
    for kind in ("nested", "strings", "text"):
        size, manifest["images"][1]["checksum"] = forge("process", image, kind)
        manifest["images"][1]["bytes"] = int(size)
        forge("manifest", manifest_path, text=json.dumps(manifest) + "\n")
        for path in (image, manifest_path):
            os.chown(path, victim.uid, victim.gid)
        done = victim.call("inspect", "--ckpt-dir", "ckpt")
        check(done.returncode in (1, 6) and "process state" in done.stderr and len(done.stderr.splitlines()) == 1,
              f"inspect, {kind}: {done.returncode} {done.stderr}")
        one_line(victim.call("verify", "--ckpt-dir", "ckpt"), 6, "rank-000001.img", "process state")
        with victim.restart() as job:
            code = job.end(SOON)
            check(code not in (0, 85, 139) and "process state" in job.errors(), f"{kind}: {code} {job.errors()}")


def index_of_holes(victim, _):
    """A page that claims an index of a GiB, or of eight: refused at once, in little memory."""
    generations(victim)
    generation = victim.home / "ckpt" / "gen-000001"
    manifest = json.loads((generation / "manifest.json").read_text().rsplit("xxh3-128", 1)[0])
    for claimed in (1 << 30, 8 << 30):
        manifest["images"][1]["checksum"], = forge("claims", generation / "rank-000001.img", claimed)
        manifest["images"][1]["bytes"] = claimed + 4096
        forge("manifest", generation / "manifest.json", text=json.dumps(manifest) + "\n")
        for name in ("manifest.json", "rank-000001.img"):
            os.chown(generation / name, victim.uid, victim.gid)
        begin = time.monotonic()
        for verb in ("verify", "inspect", "restart"):
            done = subprocess.run([*victim.on, "prlimit", f"--data={256 << 20}", str(FERMATA), verb, "--ckpt-dir", "ckpt"],
                                  capture_output=True, text=True, timeout=SOON, cwd=victim.home, stdin=subprocess.DEVNULL)
            check(done.returncode in (1, 6) and "rank-000001.img" in done.stderr and
                  sum("fermata: error:" in line for line in done.stderr.splitlines()) == 1, f"{verb}: {done.returncode} {done.stderr}")
        check(time.monotonic() - begin < SOON / 4, "it was read")


# ---- row 14

def visible(text, where):
    bad = {c for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160}
    check(not bad, f"{where} writes {bad} to the terminal: {text!r}")


def escapes(victim, _):
    """What others named appears as text: no escape sequence reaches a terminal."""
    name = "evil\x1b]0;owned\x07\x1b[31m\r\x9b7m"
    cwd = victim.home / name
    cwd.mkdir()
    os.chown(cwd, victim.uid, victim.gid)
    victim.write(cwd / name, "")
    shutil.copy(PROGRAMS / "mix.openmpi", cwd / ("mix" + name))
    with victim.run([f"./mix{name}", "1000000", "1000", name], cwd=cwd, ckpt="../ckpt") as job:
        job.wait_until(lambda: len(job.lines()) >= 3, "three lines")
        job.checkpoint()
        for words in (("status",), ("status", "--waits")):
            done = victim.call(*words, "--job", job.name)
            check("mix" in done.stdout, done.stdout)
            visible(done.stdout + done.stderr, words[0])
        job.kill_ranks()
    directory = victim.home / "ckpt"
    path = directory / "gen-000001" / "manifest.json"

    def look(*more):
        for words in (("list",), ("inspect", "--regions", "--objects"), ("verify",), *more):
            done = victim.call(*words, "--ckpt-dir", "ckpt")
            visible(done.stdout + done.stderr, f"{words[0]} ({done.returncode})")
            for line in (done.stdout + done.stderr).splitlines():
                check(len(line) < 100000, f"{words[0]}: a line of {len(line)}")

    look()
    good = path.read_text().rsplit("xxh3-128", 1)[0]
    for key in ("created", "job_name", "mpi", "level"):
        manifest = json.loads(good)
        manifest[key] = name
        forge("manifest", path, text=json.dumps(manifest) + "\n")
        os.chown(path, victim.uid, victim.gid)
        look(*([("restart",)] if key == "mpi" else []))
    harmless = lambda m: m["phases"].update({name: 1.0})  # would be restarted
    for change in (harmless, lambda m: m["images"][1].update(file=name),
                   lambda m: m["images"][1].update(checksum=name), lambda m: m.update({"generation": name}),
                   lambda m: m.update(encryption={"cipher": name, "key": name})):
        manifest = json.loads(good)
        change(manifest)
        forge("manifest", path, text=json.dumps(manifest) + "\n")
        os.chown(path, victim.uid, victim.gid)
        look(*([] if change is harmless else [("restart",)]))


def own_gen_directories(victim, _):
    """--ckpt-dir .: a program's own directories called gen-NNNNNN are its own."""
    work = victim.home / "work"
    victim.shell("""mkdir work; cd work; mkdir -p gen-000001/deep gen-000002 gen-000040 .compact-gen-000001 .compact-x
        echo data > gen-000001/deep/data; echo data > gen-000040/manifest.json; echo data > .compact-gen-000001/data
        echo image > gen-000002/rank-000000.img""")
    before = tree(work)
    with running(victim, cwd=work, ckpt=".", extra=["--keep", "1"]) as job:
        made = [job.checkpoint()["generation"] for _ in range(3)]
        job.kill_ranks()
        lines = job.lines()
    after = tree(work)
    check(all(after.get(one) == what for one, what in before.items()),
          f"gone or changed: {[one for one in before if after.get(one) != before[one]]}")
    check(not (work / made[0]).exists() and (work / made[-1] / "manifest.json").exists(), f"{made}: retention")
    ends_soon(victim, 0, "list", "--ckpt-dir", ".", cwd=work)
    goes_on(victim, lines, ".", made[-1][4:], cwd=work)


def what_dead_jobs_left(victim, _):
    """… while what a killed job left of a checkpoint goes with its next one; another job's stays."""
    with running(victim, extra=["--save-options", "threads=1 compress=zstd:19"]) as job:
        job.checkpoint()
        client = victim.start([str(FERMATA), "checkpoint", "--job", job.name])
        job.wait_until(lambda: list((victim.home / "ckpt").glob("gen-000002/*")), "a generation in the making")
        job.process.kill()
        job.end()
        client.wait(harness.PATIENCE)
    if (victim.home / "ckpt" / "gen-000002" / "manifest.json").exists():
        return "it was committed before"
    time.sleep(0.5)
    before = tree(victim.home / "ckpt" / "gen-000001")
    with running(victim) as other:
        check(whole(other) == "gen-000003", "the number of one that may still be written to")
    with victim.restart(generation="1") as job:
        job.wait_until(lambda: len(job.lines()) >= 3, "three lines")
        whole(job)
    left = sorted(path.name for path in (victim.home / "ckpt").glob("gen-*"))
    check(left == ["gen-000001", "gen-000003", "gen-000004"], f"left: {left}")
    unchanged(victim.home / "ckpt" / "gen-000001", before)
    return None


def setuid_program(victim, attacker):
    """A program that would get another user's rights from the kernel, and cannot here: said before it starts."""
    for mode, owner in (("4755", attacker.uid), ("4755", 0), ("2755", 0)):
        program = victim.home / "program"
        shutil.copy(PROGRAMS / "mix.openmpi", program)
        os.chown(program, owner, 0)
        program.chmod(int(mode, 8))
        done = victim.call("run", "-n", "1", "--", "./program", "3", "10", timeout=SOON)
        one_line(done, 1, "program", "setuid" if mode == "4755" else "setgid")
        program.unlink()


def root_in_a_users_directory(victim, _):
    """Root checkpoints into a user's directory: a warning at most; the user's files stay his."""
    root = root_user(victim)
    victim.shell("mkdir -m 700 ckpt; mkdir ckpt/gen-000001; echo mine > ckpt/gen-000001/file")
    before = tree(victim.home / "ckpt")
    with running(root, ckpt=victim.home / "ckpt", extra=["--keep", "1"]) as job:
        made = [whole(job) for _ in range(2)]
        job.kill_ranks()
        lines = job.lines()
    after = tree(victim.home / "ckpt")
    check(all(after.get(one) == what for one, what in before.items()), f"{made}: the user's files were touched")
    goes_on(root, lines, victim.home / "ckpt", made[-1][4:])


CASES = {function.__name__: function for function in (
    run_dir_of_others, run_dir_without_marker, run_dir_of_a_user_for_root, exchanged, foreign_image, lock_link, other_kinds, link_at_checkpoint, exchanged_directory,
    foreign_generation, users_generation_for_root, directory_of_all, links_as_generations, links_in_generations,
    generation_exchanged, pipe_as_manifest, pipe_as_image, pipe_as_directory, huge_manifest, high_numbers, planted_generations, planted_own_state, foreign_file_systems, veloc_scratch,
    taken_in_memory, name_is_taken,
    nested_state, index_of_holes, escapes, own_gen_directories, what_dead_jobs_left, setuid_program,
    root_in_a_users_directory)}


def run(name, *words):
    if os.geteuid() != 0:
        print("skipped: two other users are needed, so root", flush=True)
        return None
    with Users(name) as (victim, attacker):
        return CASES[name](victim, attacker, *words)


if __name__ == "__main__":
    sys.exit(harness.main(run, CASES))
