"""Generates the upper-half bodies of functions without protocol meaning, and a fallback for every other one.

    python3 -m fmgen.passthrough OUTPUT_DIRECTORY

front_pass.cpp: fm_X for the functions whose wrapper is "pass": virtual handles become real ones, one crossing,
errors go to the object's handler. front_fallback.cpp: weak fm_X for everything, which answers
MPI_ERR_UNSUPPORTED_OPERATION with one line; a real fm_X anywhere in the library replaces it.
"""

import sys
from pathlib import Path

from fmgen import direct_entry, table
from fmgen.headers import write_if_changed

# Data access on files that all members call together: the collective clock must know.
COLLECTIVE_FILE_WORDS = ("_all", "_ordered", "_set_size", "_preallocate", "_sync", "_seek_shared")
SEEKING_FILE_WORDS = ("_seek", "_seek_shared", "_get_position_shared", "_set_size")
REAL_OF = {"comm", "datatype", "op", "win", "file"}
# A copy of a rank packs for itself, and has no communicators of the library but its own.
PACKS = {"MPI_Pack", "MPI_Unpack", "MPI_Pack_size"}
TEMPORARY = {"info": "TempInfo", "group": "TempGroup"}


def is_collective(f):
    return f.chapter == "io" and f.short.startswith("File_") and any(
        f.short.endswith(w) or w + "_" in f.short for w in COLLECTIVE_FILE_WORDS)


def is_access(f):
    """A one-sided call on a window: the collective clock must know (AccessScope)."""
    return f.chapter == "rma" and any(p and p.handle == "win" and "*" not in t for t, _, p in table.fm_params(f))


def is_split_half(f):
    return f.chapter == "io" and f.short.startswith("File_") and f.short.endswith(("_begin", "_end"))


def sequential_check(f, owner):
    """What a file of MPI_MODE_SEQUENTIAL has not (MPI-4.0 14.2.1): refused_as_sequential."""
    if f.chapter != "io" or not f.short.startswith("File_") or f.short.endswith("_end"):
        return []
    data = next((p.kind for _, _, p in table.fm_params(f) if p and p.kind.startswith("buffer")), None)
    if "_ordered" in f.short or (data and "_shared" in f.short):
        return []
    if not data and not f.short.endswith(SEEKING_FILE_WORDS):
        return []
    access = {None: "none", "buffer_in": "write", "buffer_out": "read"}[data]
    return [f"    if (refused_as_sequential({owner}, Access::{access})) "
            f"return call.finish({owner}, FM_ERR_UNSUPPORTED_OPERATION);"]


def split_body(f):
    """Split collectives: FileObject::split."""
    names = [n for _, n, _ in table.fm_params(f)]
    out = [f'    Call call("{f.name}");', f"    FileObject* file = find({names[0]});"]
    if f.short.endswith("_end"):
        args = ", ".join(["to_real(fh)", *names[1:]])
        return "\n".join(out + [
            "    if (file == nullptr || !file->split)  // the library names the error",
            f"        return call.finish(fh, LOWER({f.short})({args}));",
            "    file->split = false;", "    if (status != nullptr) *status = file->split_status;", "    return 0;"])
    args = ", ".join("to_real(" + n + ")" if n in ("fh", "datatype") else n for n in names)
    if "_ordered" in f.short:
        out.append("    note_shared_pointer(fh);")
    return "\n".join(out + sequential_check(f, names[0]) + [
        "    if (file != nullptr && file->split) return call.finish(fh, FM_ERR_IO);", "    Status status{};",
        "    CollectiveScope scope(call, clock_of(fh));",
        f"    int rc = LOWER({f.short.removesuffix('_begin')})({args}, &status);", "    scope.end();",
        "    if (file != nullptr && rc == FM_SUCCESS) {", "        file->split = true;",
        "        file->split_status = status;", "    }", "    return call.finish(fh, rc);"])


def request_param(f):
    return next((n for t, n, p in table.fm_params(f) if t == "Request*"), None)


def pass_body(f):
    if is_split_half(f):
        return split_body(f)
    lines = [f'    Call call("{f.name}");']
    args = []
    owner = ""
    for t, n, p in table.fm_params(f):
        handle = p.handle if p else None
        if handle in REAL_OF and "*" not in t:
            args.append(f"{'for_packing' if f.name in PACKS and handle == 'comm' else 'to_real'}({n})")
            if handle in ("comm", "win", "file") and not owner:
                owner = n
        elif handle in TEMPORARY and "*" not in t:
            lines.append(f"    {TEMPORARY[handle]} {n}_real({n});")
            args.append(f"{n}_real")
        elif t == "Request*":
            lines.append("    RealRequest real_request{};")
            args.append("&real_request")
        elif handle:
            raise SystemExit(f"passthrough: {f.name}: no rule for parameter {t} {n}")
        else:
            args.append(n)
    if f.chapter == "io" and not owner:
        owner = "FM_FILE_NULL"  # whose handler, unlike a communicator's, returns by default (MPI-4.0 14.7)
    if is_collective(f):
        lines.insert(1, f"    CollectiveScope scope(call, clock_of({owner}));")
    lines[1:1] = sequential_check(f, owner)
    if f.chapter == "io" and ("_shared" in f.short or "_ordered" in f.short):
        lines.append(f"    note_shared_pointer({owner});")  # a checkpoint asks only then where it stands
    call = f"LOWER({f.short})({', '.join(args)})"
    if is_access(f):  # windows that are not the library's: front/calls/win_alone.h
        here = ", ".join(["*here", *(n for t, n, _ in table.fm_params(f) if n != owner and t != "Request*")])
        name = f.short
        if request_param(f):  # complete at once
            name = name[1:].capitalize()
            lines.insert(1, f"""    if (const WinObject* here = alone({owner})) {{
        int done = single::{name}({here});
        if (done == FM_SUCCESS) *{request_param(f)} = request_completed();
        return call.finish({owner}, done);
    }}""")
        else:
            lines.insert(1, f"    if (const WinObject* here = alone({owner})) "
                            f"return call.finish({owner}, single::{name}({here}));")
        lines += ["    int rc;", "    {", "        AccessScope scope(call, true);", f"        rc = {call};", "    }"]
    else:
        lines.append(f"    int rc = {call};")
    if is_collective(f):
        lines.append("    scope.end();")
    request = request_param(f)
    if request:
        made = (f"request_of_file(real_request, {owner})" if f.chapter == "io" and is_collective(f)
                else "request_foreign(real_request, FM_COMM_NULL)")
        lines.append(f"    if (rc == FM_SUCCESS) *{request} = {made};")
    lines.append(f"    return call.finish({owner + ', ' if owner else ''}rc);")
    return "\n".join(lines)


def signature(f):
    args = ", ".join(f"{t} {n}" for t, n, _ in table.fm_params(f))
    return f"{table.cxx_ret(f)} {f.fm}({args})"


def pass_source():
    out = ["""\
// Wrappers that translate, cross and translate back. Generated by tools/fmgen/passthrough.py: do not edit.
#include "fermata_api.h"
#include "front/calls/pass.h"

using namespace fermata::mpi;
using namespace fermata::front;

extern "C" {

"""]
    for f in table.internals():
        if f.wrapper == "pass":
            out.append(f"{signature(f)} {{\n{pass_body(f)}\n}}\n\n")
    out.append('}  // extern "C"\n')
    return "".join(out)


def fallback_source():
    out = ["""\
// What a function answers that nobody has written: weak, so that any real body replaces it. Generated by
// tools/fmgen/passthrough.py: do not edit.
#include "fermata_api.h"
#include "front/calls/unsupported.h"

using namespace fermata::mpi;

extern "C" {

"""]
    for f in table.internals():
        args = ", ".join(t for t, _, _ in table.fm_params(f))
        answer = f'fermata::front::unsupported("{f.name}")'
        body = f"return {answer};" if f.ret == "int" else f"{answer};\n    return 0;"
        out.append(f"__attribute__((weak, visibility(\"default\"))) {table.cxx_ret(f)} {f.fm}({args}) {{\n    {body}\n}}\n")
        if direct_entry.is_direct_entry(f):
            out.append(f"__attribute__((weak, visibility(\"default\"))) int {f.fm}_held({args}) {{\n    {body}\n}}\n")
    for f in table.beyond_internals():
        args = "" if f.why else ", ".join(t for t, _, _ in table.fm_params(f))
        answer = f'refused("{f.name}", "{f.why}")' if f.why else f'unsupported("{f.name}")'
        out.append(f'__attribute__((weak, visibility("default"))) int {f.fm}({args}) {{\n    return fermata::front::{answer};\n}}\n')
    out.append('\n}  // extern "C"\n')
    return "".join(out)


def main(directory):
    directory = Path(directory)
    write_if_changed(directory / "front_pass.cpp", pass_source())
    write_if_changed(directory / "front_fallback.cpp", fallback_source())


if __name__ == "__main__":
    main(sys.argv[1])
