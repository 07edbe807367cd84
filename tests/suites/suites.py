"""What the runners of other people's test suites share: fetching, building, running one program and comparing.

Nothing here belongs to CI: the sources come from the network and a whole sweep takes half an hour. Everything is kept
below one directory outside the repository (FERMATA_SUITES, or --where), so that a second sweep only runs.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("FERMATA_BUILD", ROOT / "build"))
FERMATA = BUILD / "bin" / "fermata"
WHERE = pathlib.Path(os.environ.get("FERMATA_SUITES", pathlib.Path.home() / ".cache" / "fermata-suites"))

ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}


class Failure(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failure(message)


def execute(words, cwd, timeout, env=None):
    """Runs a command in a session of its own, so that nothing of it outlives the time. Returns (code or None, out, err)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   cwd=cwd, env=dict(os.environ, **ENVIRONMENT, **(env or {})), start_new_session=True)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, number)
                except ProcessLookupError:
                    break
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    continue
            process.wait()
        out.seek(0)
        err.seek(0)
        return code, out.read().decode(errors="replace"), err.read().decode(errors="replace")


def must(words, cwd, what, timeout=600):
    code, out, err = execute(words, cwd, timeout)
    if code != 0:
        raise Failure(f"{what} failed ({code}): {' '.join(map(str, words))}\n{out[-2000:]}{err[-2000:]}")


def native_words(mpi, ranks):
    words = [f"mpiexec.{mpi}", "-n", str(ranks)]
    return words + (["--oversubscribe", "--bind-to", "none"] if mpi == "openmpi" else [])


class Run:
    """One program, native or under Fermata: exit code (None: out of time), its lines, what Fermata said meanwhile."""

    def __init__(self, code, out, err):
        self.code = code
        self.lines = [line.rstrip() for line in out.splitlines() if line.strip()]
        self.errors, self.notes = [], []
        for line in err.splitlines():
            if line.strip():
                (self.notes if line.startswith("fermata: ") else self.errors).append(line.rstrip())
        self.checkpoints = sum(line.startswith("fermata: gen-") for line in self.notes)
        self.notes = [line for line in self.notes if not line.startswith("fermata: gen-")]

    def record(self):
        return {"code": self.code, "lines": self.lines, "errors": self.errors}

    @staticmethod
    def of(record):
        return Run(record["code"], "\n".join(record["lines"]), "\n".join(record["errors"]))


def native(mpi, ranks, program, cwd, timeout, env=None):
    return Run(*execute([*native_words(mpi, ranks), *program], cwd, timeout, env))


def fermata(mpi, ranks, program, cwd, timeout, env=None, interval=None, preload=None):
    """Under Fermata, with a checkpoint every `interval`; a checkpoint directory of its own, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="fermata-suite-") as directory:
        words = [FERMATA, "run", "-n", ranks, "--mpi", mpi, "--ckpt-dir", f"{directory}/ckpt", "-v"]
        if mpi == "openmpi":  # as native_words(): slots for spawned processes, and what a rank is bound to, by which it splits
            words += ["--mpiexec-args=--oversubscribe --bind-to none"]
        if interval:
            words += ["--interval", interval, "--keep", "1"]
        if preload:
            env = dict(env or {}, LD_PRELOAD=preload)
        return Run(*execute([*words, "--", *program], cwd, timeout, env))


# UCX on messages that a program leaves behind: sometimes, natively too, and with process numbers. mpiexec.mpich on what it did.
CHATTER = re.compile(r".* UCX +WARN |=+$|=  |YOUR APPLICATION TERMINATED|This typically refers|Please see the FAQ")


def plain(lines):
    """In any order (ranks race for theirs), without what differs from run to run: addresses, process numbers, times."""
    kept = (re.sub(r"0x[0-9a-fA-F]{4,}", "0x…", line) for line in lines if not CHATTER.match(line))
    return sorted(re.sub(r"\d+\.\d+(e[-+]\d+)?", "#.#", line) for line in kept)


def differences(want, got):
    """Empty when the two runs are the same for a user: exit code and the lines; out of time is the same as out of time."""
    if want.code is None and got.code is None:
        return []
    if (want.code is None) != (got.code is None):
        return ["out of time, native not" if got.code is None else "native was out of time, under Fermata it ended"]
    found = []
    if want.code != got.code:
        found.append(f"exit code {got.code}, native {want.code}")
    ours, theirs = plain(got.lines), plain(want.lines)
    if ours != theirs:
        new = [line for line in ours if line not in theirs]
        gone = [line for line in theirs if line not in ours]
        found += [f"+ {line}" for line in new[:4]] + [f"- {line}" for line in gone[:4]]
        if not new and not gone:
            found.append(f"{len(ours)} lines, native {len(theirs)}")
    if got.errors and not want.errors:
        found += [f"stderr: {line}" for line in got.errors[:4]]
    return found


class Expected:
    """What may differ from the native run, with its reason: differences.json. `test` is a pattern for the whole name;
    `native` and `fermata` are patterns for what came of it; `mpi` and `ranks`, if there, narrow it."""

    def __init__(self, suite, mpi, ranks):
        known = json.loads(pathlib.Path(__file__).with_name("differences.json").read_text())
        self.entries = [entry for entry in known if entry["suite"] == suite and entry.get("mpi", mpi) == mpi
                        and ranks in entry.get("ranks", [ranks])]
        self.seen = set()

    def reason(self, test, native, fermata):
        for number, entry in enumerate(self.entries):
            if (re.fullmatch(entry["test"], test) and re.fullmatch(entry.get("native", "pass|ok"), native)
                    and re.fullmatch(entry.get("fermata", ".*"), fermata)):
                self.seen.add(number)
                return entry["reason"]
        return None

    def say_unseen(self, whole):
        """After a whole run: entries that may be gone, or that need luck."""
        for number, entry in enumerate(self.entries):
            if whole and number not in self.seen:
                say(f"listed, not seen: {entry['test']}")


def checkout(where, name, make):
    """where/name made by `make(temporary)` unless it is there: a half-made one is never taken for whole."""
    target = where / name
    if target.exists():
        return target
    part = where / f"{name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    make(part)
    part.rename(target)
    return target


def say(text):
    print(text, flush=True)


def main(function):
    try:
        sys.exit(function())
    except Failure as failure:
        print(failure, file=sys.stderr)
        sys.exit(1)
