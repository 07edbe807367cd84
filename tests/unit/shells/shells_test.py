#!/usr/bin/env python3
"""Every command and option of `--help` is in its manual page and offered by bash, and nothing else is; a page is what man takes.

    shells_test.py FERMATA SHARE      SHARE: the folder with man/ and bash-completion/
"""
import pathlib
import re
import shutil
import subprocess
import sys

FERMATA, SHARE = sys.argv[1], pathlib.Path(sys.argv[2])
# What bash would do for "fermata WORDS…<TAB>", a word a line.
ASK = """source "$1"; shift
COMP_WORDS=(fermata "$@"); COMP_CWORD=$#; _fermata
printf '%s\\n' "${COMPREPLY[@]}" | sort -u"""


def said(*words):
    return subprocess.run([FERMATA, *words], check=True, capture_output=True, text=True).stdout


def offered(*words):
    script = SHARE / "bash-completion/completions/fermata"
    return set(subprocess.run(["bash", "-uc", ASK, "bash", script, *words], check=True, capture_output=True, text=True).stdout.split())


def options(text):
    """What stands in the column of options."""
    part = re.search(r"^Options:\n(.*?)\n\n", text, re.M | re.S)[1]
    return {name for line in re.findall(r"^  (-\S+)", part, re.M) for name in line.split(",")}


def in_manual(text):
    """What stands in bold at the head of an option."""
    text = text.replace("\\-", "-")
    part = text.split(".SH OPTIONS\n")[1].split(".SH ")[0]
    return {name for head in re.findall(r"^\.TP\n(.*)", part, re.M) for name in re.findall(r"\\fB(-[^\\]+)\\fR", head)}


def main():
    whole = said("help")
    commands = set(re.findall(r"^  ([a-z]+) ", whole.split("Subcommands:\n")[1].split("\n\n")[0], re.M))
    assert len(commands) > 10, commands
    pages = {page.name for page in (SHARE / "man/man1").iterdir()}
    assert pages == {"fermata.1"} | {f"fermata-{name}.1" for name in commands}, pages
    assert offered("") == commands | {"help", "--help", "--version"}, offered("")
    count = 0
    for name in sorted(commands):
        page = (SHARE / f"man/man1/fermata-{name}.1").read_text()
        wanted = options(said(name, "--help"))
        count += len(wanted)
        assert in_manual(page) == wanted, (name, in_manual(page) ^ wanted)
        assert offered(name, "-") == wanted, (name, offered(name, "-") ^ wanted)
    assert count > 100, count
    assert offered("restart", "--mpi", "mp") == {"mpich"}
    assert offered("run", "--layout", "") == {"files", "shared", "node"}
    assert offered("run", "-n", "2", "--", "./nothing", "--ckpt") == set()  # the program's words
    assert "run" in offered("help", "r")
    for tool in ("mandoc -Tlint -W warning", "groff -Kutf8 -man -Tutf8 -ww -z"):
        if shutil.which(tool.split()[0]):
            for page in sorted((SHARE / "man/man1").iterdir()):
                done = subprocess.run([*tool.split(), page], capture_output=True, text=True)
                faults = [line for line in (done.stdout + done.stderr).splitlines() if "missing date" not in line]
                assert not faults, faults
    for shell, place in (("zsh", "zsh/site-functions/_fermata"), ("fish", "fish/vendor_completions.d/fermata.fish")):
        if shutil.which(shell):
            subprocess.run([shell, "-n", SHARE / place], check=True)
    print(f"{len(commands)} commands, {count} options")


main()
