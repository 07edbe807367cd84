#!/usr/bin/env python3
"""Which room of the source includes headers of which other room: only as the tables of docs/architecture.md say.

A table begins after a line `<!-- arrows: FOLDER -->` and lists the rooms of that folder, lowest first: a row names
a room and the rooms whose headers it may include; one without a name goes on with the row above. Those have to stand above it, so arrows never make a circle. A room that no
row names, an arrow that no row allows, and a row that allows an arrow nobody uses all fail this test. So does a preset of
CMakePresets.json that builds some rooms and leaves out one that they may include.
"""
import json
import pathlib
import re
import sys
import tempfile

INCLUDE = re.compile(r'#include "([\w/]+)/[\w.]+"')
SOURCES = (".h", ".cpp", ".c", ".S")
# Generators write includes into the sources they make; those are compiled as part of these rooms.
GENERATORS = {
    "collectives.py": "front/calls",
    "front_c.py": "front/abi",
    "front_fortran.py": "front/fortran",
    "passthrough.py": "front/calls",
    "direct_entry.py": "front/abi",
    "front_beyond.py": "front/abi",
}


def tables(page):
    """{folder: [(room, {rooms it may include})]} in the order of the page."""
    found, rows = {}, None
    for line in page.splitlines():
        if begin := re.match(r"<!-- arrows: (\S+) -->", line):
            rows = found.setdefault(begin[1], [])
        elif rows is not None and line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            allowed = {room for room in re.split(r"[,\s]+", cells[1]) if room not in ("", "–")}
            if cells[0] == "" and rows:
                rows[-1][1].update(allowed)
            elif cells[0] not in ("room", "") and set(cells[0]) != {"-"}:
                rows.append((cells[0], allowed))
        elif rows:
            rows = None
    return found


def includes(tree):
    """(file, line number, room it is compiled in, path included), rooms and paths below src/."""
    for path in sorted((tree / "src").rglob("*")):
        if path.suffix in SOURCES:
            yield from lines_of(path, tree, str(path.parent.relative_to(tree / "src")))
    for name, room in GENERATORS.items():
        if (path := tree / "tools/fmgen" / name).exists():
            yield from lines_of(path, tree, room)


def lines_of(path, tree, room):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for included in INCLUDE.findall(line):
            yield path.relative_to(tree), number, room, included


def wrong_rows(folder, rows):
    above = set()
    for room, allowed in rows:
        for other in sorted(allowed - above):
            yield f"docs/architecture.md: {folder}/{room} may include {other}, which does not stand above it"
        above.add(room)


def wrong_arrows(tree, folder, rows):
    """One line for each include that no row allows, and for each allowed arrow that no include uses."""
    allowed, used = dict(rows), set()
    prefix = folder.removeprefix("src").strip("/")

    def room_in(path):
        inside = path if not prefix else path[len(prefix) + 1:] if path.startswith(prefix + "/") else ""
        return inside.split("/")[0]

    for path, number, source, included in includes(tree):
        room, other = room_in(source), room_in(included)
        if not room or not other or not (tree / folder / other).is_dir() or room == other:
            continue
        if room not in allowed:
            yield f"{path}:{number}: docs/architecture.md has no row for {folder}/{room}"
        elif other not in allowed[room]:
            yield f"{path}:{number}: {folder}/{room} may not include {included}/: docs/architecture.md allows no such arrow"
        used.add((room, other))
    for room, others in rows:
        if not (tree / folder / room).is_dir():
            yield f"docs/architecture.md: there is no {folder}/{room}"
        for other in sorted(others):
            if (room, other) not in used:
                yield f"docs/architecture.md: {folder}/{room} includes nothing of {other}: take it out of the row"


def wrong_presets(tree, rows):
    """A preset that nobody builds every day shall not find out later."""
    path = tree / "CMakePresets.json"
    for preset in json.loads(path.read_text())["configurePresets"] if path.exists() else []:
        words = preset.get("cacheVariables", {}).get("FERMATA_SOME_ROOMS", "").split(";")
        some = {word.removeprefix("src/") for word in words if word.startswith("src/")}
        for room, allowed in rows:
            for other in sorted(allowed - some) if room in some else []:
                yield f"CMakePresets.json: {preset['name']} builds {room} without {other}"


def complaints(tree):
    found = tables((tree / "docs/architecture.md").read_text())
    if not found:
        yield "docs/architecture.md has no table of arrows"
    for folder, rows in found.items():
        yield from wrong_rows(folder, rows)
        yield from wrong_arrows(tree, folder, rows)
    yield from wrong_presets(tree, found.get("src", []))


# ---- the test's own test: a small tree that is right, and what is planted into it

RIGHT = {
    "docs/architecture.md": "<!-- arrows: src -->\n\n| room | may include |\n| --- | --- |\n| low | – |\n| high | low |\n\n"
                            "<!-- arrows: src/high -->\n\n| room | may include |\n| --- | --- |\n| a | |\n| b | a |\n",
    "CMakePresets.json": '{"configurePresets": [{"name": "some", "cacheVariables": {"FERMATA_SOME_ROOMS": "src/low;src/high"}}]}',
    "src/low/low.h": "",
    "src/high/a/a.h": '#include "low/low.h"\n',
    "src/high/b/b.cpp": '#include "high/a/a.h"\n',
}
PLANTED = {
    "an arrow up": ("src/low/low.cpp", '#include "high/a/a.h"\n'),
    "an arrow up inside a room": ("src/high/a/a.cpp", '#include "high/b/b.h"\n'),
    "a room that no row names": ("src/other/x.cpp", '#include "low/low.h"\n'),
    "an arrow that nobody uses": ("src/high/b/b.cpp", "\n"),
    "a preset without a room": ("CMakePresets.json", RIGHT["CMakePresets.json"].replace("src/low;", "")),
    "a row that allows an arrow up": ("docs/architecture.md", RIGHT["docs/architecture.md"].replace("| a | |", "| a | b |")),
}


def planted_is_found():
    for name, files in [("nothing", {}), *((name, dict([plant])) for name, plant in PLANTED.items())]:
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            for path, text in {**RIGHT, **files}.items():
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                (tree / path).write_text(text)
            if bool(said := list(complaints(tree))) != bool(files):
                yield f"this test is broken: planted {name}, and it says {said}"


def main():
    said = [*planted_is_found(), *complaints(pathlib.Path(sys.argv[1]))]
    print("\n".join(said))
    return 1 if said else 0


sys.exit(main())
