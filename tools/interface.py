#!/usr/bin/env python3
"""The version of what crosses between the halves of a process, as a number that nobody has to remember to change.

    interface.py FOLDER [HEADER]

The upper half is in the image as the build had it that started the program; the lower half is of the build that restarts it.
What both know is what headers say that both include. The number is a hash of their text, comments and blanks aside; HEADER is
written when it is another one than before. Without HEADER the headers are listed.
"""
import hashlib
import pathlib
import re
import sys

UPPER = ("front", "clock", "starter")
LOWER = ("lower", "split")
# Written by one lower half as bytes, and read by another one.
ALSO = ("lower/image_parts.h",)


def included(root, path):
    return [root / name for name in re.findall(r'^\s*#\s*include "([^"]+)"', path.read_text(), re.M) if (root / name).exists()]


def reached(root, rooms):
    """All files of the rooms, and what they include."""
    found, waiting = set(), [path for room in rooms for path in (root / room).rglob("*") if path.suffix in (".cpp", ".h", ".c")]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += included(root, path)
    return found


def crossing(root):
    both = reached(root, UPPER) & reached(root, LOWER)
    return sorted(path.relative_to(root).as_posix() for path in both if path.suffix == ".h") + list(ALSO)


def text_of(path):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", path.read_text(), flags=re.S)
    return " ".join(text.split())


def number(root, names):
    text = "\n".join(f"{name}\n{text_of(root / name)}" for name in names)
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


def main(folder, header=None):
    root = pathlib.Path(folder)
    names = crossing(root)
    if header is None:
        print("\n".join(names))
        return
    text = ("// Made by tools/interface.py.\n#pragma once\n#include <cstdint>\n\nnamespace fermata::split {\n"
            "// The version of what both halves of a process know (image, bridge, tables in upper memory). `table`: the MPI\n"
            "// table's hash.\n"
            f"constexpr uint32_t interface_version(uint32_t table) {{ return table ^ 0x{number(root, names):08x}; }}\n"
            "}  // namespace fermata::split\n")
    path = pathlib.Path(header)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
