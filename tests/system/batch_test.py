#!/usr/bin/env python3
"""Job scripts of `fermata batch`, read as each scheduler reads them: whatever the words hold, they come out as they went in, and
nothing of them becomes an option of the scheduler. What a format cannot hold is refused in one line.

    batch_test.py [ROUNDS [SEED]]
"""
import os
import pathlib
import random
import re
import subprocess
import sys

from harness import FERMATA, Scratch, check

PIECES = ["a", "b c", " ", "  ", "'", '"', "''", '""', "\\", "$", "$$", "$(", "$(HOME)", "$(DOLLAR)", "${HOME}", "$HOME", "$ENV(HOME)",
          "$INT(x)", "$F(a.b)", "$RANDOM_CHOICE(1,2)", "(", ")", "`id`", ";", "&", "|", ">", "<", "*", "?", "[a]", "{1,2}", "~", "!", "!!", "#",
          "#SBATCH", "#$", "#BSUB", "queue", "= x", "@=end", "%", "^", "ü", b"\xff".decode(errors="surrogateescape"), "-n", "--", "\\\\", "'\"'\"",
          "' \"\" '", "x=1", "/", ","]
CONTROL = ["\n", "\r", "\t", "\x1b", "\x7f", "\v", "\r\nqueue\n", "\nqueue 100\n", "\n#SBATCH --uid=0\n", "\n#$ -q all\n", "\\\n"]
SCRIPTS = {"slurm": "#SBATCH", "sge": "#$", "lsf": "#BSUB"}


def batch(scheduler, *words, own=()):
    return subprocess.run([FERMATA, "batch", "--scheduler", scheduler, "--slot", "2h", "--name", "job", *own, "--", "-n", "2", *words],
                          capture_output=True, text=True, errors="surrogateescape", stdin=subprocess.DEVNULL, timeout=60)


def made(done):
    check(done.returncode == 0, f"{done.args}: {done.returncode} {done.stderr}")
    return done.stdout


def refused(done, *words):
    check(done.returncode == 2 and not done.stdout and len(done.stderr.splitlines()) == 1, f"{done.args}: {done}")
    for word in words:
        check(word in done.stderr, f"no '{word}' in {done.stderr}")


def by_bash(script, cwd):
    """The words that `fermata` is called with, when bash runs the script."""
    (cwd / "bin").mkdir(exist_ok=True)
    stand_in = cwd / "bin" / "fermata"
    if not stand_in.exists():
        stand_in.write_text(f"#!/bin/bash\nprintf '%s\\0' \"$@\" > {cwd}/words\n")
        stand_in.chmod(0o755)
    (cwd / "words").unlink(missing_ok=True)
    done = subprocess.run(["bash"], input=script, capture_output=True, text=True, errors="surrogateescape", cwd=cwd, timeout=60,
                          env={"PATH": f"{cwd}/bin:/usr/bin:/bin", "HOME": "/home/of-nobody"})
    check(done.returncode == 0 and not done.stdout and not done.stderr, f"{script}: {done}")
    check(sorted(os.listdir(cwd)) == ["bin", "words"], f"{script}: made {os.listdir(cwd)}")
    return (cwd / "words").read_bytes().decode(errors="surrogateescape").split("\0")[:-1]


class Submit:
    """HTCondor's submit file: commands, macros, and arguments in the new syntax (condor_submit's manual page)."""

    def __init__(self, text):
        self.commands, lines = [], text.split("\n")
        while lines:
            line = lines.pop(0)
            while line.rstrip().endswith("\\") and not line.startswith("#"):
                line = line.rstrip()[:-1] + (lines.pop(0) if lines else "")
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            name, equals, value = line.partition("=")
            check(equals or line.strip() == "queue", f"not a command: {line!r}")
            check(not name.endswith("@"), f"a value of several lines: {line!r}")
            self.commands.append((name.strip(), self.expanded(value.strip())))

    @staticmethod
    def expanded(value):
        for macro in re.findall(r"\$+[A-Za-z_]*\([^)]*\)?", value):
            check(macro == "$(DOLLAR)", f"a macro of HTCondor's: {macro} in {value!r}")
        value = value.replace("$(DOLLAR)", "$")
        check("$$(" not in value, f"replaced when a machine is found: {value!r}")
        return value

    def one(self, name):
        values = [value for command, value in self.commands if command == name]
        check(len(values) == 1, f"{name}: {values}")
        return values[0]

    def arguments(self):
        text = self.one("arguments")
        check(len(text) >= 2 and text[0] == text[-1] == '"', f"not in quotes: {text}")
        text, words, word, at, inside = text[1:-1], [], None, 0, False
        check(not re.search(r'(?<!")"("")*(?!")', text), f"a single double quote: {text}")
        text = text.replace('""', '"')
        while at < len(text):
            c = text[at]
            if inside and text[at:at + 2] == "''":
                word, at = word + "'", at + 1
            elif c == "'":
                inside, word = not inside, word or ""
            elif c in " \t\n" and not inside:
                words += [] if word is None else [word]
                word = None
            else:
                word = (word or "") + c
            at += 1
        check(not inside, f"an open quote: {text}")
        return words + ([] if word is None else [word])


def round_trips(rng, cwd, rounds):
    plain = {name: made(batch(name, "./a")) for name in (*SCRIPTS, "htcondor")}
    for _ in range(rounds):
        words = ["".join(rng.choices(PIECES, k=rng.randrange(6))) for _ in range(rng.randrange(1, 12))]
        words = [word for word in words if word != ":"]
        for name, mark in SCRIPTS.items():
            script = made(batch(name, "--", "./a", *words))
            check(by_bash(script, cwd)[-len(words) - 4:] == ["-n", "2", "--", "./a", *words][-len(words) - 4:], f"{name}: {words}: {script}")
            marked = lambda text: [line for line in text.split("\n") if line.lstrip().startswith(mark)]
            check(marked(script) == marked(plain[name]), f"{name}: {words}: {marked(script)}")
        done = batch("htcondor", "--", "./a", *words)
        if any("$$(" in word for word in words):
            refused(done, "$$(")
            words = [word.replace("$$(", "$ (") for word in words]
            words = [word for word in words if "$$(" not in word]
            done = batch("htcondor", "--", "./a", *words)
        submit = Submit(made(done))
        check(submit.arguments()[-len(words) - 1:] == ["./a", *words], f"{words}: {submit.arguments()}")
        check([one for one, _ in submit.commands] == [one for one, _ in Submit(plain["htcondor"]).commands], f"{words}: {submit.commands}")


def control_characters(rng):
    for name in (*SCRIPTS, "htcondor"):
        for bad in CONTROL:
            word = rng.choice(["", "a", "--x="]) + bad + rng.choice(["", "b"])
            refused(batch(name, "--", "./a", word), "control characters")
            refused(batch(name, "--ckpt-dir", word, "--", "./a"), "control characters")
            refused(batch(name, "./a", own=("--option", word)), "--option", "control characters")


def directories():
    for given, listed in {"ckpt": "ckpt", "./ckpt/": "ckpt", "a//b/": "a/b", "of-$USER": "of-$USER", "a%b+c@d=e": "a%b+c@d=e", "über": "über"}.items():
        submit = Submit(made(batch("htcondor", "--ckpt-dir", given, "--", "./a")))
        check(submit.one("transfer_checkpoint_files") == listed, f"{given}: {submit.commands}")
        check(("preserve_relative_paths", "True") in submit.commands or "/" not in listed, f"{given}: {submit.commands}")
        check(given in submit.arguments(), f"{given}: {submit.arguments()}")
    for bad in ("a b", "a,b", "a;b", 'a"b', "a'b", "a\\", "/scratch/ckpt", "..", "a/../b", ".", "/", "http://x", "$(HOME)", "a#b"):
        refused(batch("htcondor", "--ckpt-dir", bad, "--", "./a"), "--ckpt-dir")
        for name in SCRIPTS:
            made(batch(name, "--ckpt-dir", bad, "--", "./a"))
    for bad in ("x = \\", "x = \\  ", "x @=end"):
        refused(batch("htcondor", "./a", own=("--option", bad)), "--option")
    submit = Submit(made(batch("htcondor", "./a", own=("--option", "requirements = Memory > 1", "--option", "x = @=")))) 
    check(("requirements", "Memory > 1") in submit.commands and ("x", "@=") in submit.commands, f"{submit.commands}")


if __name__ == "__main__":
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20261127
    rng = random.Random(seed)
    with Scratch("batch") as cwd:
        (cwd / "scripts").mkdir()
        round_trips(rng, cwd / "scripts", int(sys.argv[1]) if len(sys.argv) > 1 else 15)
        control_characters(rng)
        directories()
