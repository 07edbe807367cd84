#!/usr/bin/env python3
"""No file of src/ over 600 lines, no function over 80, no class over 30 data members: what is longer says why here.

Functions and classes are found by their layout: clang-format puts the first line of a function that is not inside a class, and
its closing brace, at the left margin, and data members of a class at four blanks.
"""
import pathlib
import re
import sys
import tempfile

FILE, FUNCTION, MEMBERS = 600, 80, 30
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
    return None


if __name__ == "__main__":
    wrong = planted_is_found()
    lines = [wrong] if wrong else list(too_long(pathlib.Path(sys.argv[1])))
    print("\n".join(lines))
    sys.exit(bool(lines))
