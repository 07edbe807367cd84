#!/usr/bin/env python3
"""Manual pages and completion of shells, as a folder `share` that is installed.

    shells.py FERMATA FOLDER
"""
import pathlib
import re
import subprocess
import sys

PLACES = {"bash": "bash-completion/completions/fermata", "zsh": "zsh/site-functions/_fermata", "fish": "fish/vendor_completions.d/fermata.fish"}


def said(fermata, *words):
    return subprocess.run([fermata, "help", *words], check=True, capture_output=True, text=True).stdout


def main(fermata, folder):
    share = pathlib.Path(folder)
    commands = re.findall(r"^  ([a-z]+) ", said(fermata).split("Subcommands:\n")[1].split("\n\n")[0], re.M)
    made = {place: said(fermata, "--as", shell) for shell, place in PLACES.items()}
    made["man/man1/fermata.1"] = said(fermata, "--as", "man")
    made |= {f"man/man1/fermata-{command}.1": said(fermata, "--as", "man", command) for command in commands}
    for place, text in made.items():
        (share / place).parent.mkdir(parents=True, exist_ok=True)
        (share / place).write_text(text)
    (share / "made").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
