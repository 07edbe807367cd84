"""Two ordinary users of one machine, without accounts: numbers and a home directory suffice. Needs root."""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import BUILD, Failure, Job, call, check

FORGE = BUILD / "bin" / "forge"
GROUP = 61000000
# What nothing here needs, whatever the machine does meanwhile: a hang shows early.
SOON = 20 * max(1.0, harness.PATIENCE / 120)


class User:
    """Commands and jobs of one user. `run_dir`: FERMATA_RUN_DIR; None: what is used without it."""

    def __init__(self, number, home, group=GROUP):
        self.uid, self.gid, self.home = number, group, pathlib.Path(home)
        self.home.mkdir(mode=0o700, exist_ok=True)
        os.chown(self.home, number, group)
        self.run_dir = self.home / "run"

    @property
    def on(self):
        """Words before a command."""
        where = [f"FERMATA_RUN_DIR={self.run_dir}"] if self.run_dir else ["-uFERMATA_RUN_DIR"]
        words = ["env", *where] if self.uid == 0 else [
            "setpriv", "--reuid", self.uid, "--regid", self.gid, "--clear-groups", "env", *where, f"HOME={self.home}"]
        return [str(word) for word in words]

    def call(self, *words, cwd=None, timeout=SOON):
        return call(*words, cwd=cwd or self.home, on=self.on, timeout=timeout)

    def shell(self, script, cwd=None):
        """What this user does by hand; it must succeed."""
        done = subprocess.run([*self.on, "sh", "-ec", script], cwd=cwd or self.home, capture_output=True, text=True,
                              timeout=harness.PATIENCE, stdin=subprocess.DEVNULL)
        check(done.returncode == 0, f"{script}: {done.stderr}")
        return done.stdout

    def start(self, script, cwd=None):
        """The same, as long as it goes on."""
        return subprocess.Popen([*self.on, *script], cwd=cwd or self.home, stdin=subprocess.DEVNULL)

    def write(self, path, text):
        """A file of this user's, whatever directory it lies in."""
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for one in (path, path.parent):
            os.chown(one, self.uid, self.gid)
        return path

    def run(self, program, ranks=2, ckpt="ckpt", extra=(), cwd=None, mpi="openmpi"):
        return Job.run(program, ranks, cwd or self.home, mpi=mpi, ckpt=ckpt, extra=extra, on=self.on)

    def restart(self, ckpt="ckpt", generation="latest", extra=(), cwd=None):
        return Job.restart(cwd or self.home, ckpt=ckpt, generation=generation, extra=extra, on=self.on)


class Users:
    """`with Users(...) as (victim, attacker)`: in a scratch directory that both may enter."""

    def __init__(self, name):
        self.scratch = harness.Scratch(f"attack-{name}")
        self.base = 61000000 + os.getpid() % 1000000 * 2

    def __enter__(self):
        where = self.scratch.__enter__()
        where.chmod(0o755)
        self.users = User(self.base, where / "victim"), User(self.base + 1, where / "attacker")
        return self.users

    def __exit__(self, *what):
        for user in self.users:
            for path in pathlib.Path("/tmp").glob(f"fermata-{user.uid}*"):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() and not path.is_symlink() else path.unlink()
        self.scratch.__exit__(*what)


def root_user(victim):
    """Root, with a run directory of its own."""
    user = User(0, victim.home.parent / "root", 0)
    return user


def forge(*words, text=None):
    done = subprocess.run([str(FORGE), *map(str, words)], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"forge {words}: {done.returncode} {done.stderr}")
    return done.stdout.split()


def one_line(done, code, *words, never=()):
    """Refused with `code` in exactly one line of ours, with all `words` in it and none of `never`."""
    ours = [line for line in done.stderr.splitlines() if line.startswith("fermata: error:")]
    check(done.returncode == code and len(ours) == 1, f"exit status {done.returncode}, not {code}: {done.stderr}")
    for word in words:
        check(str(word) in ours[0], f"'{word}' is not in: {ours[0]}")
    for word in never:
        check(word not in done.stderr, f"'{word}' is in: {done.stderr}")
    return ours[0]


def tree(path):
    """Everything below `path` as it is: kind, mode, owner, content."""
    found = {}
    for one in sorted(pathlib.Path(path).rglob("*")):
        status = one.lstat()
        if one.is_symlink():
            content = os.readlink(one)
        else:
            content = one.read_bytes() if one.is_file() else None
        found[str(one.relative_to(path))] = (status.st_mode, status.st_uid, content)
    return found
