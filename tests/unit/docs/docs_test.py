#!/usr/bin/env python3
"""What the pages promise of themselves: their bounds, no diary, links and names of files that lead somewhere, a map that has all
of them, and a page of numbers that is what bench/report.py makes of results/.

    docs_test.py ROOT      the pages of that checkout; then the same with one fault planted at a time, each of which must be found
"""
import json
import pathlib
import re
import shutil
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))
import report  # noqa: E402

WIDTH = 110
LINES = {"docs/performance.md": 80, "docs/testing.md": 60}
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
COMMIT = re.compile(r"\b(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,10}\b|\b[0-9a-f]{40}\b")
NAMED = re.compile(r"\b(?:src|tests|tools|bench|models|examples|api)/[A-Za-z0-9_/]+(?:\.[a-z]+)?")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def pages(root):
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]


def complaints(root):
    """Each fault as one line."""
    said = []
    for page in pages(root):
        name, lines = str(page.relative_to(root)), page.read_text().splitlines()
        said += [f"{name}:{k}: {len(line)} characters, at most {WIDTH}" for k, line in enumerate(lines, 1) if len(line) > WIDTH]
        if len(lines) > LINES.get(name, len(lines)):
            said.append(f"{name}: {len(lines)} lines, at most {LINES[name]}")
        for k, line in enumerate(lines, 1):
            # Examples of files, indented by four, may hold both.
            if not line.startswith("    ") and (DATE.search(line) or COMMIT.search(line)):
                said.append(f"{name}:{k}: a date or a commit; runs and their dates belong to results/")
            # A file, a folder, or a file without its ending.
            said += [f"{name}:{k}: no such file or folder: {path}" for path in NAMED.findall(line)
                     if not any((ROOT / (path + ending)).exists() for ending in ("", ".h", ".cpp", ".py"))]
    # Not bound to anything, but read as well.
    for page in [*pages(root), *sorted((root / "results").glob("*.md")), root / "tests" / "README.md"]:
        said += [f"{page.relative_to(root)}: no such file: {link}" for link in LINK.findall(page.read_text())
                 if ":" not in link and not (page.parent / link).exists()]
    listed = {(root / "docs" / link).resolve() for link in LINK.findall((root / "docs" / "README.md").read_text())}
    said += [f"docs/README.md: does not list {page.relative_to(root)}" for page in pages(root)
             if page.resolve() not in listed and page != root / "docs" / "README.md"]
    if (root / "docs" / "performance.md").read_text() != report.page(root / "results"):
        said.append("docs/performance.md: not what bench/report.py makes of results/")
    return said


def append(path, text):
    path.write_text(path.read_text() + text)


FAULTS = {
    "a long line": (lambda root: append(root / "docs/usage.md", "x" * (WIDTH + 1) + "\n"), "docs/usage.md:"),
    "a page of numbers that is too long": (lambda root: append(root / "docs/performance.md", "\n" * 80), "docs/performance.md: "),
    "a page of tests that is too long": (lambda root: append(root / "docs/testing.md", "\n" * 60), "docs/testing.md: "),
    "a date": (lambda root: append(root / "docs/limits.md", "seen on 2026-11-26\n"), "docs/limits.md:"),
    "a commit": (lambda root: append(root / "docs/limits.md", "since 0a30d2c\n"), "docs/limits.md:"),
    "a source file that is gone": (lambda root: append(root / "docs/usage.md", "see src/base/gone.h\n"), "docs/usage.md:"),
    "a dead link": (lambda root: append(root / "README.md", "[gone](docs/gone.md)\n"), "README.md:"),
    "a page that no map has": (lambda root: (root / "docs/new.md").write_text("# New\n"), "docs/README.md: does not list"),
    "a number changed by hand": (
        lambda root: append(root / "docs/performance.md", " "), "docs/performance.md: not what bench/report.py makes"),
    "a run that nobody made a page of": (
        lambda root: (root / "results/missed.json").write_text("[]\n"), "docs/performance.md: not what bench/report.py makes"),
}


def as_measured(kind, run):
    """A run of results/ as the bench script writes it with --json."""
    if kind == "store":
        return {name: run[name] for name in ("rows", "mapped_s") if name in run}
    return {name: {"calls": lambda row: {**row, "fermata_ns": row["native_ns"] + row.get("added_ns", 0)},
                   "collectives": lambda row: {**row, "native_ns": 0, "ccd_ns": 0, "ccd_ratio": row["ratio"],
                                               "ccd_interval": row["interval"]},
                   "safe_state": lambda row: {phase: [ms[0], ms[0], ms[1]] for phase, ms in row.items() if phase != "checkpoints"},
                   "programs": lambda row: row}[kind](row) for name, row in run["rows"].items()}


def adding(place):
    """The newest run of each kind, measured once more, adds itself and changes no number of the page."""
    results = place / "results"
    said, page = [], report.page(results)
    for kind in report.KINDS:
        newest = report.runs(results, kind)[-1]
        file = place / "measured.json"
        file.write_text(json.dumps(as_measured(kind, newest)))
        report.add(results, kind, file, newest["machine"], "this test")
        if report.runs(results, kind)[-1]["command"] != "this test" or report.page(results) != page:
            said.append(f"bench/report.py add {kind}: the page is another one")
        half = as_measured(kind, newest)
        rows = half["rows"] if kind == "store" else half
        rows.pop(next(iter(rows)))
        file.write_text(json.dumps(half))
        try:
            report.add(results, kind, file, newest["machine"], "this test")
            said.append(f"bench/report.py add {kind}: takes half a run")
        except SystemExit:
            pass
    return said


def main():
    found = complaints(ROOT)
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(ROOT / "results", pathlib.Path(scratch) / "results")
        found += adding(pathlib.Path(scratch))
    for line in found:
        print(line)
    missed = []
    for fault, (plant, where) in FAULTS.items():
        with tempfile.TemporaryDirectory() as scratch:
            place = pathlib.Path(scratch)
            for name in ("docs", "results"):
                shutil.copytree(ROOT / name, place / name)
            (place / "tests").mkdir()
            for name in ("README.md", "CONTRIBUTING.md", "tests/README.md"):
                shutil.copy(ROOT / name, place / name)
            before = complaints(place)
            plant(place)
            if not any(line.startswith(where) for line in complaints(place) if line not in before):
                missed.append(fault)
    for fault in missed:
        print(f"this test does not find {fault}")
    sys.exit(bool(found or missed))


if __name__ == "__main__":
    main()
