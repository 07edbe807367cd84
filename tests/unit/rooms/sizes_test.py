#!/usr/bin/env python3
"""No file of src/ over 600 lines, no function over 80, no class over 30 data members: what is longer says why here. No folder of src/
and tests/ has more than 21 files, a file and its header being one, unless a row of docs/architecture.md says why they lie side by side.

Functions and classes are found by their layout: clang-format puts the first line of a function that is not inside a class, and
its closing brace, at the left margin, and data members of a class at four blanks.
"""
import pathlib
import re
import sys
import tempfile

FILE, FUNCTION, MEMBERS, FLAT = 600, 80, 30, 21
# Tables: lines of one kind, one after the other.
TABLES = {"src/launch/launcher_options.cpp": "all_known"}
SOURCES = (".h", ".cpp", ".c")


def functions(lines):
    """(name, number of the first line, length)"""
    begin = None
    for number, line in enumerate(lines, 1):
        if begin is None and re.match(r"[\w\[~].*\{$", line) and not re.match(r"(namespace|struct|class|enum|union|extern)\b", line):
            head = " ".join(lines[max(0, number - 6):number])
            name = re.findall(r"([\w:~]+)\(", head[head.rfind(";") + 1:] if ";" in head else head)
            begin = (name[0] if name else None, number)
        if begin and line.startswith("}"):
            if begin[0]:  # else a table of values
                yield begin[0], begin[1], number - begin[1] + 1
            begin = None


def classes(text):
    """(name, number of the first line, data members)"""
    for match in re.finditer(r"^(?:class|struct)\b[^;{]*?(\w+)(?: final)?(?: : [^{]*)?\s*\{\n(.*?)^\};", text, re.M | re.S):
        yield match[1], text.count("\n", 0, match.start()) + 1, members(match[2])


def members(body):
    body = re.sub(r"//[^\n]*|/\*.*?\*/", "", body, flags=re.S)
    found, text, depth = 0, "", 0
    for char in body:  # statements at the level of the class: what is in braces or angle brackets counts once
        depth += char in "{(" 
        depth -= char in "})"
        if char == ";" and depth == 0:
            found += data(text)
            text = ""
        elif char == "}" and depth == 0 and ")" in text:
            text = ""  # a function's body; a member's initialiser or an inner type goes on to its semicolon
        elif depth == 0 or char in "{(":
            text += char
    return found


def data(statement):
    words = re.sub(r"\b(public|private|protected):", "", statement).strip()
    if not words or re.match(r"(using|friend|typedef|static|template|enum|struct|class|union|explicit|virtual)\b", words):
        return 0
    plain = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", words))
    if "(" in plain.split("=")[0]:
        return 0  # a function
    return 1 + plain.split("{")[0].count(",")


def too_long(tree):
    for path in sorted((tree / "src").rglob("*")):
        if path.suffix not in SOURCES:
            continue
        name, text = str(path.relative_to(tree)), path.read_text()
        lines = text.split("\n")
        if len(lines) > FILE + 1:
            yield f"{name}: {len(lines) - 1} lines, at most {FILE}"
        for function, number, length in functions(lines):
            if length > FUNCTION and TABLES.get(name) != function:
                yield f"{name}:{number}: {function} has {length} lines, at most {FUNCTION}"
        for one, number, count in classes(text):
            if count > MEMBERS:
                yield f"{name}:{number}: {one} has {count} data members, at most {MEMBERS}"


def reasons(page):
    """The folders of the table behind `<!-- flat -->`."""
    rows = page.partition("<!-- flat -->\n")[2].lstrip().split("\n\n")[0].splitlines()[2:]
    return {row.split("|")[1].strip() for row in rows if row.split("|")[2].strip()}


def too_flat(tree):
    page = tree / "docs/architecture.md"
    allowed, used = reasons(page.read_text()) if page.exists() else set(), set()
    for folder in sorted(path for top in ("src", "tests") for path in (tree / top).rglob("*") if path.is_dir()):
        files = {path.stem for path in folder.iterdir() if path.is_file() and path.name != "CMakeLists.txt"}
        if len(files) <= FLAT or folder.name == "__pycache__":
            continue
        name = str(folder.relative_to(tree))
        because = {row for row in allowed if name == row or name.startswith(row + "/")}
        used |= because
        if not because:
            yield f"{name}: {len(files)} files side by side, at most {FLAT} without a reason in docs/architecture.md"
    for row in sorted(allowed - used):
        yield f"docs/architecture.md: {row} has no more than {FLAT} files: it needs no reason"


def planted_is_found():
    """The test can fail: one planted fault of each kind, and what is allowed beside it."""
    right = "int f() {\n" + "    g();\n" * 78 + "}\nclass A {\n  public:\n    int get() const { return a_; }\n\n  private:\n    int a_ = 0, b_[2];\n};\n"
    planted = {
        "nothing": right,
        "a long function": right.replace("    g();\n", "    g();\n" * 2),
        "a long file": right + "\n" * FILE,
        "a large class": right.replace("    int a_ = 0, b_[2];\n", "".join(f"    std::map<int, int> m{i}_{{}};\n" for i in range(31))),
    }
    for name, text in planted.items():
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "src").mkdir()
            (tree / "src/a.cpp").write_text(text)
            found = list(too_long(tree))
            if bool(found) != (name != "nothing"):
                return f"the test itself: {name} planted, found {found}"
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        (tree / "src/room").mkdir(parents=True)
        (tree / "docs").mkdir()
        for number in range(FLAT):
            for ending in ("h", "cpp"):
                (tree / f"src/room/{number}.{ending}").touch()
        row = "<!-- flat -->\n\n| folder | why |\n| --- | --- |\n| src/room | a kind each |\n"
        for files, page, faults in ((FLAT, "", 0), (FLAT, row, 1), (FLAT + 1, "", 1), (FLAT + 1, row, 0)):
            (tree / f"src/room/{files - 1}.h").touch()
            (tree / "docs/architecture.md").write_text(page)
            if len(found := list(too_flat(tree))) != faults:
                return f"the test itself: {files} files and the page '{page}', found {found}"
    return None


if __name__ == "__main__":
    wrong = planted_is_found()
    lines = [wrong] if wrong else [*too_long(pathlib.Path(sys.argv[1])), *too_flat(pathlib.Path(sys.argv[1]))]
    print("\n".join(lines))
    sys.exit(bool(lines))
