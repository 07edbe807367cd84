#!/usr/bin/env python3
"""Sentences of comments in src/ and include/ that begin with Of, What, Who, It or None: no more than there were, and ever fewer.

Such a sentence makes its reader look for the subject ("Of a damaged one."). A comment on a declaration begins with a verb, or with
a noun that names the result. MOST falls with the number of sentences: whoever removes some writes the smaller number here.
"""
import pathlib
import re
import sys
import tempfile

MOST = 80
SLACK = 10  # so that two branches may remove some at the same time
SOURCES = (".h", ".hpp", ".cpp", ".c", ".S")
RIDDLE = re.compile(r"""[("]?(Of|What|Who|It|None)\b(?!')""")
BREAK = re.compile(r"(?<=[.?!])\s+(?=[(\"`]?[A-Z])|(?<=[.?!]\))\s+(?=[(\"`]?[A-Z])")


def comments(text):
    """(number of the first line, text) of each comment: lines of // in one column, and what stands behind code."""
    first, indent, parts = 0, "", []
    for number, line in enumerate(text.splitlines() + [""], 1):
        alone = re.match(r"(\s*)//(?!/) ?(.*)$", line)
        goes_on = alone and alone[2].strip() and not alone[2].startswith("  ")
        if parts and not (goes_on and alone[1] == indent):
            yield first, " ".join(parts)
            parts = []
        if goes_on:
            if not parts:
                first, indent = number, alone[1]
            parts.append(alone[2].strip())
        elif not alone:
            behind = re.match(r"(.*?\S)\s+// ?(.*)$", line)
            if behind and behind[1].count('"') % 2 == 0 and "http" not in behind[1]:
                yield number, behind[2].strip()


def riddles(tree):
    for folder in ("src", "include"):
        for path in sorted((tree / folder).rglob("*")):
            if path.suffix in SOURCES:
                for number, text in comments(path.read_text()):
                    for sentence in BREAK.split(text):
                        if RIDDLE.match(sentence):
                            yield f"{path.relative_to(tree)}:{number}: {sentence}"


def planted_is_found():
    """The test can fail: each word at the beginning of a sentence counts, and elsewhere it does not."""
    riddle = "// Reads it. What follows is a riddle.\nint a;  // Of a damaged one.\n// None: there is none.\nint b;\n"
    plain = '// Reads what follows; none: nothing is there. Of-like words count\n// nowhere else, nor in "a // Of string".\n'
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        (tree / "src").mkdir()
        (tree / "src/a.cpp").write_text(riddle)
        (tree / "src/b.cpp").write_text(plain.replace("Of-like", "such"))
        found = list(riddles(tree))
    return None if len(found) == 3 else f"the test itself: 3 riddles planted, found {found}"


if __name__ == "__main__":
    if wrong := planted_is_found():
        sys.exit(wrong)
    found = list(riddles(pathlib.Path(sys.argv[1])))
    if len(found) > MOST:
        print("\n".join(found))
        sys.exit(f"{len(found)} sentences of comments begin with Of, What, Who, It or None, and there were {MOST}")
    if len(found) < MOST - SLACK:
        sys.exit(f"only {len(found)} are left: write that for MOST into {pathlib.Path(__file__).name}")
