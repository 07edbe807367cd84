#!/usr/bin/env python3
"""Writes docs/conformance.md: what of MPI is called, compared and held across a restart by the tests, and what is not.

    coverage.py [--check]      --check: only say what would be written

Functions are counted from real runs of the conformance programs (functions they called), held objects from the traps'
programs with the recorder: system.trap.CASE.LIBRARY restarts each of them on both libraries.
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import conformance_test as conformance
import harness
from harness import BUILD

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from fmgen import table  # noqa: E402

LIBRARIES = {"openmpi": "Open MPI", "mpich": "MPICH"}
# Why a function is not called, the first rule that fits.
REASONS = (
    (r"MPI_(Comm_(spawn|spawn_multiple|accept|connect|join)|Open_port|Close_port|(Un)?[Pp]ublish_name|Lookup_name)",
     "dynamic processes: tests of their own (system.dynamic)"),
    (r"MPI_Abort", "ends the job"),
    (r"MPI_T_(event|source|category_get.*event)", "events: neither library has any"),
    (r"MPI_T_", "MPICH 4.0.2 as built by Debian has no performance variables and no enumerations"),
    (r"MPI_(Comm|File|Win)_create_errhandler|MPI_Init_thread|MPI_Init", "called by every program of the tests in this or the other form"),
    (r"MPI_.*_(toint|fromint)|MPI_Abi_.*", "MPI-5.0: no library here has it"),
    (r"MPI_(Comm|Session)?_?(attach|detach|flush|iflush)_buffer.*|MPI_Buffer_i?flush", "MPI-4.1: no library here has it"),
    (r"MPI_Session_c2f|MPI_Session_f2c|MPI_Status_.*f0?8?.*|MPI_Status_f082?.*", "conversions for Fortran; no library here has them as functions"),
    (r"MPI_Remove_error.*|MPI_Type_get_value_index|MPI_Status_(get|set)_(error|source|tag).*|MPI_Precv_init_c|MPI_Psend_init_c|"
     r"MPI_Status_set_elements_c|MPI_Session_set_info|MPI_Get_hw.*|MPI_Request_get_status_.*", "later than MPI-4.0: no library here has it"),
    (r"MPI_.*_(c2f|f2c)|MPI_Aint_(add|diff)", "a macro in that library's mpi.h"),
    (r"MPI_.*", "no case yet"),
)


def called(prefix):
    return set(pathlib.Path(f"{prefix}.functions.0").read_text().split()) | set(
        pathlib.Path(f"{prefix}.functions.1").read_text().split())


# Makers of which a checkpoint never holds anything, and why.
NEVER_HELD = {
    "MPI_Comm_spawn": "a checkpoint is refused while there are spawned processes (system.dynamic.spawn)",
    "MPI_Comm_spawn_multiple": "as MPI_Comm_spawn (system.dynamic.several)",
    "MPI_Comm_get_parent": "spawned processes run without Fermata; elsewhere it is MPI_COMM_NULL",
    "MPI_Type_match_size": "gives out predefined types only",
}


def traps(library):
    """(program, case, in the table)"""
    text = (ROOT / "tests/programs/trap.c").read_text()
    table = text[text.index("} cases[] = {"):]
    if library == "openmpi":
        table = re.sub(r"#ifndef OPEN_MPI\n.*?#endif\n", "", table, flags=re.S)  # what it lacks natively
    found = [("trap", case, case) for case in re.findall(r'^    \{"([a-z_]+)", [a-z_]+\},', table, re.M)]
    if library == "openmpi":  # Debian's MPICH has no dynamic processes
        found += [("dynamic", case, f"dynamic {case}") for case in ("ports", "join")]
    return found


def held(library, cwd):
    """(kind, maker) -> {case: used afterwards}"""
    found = collections.defaultdict(dict)
    for program, case, name in traps(library):
        prefix = cwd / f"{program}-{library}-{case}"
        words = [f"mpiexec.{library}", "-n", "4"] + (["--oversubscribe", "--bind-to", "none"] if library == "openmpi" else [])
        done = subprocess.run([*words, str(BUILD / "tests/conformance" / f"{program}.{library}"), case], capture_output=True,
                              text=True, timeout=60, cwd=cwd, env=dict(os.environ, RECORD_PREFIX=str(prefix)),
                              stdin=subprocess.DEVNULL)
        harness.check(done.returncode == 0, f"{program}.{library} {case}: {done.stdout[-800:]}{done.stderr[-800:]}")
        for rank in range(4):
            for line in pathlib.Path(f"{prefix}.held.{rank}").read_text().splitlines():
                kind, maker, use = line.split()
                found[kind, maker][name] = found[kind, maker].get(name, False) or use == "used"
    return found


def makers():
    """Functions that give out a handle, by kind; siblings that differ in the width of counts are one."""
    by_kind = collections.defaultdict(list)
    for f in table.functions():
        if f.name.endswith("_c") or not f.libraries or f.chapter in ("abi/f2c", "tools(MPI_T)", "removed(MPI-1)"):
            continue
        for p in f.params:
            if p.handle and p.dir == "out" and not p.is_array and p.handle != "keyval":
                by_kind[p.handle].append(f.name)
    return by_kind


def reason(name):
    return next(text for pattern, text in REASONS if re.fullmatch(pattern + ".*", name))


def report(cwd):
    natively = {library: called(conformance.native(library, cwd)) for library in LIBRARIES}
    under = {library: called(conformance.fermata(library, library, cwd)) for library in LIBRARIES}
    has = {library: {f.name for f in table.functions() if library in f.libraries} for library in LIBRARIES}
    rules = [rule for rule in json.loads((conformance.HERE / "differences.json").read_text()) if "launcher" not in rule]
    alive = {library: held(library, cwd) for library in LIBRARIES}
    out = ["# Conformance", "",
           "Written by `tests/conformance/coverage.py` from runs of the programs; not by hand. How it is tested: [testing.md](testing.md).", "",
           "`native`: called natively; `Fermata`: called under Fermata, error class and outputs of each call compared with the native run. "
           "Where a library lacks a function, the other's native run, or its plain sibling, says what is expected.", "",
           "| chapter | functions | " + " | ".join(f"{n} has | native | Fermata" for n in LIBRARIES.values()) + " |",
           "| --- | --: |" + " --: | --: | --: |" * len(LIBRARIES)]
    chapters = collections.OrderedDict()
    for f in table.functions():
        chapters.setdefault(f.chapter, []).append(f.name)
    total = collections.Counter()
    for chapter, names in chapters.items():
        row = [len(names)]
        for library in LIBRARIES:
            row += [len(has[library] & set(names)), len(natively[library] & set(names) & has[library]), len(under[library] & set(names))]
        total.update(dict(enumerate(row)))
        out.append(f"| {chapter} | " + " | ".join(map(str, row)) + " |")
    out += ["| **all** | " + " | ".join(f"**{total[i]}**" for i in range(len(row))) + " |", "", "## Not called under Fermata", ""]
    missing = collections.OrderedDict()
    for f in table.functions():
        where = [LIBRARIES[l] for l in LIBRARIES if f.name not in under[l]]
        if where and (f.libraries or f.name in under["mpich"] | under["openmpi"] or len(where) == 2):
            missing.setdefault((reason(f.name), " and ".join(where)), []).append(f.name[4:])
    for (why, where), names in missing.items():
        out.append(f"- {why} (on {where}): {', '.join(names)}")
    out += ["", "## Held across checkpoint and restart, then used", "",
            "Every trap (`system.trap.*`; two cases of `system.dynamic.*`) is stopped where these objects are alive, killed, continued on "
            "the same and on the other library, and checks what it does with them. *kept*: alive there, but not handed to a call afterwards.", "",
            "| kind | made by | program for Open MPI | program for MPICH |", "| --- | --- | --- | --- |"]
    lacking = []
    for kind, names in makers().items():
        for name in names:
            cells = []
            for library in LIBRARIES:
                cases = {}
                for maker in (name, name + "_c"):
                    cases.update(alive[library].get((kind, maker), {}))
                cells.append(", ".join(c if used else f"{c} (kept)" for c, used in sorted(cases.items())[:3]))
            if any(cells):
                out.append(f"| {kind} | {name[4:]} | {cells[0] or '–'} | " + ("the same" if cells[0] == cells[1] else cells[1] or "–") + " |")
            else:
                lacking.append(f"- {name[4:]} ({kind}): {NEVER_HELD.get(name, 'no case yet')}")
    out += ["", "Not held by a trap:", "", *lacking, "",
            "## Where a call may differ from the native library", ""]
    for rule in rules:
        out.append(f"- {LIBRARIES.get(rule.get('library'), 'both')}: {rule['reason']}")
    return "\n".join(map(wrapped, out)) + "\n"


def wrapped(line):
    """Of 110 characters, as all pages are; tables stay as they are."""
    return line.rstrip() if line.startswith("|") else textwrap.fill(
        line, 110, subsequent_indent="  " if line.startswith("- ") else "", break_long_words=False, break_on_hyphens=False)


def main():
    with harness.Scratch("coverage") as cwd:
        text = report(cwd)
    if "--check" in sys.argv:
        print(text)
    else:
        page = ROOT / "docs" / "conformance.md"
        exports = page.read_text().partition("<!-- exports:")  # tools/exports.py's part stays
        page.write_text(text + ("\n" + exports[1] + exports[2] if exports[1] else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
