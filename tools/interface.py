#!/usr/bin/env python3
"""The version of what crosses between the halves of a process, as a number that nobody has to remember to change.

    interface.py FOLDER [HEADER]
    interface.py FOLDER record BUILD [NOTE]      the number of that build's sources becomes one that later builds continue

The upper half is in the image as the build had it that started the program; the lower half is of the build that restarts it.
What both know is what headers say that both include. The number is a hash of their text, comments and blanks aside; HEADER is
written when it is another one than before. Without HEADER the headers are listed.

An image of another number is continued where interfaces.txt says that it can be (docs/upgrades.md), and refused otherwise.
"""
import hashlib
import pathlib
import re
import sys

UPPER = ("front", "clock", "starter")
LOWER = ("lower", "split")
# Written by one lower half as bytes, and read by another one; what fronts say to node daemons.
ALSO = ("lower/image_parts.h", "clock/messages.h")
RECORDS = "split/interfaces.txt"


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


def records(root):
    """(number, bridge, version, what becomes of it, note) of each line, oldest first."""
    lines = [line.split(maxsplit=4) for line in (root / RECORDS).read_text().splitlines() if line.strip() and not line.startswith("#")]
    assert all(len(line) == 5 and line[3] in ("continued", "refused") for line in lines), f"{RECORDS}: five words a line"
    return lines


def number_of_build(build):
    def found(header, pattern):
        return int(re.search(pattern, (pathlib.Path(build) / "generated" / header).read_text())[1], 16)
    return f'{found("fermata_interface.h", "table . 0x([0-9a-f]{8})") ^ found("fermata_table.h", "kAbiHash = 0x([0-9a-f]{8})"):08x}'


def record(root, build, note="no note"):
    own = number_of_build(build)
    if own in [line[0] for line in records(root)]:
        return
    bridge = re.search(r"kBridgeVersion = (\d+)", (root / "split/bridge.h").read_text())[1]
    version = re.search(r"project\(fermata VERSION (\S+)", (root.parent / "CMakeLists.txt").read_text())[1]
    with open(root / RECORDS, "a") as file:
        file.write(f"{own}  {bridge}  {version}  continued  {note}\n")


def text_of_header(root, names):
    rows = "".join(f'    {{0x{number}, {bridge}, "{version}", {"true" if word == "continued" else "false"}}},\n'
                   for number, bridge, version, word, _ in records(root))
    return ("// Made by tools/interface.py.\n#pragma once\n#include <cstdint>\n\nnamespace fermata::split {\n"
            "// The version of what both halves of a process know (image, bridge, tables in upper memory). `table`: the MPI\n"
            "// table's hash.\n"
            f"constexpr uint32_t interface_version(uint32_t table) {{ return table ^ 0x{number(root, names):08x}; }}\n\n"
            "// Interfaces that builds have had, oldest first (split/interfaces.txt).\n"
            "struct KnownInterface {\n    uint32_t number, bridge;\n    const char* version;\n    bool continued;\n};\n"
            f"inline constexpr KnownInterface kKnownInterfaces[] = {{\n{rows}}};\n"
            "}  // namespace fermata::split\n")


def main(folder, header=None, *more):
    root = pathlib.Path(folder)
    names = crossing(root)
    if header == "record":
        record(root, *more)
        return
    if header is None:
        print("\n".join(names))
        return
    text = text_of_header(root, names)
    path = pathlib.Path(header)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
