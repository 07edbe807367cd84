"""A recorder of MPI calls for the conformance programs: every function of mpi/mpi.json as R_MPI_X, which calls it and writes
its error class and outputs to a log, in words that are the same on every library.

Parameters are understood by their kind alone. R_MPI_X may call a sibling in its place (REC_MODE): MPI_X_c, MPI_IX + Wait,
MPI_X_init + Start + Wait, MPI_X_begin + MPI_X_end. So one program tries them all, and where a library lacks the
sibling natively, its plain function says what is expected.

    python3 -m fmgen.recorder openmpi|mpich PROBE.json DIRECTORY   writes recorder.h (macros, prototypes) and recorder.c
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from fmgen import table

# Modes and the suffixes of what they call: (nonblocking style, large).
MODES = ("plain", "large", "nonblocking", "nonblocking_large", "persistent", "persistent_large", "split", "split_large")

# Classes of constants by which an output of this kind is named.
NAMED = {"rank": "rank", "rank_array": "rank", "tag": "tag", "compare_result": "compare_result", "combiner": "combiner",
         "topo_type": "topo_type", "thread_level": "thread_level", "errclass": "errclass"}
SILENT = ("buffer_out", "buffer_inout", "buffer_in", "extra_state", "argc", "argv", "address", "ptr", "varargs",
          "f_status", "f08_status", "logical_void")


def siblings(name):
    """Names that might be the same operation in another style."""
    short = name[4:]
    yield "nonblocking", "MPI_I" + short[0].lower() + short[1:]
    if short.startswith("File_"):
        yield "nonblocking", "MPI_File_i" + short[5:]
    yield "persistent", name + "_init"
    yield "split", name + "_begin"


def core(f, drop):
    return [p for p in f.params if not (p.name in drop or p.kind in drop)]


def same_meaning(f, g, drop_f, drop_g):
    a, b = core(f, drop_f), core(g, drop_g)
    widened = ({"count_array", "displ_array", "int_array", "aint_array"},)
    def alike(p, q):
        return (p.kind == q.kind or any(p.kind in s and q.kind in s for s in widened) or
                {p.kind, q.kind} <= {"aint", "count", "int", "displ"}) and p.dir == q.dir and not p.callback
    return len(a) == len(b) and all(alike(p, q) for p, q in zip(a, b))


def modes_of(f):
    """mode -> function to call in that mode; absent: the plain one."""
    found = {}
    if f.name.endswith("_c"):
        return found
    for style, name in (("", f.name), *siblings(f.name)):
        for large in ("", "_c"):
            if not style and not large or not table.has_function(name + large):
                continue
            g = table.function(name + large)
            drop = {"": ((), ()), "nonblocking": (("status",), ("request",)), "persistent": (("status",), ("request", "info")),
                    "split": (("status",), ())}[style]
            if style == "persistent" and any(p.kind == "info" for p in f.params):
                continue
            if style and not any(p.kind == "request" and p.dir == "out" for p in g.params) and style != "split":
                continue
            if same_meaning(f, g, *drop):
                found[(style or "plain") + ("_large" if large and style else "") if style else "large"] = g
    return found


class Header:
    """C types of a library: those that only functions it lacks use are unknown to its mpi.h."""

    def __init__(self, library):
        self.library = library
        known, wanted = set(), set()
        for f in table.functions():
            names = {p.base for p in f.params} | {f.ret} | {p.callback for p in f.params if p.callback}
            if self.callable(f):
                wanted |= names
            if library in f.libraries:
                known |= names
        self.unknown = sorted(n for n in wanted - known - {"MPI_Fint"} if n.startswith("MPI_"))

    def callable(self, f):
        # Conversions that the library's mpi.h makes macros of: what would be tested is the header.
        return self.library in f.libraries or (f.chapter != "abi/f2c" and f.ret == "int")


def declared(p):
    if p.kind == "varargs":
        return "..."
    if p.c.endswith("[][3]"):
        return f"{p.c[:-5]}{p.name}[][3]"
    if p.c.endswith("[]"):
        return f"{p.c[:-2]}{p.name}[]"
    return f"{p.c} {p.name}"


def arguments(f):
    return [p.name for p in f.params if p.kind != "varargs"]


def prototype(f, name):
    text = ", ".join(declared(p) for p in f.params) or "void"
    return f"{f.ret} {name}({text})"


def length(f, p):
    """C expression for the number of elements of an array parameter."""
    text = p.len.removesuffix("@root")
    if text.endswith("(incount max)"):
        return "*outcount"
    return {"remote_or_comm_size(comm)": "rec_peers(comm)", "comm_size(comm)": "rec_size(comm)",
            "indegree(comm)": "rec_degree(comm, 1)", "outdegree(comm)": "rec_degree(comm, 0)",
            "cart_ndims(comm)": "rec_dims(comm)", "nx3": "3 * n", "sum(degrees)": "0", "index[nnodes-1]": "index[nnodes - 1]",
            "sum(array_of_maxprocs)": "0"}.get(text, text)


def call(f, g):
    """Arguments of g for the parameters of f (same meaning), with what is needed before and after."""
    before, after, out = [], [], []
    mine = iter(core(f, ("status",)) if g is not f and not any(p.kind == "status" for p in g.params) else f.params)
    for q in g.params:
        if q.kind == "varargs":
            continue
        if g is not f and q.kind == "request" and q.dir == "out" and not any(
                p.kind == "request" and p.dir == "out" for p in f.params):
            out.append("&rec_request")
            continue
        if g is not f and q.kind == "info" and not any(p.kind == "info" for p in f.params):
            out.append("MPI_INFO_NULL")
            continue
        p = next(mine)
        if p.base == "int" and q.base != "int" and p.is_array:
            out.append(f"({q.base} *)rec_widen({p.name}, {length(f, p)})")
        elif p.base != q.base and p.is_pointer and p.base == "int":
            before.append(f"{q.base} wide_{p.name} = {'*' + p.name if p.dir == 'inout' else '0'};")
            after.append(f"*{p.name} = (int)wide_{p.name};")
            out.append(f"&wide_{p.name}")
        elif p.base != q.base and p.is_pointer:  # 64 bits, both
            out.append(f"({q.base} *){p.name}")
        else:
            out.append(p.name)
    return before, out, after


def nulls(f, args):
    """Before f is called with these: once for each pointer that needs a place, with NULL in it, if rec_null() says so."""
    if f.ret != "int":
        return []
    named = [p for p in f.params if p.kind != "varargs"]
    # Errors of a window end the program unless it says otherwise.
    window = next((f"PMPI_Win_set_errhandler({p.name}, MPI_ERRORS_RETURN), " for p in named if p.handle == "win" and not p.is_pointer), "")
    lines = []
    for i, p in enumerate(named):
        if table.needs_place(f, p):
            really = "if (MPI_STATUS_IGNORE != 0) " if p.kind == "status" else ""
            passed = ", ".join([*args[:i], "0", *args[i + 1:]])
            lines.append(f'{really}REC_NULL("{f.name}", "{p.name}", ({window}W_{f.name}({passed})));')
        elif count := table.needs_places(f, p):
            passed = ", ".join([*args[:i], "0", *args[i + 1:]])
            lines.append(f'if ({count} > 0) REC_NULL("{f.name}", "{p.name}", ({window}W_{f.name}({passed})));')
    return lines


def alternative(f, mode, g):
    """The statements that do f by g."""
    before, args, after = call(f, g)
    lines = [f"rec_called(\"{g.name}\");", *before, *nulls(g, args), f"rc = W_{g.name}({', '.join(args)});"]
    status = next((p.name for p in f.params if p.kind == "status"), "MPI_STATUS_IGNORE")
    style = mode.removesuffix("_large")
    if style == "persistent":
        lines += ["if (rc == MPI_SUCCESS) {", "    rc = PMPI_Start(&rec_request);",
                  f"    if (rc == MPI_SUCCESS) rc = PMPI_Wait(&rec_request, {status});",
                  "    if (rec_request != MPI_REQUEST_NULL) PMPI_Request_free(&rec_request);", "}"]
    elif style == "nonblocking":
        lines += [f"if (rc == MPI_SUCCESS) rc = PMPI_Wait(&rec_request, {status});"]
    elif style == "split":
        end = f.name + "_end"
        buffer = next(p.name for p in f.params if p.kind.startswith("buffer"))
        lines += [f"if (rc == MPI_SUCCESS) {{", f'    rec_called("{end}");', f"    rc = W_{end}(fh, {buffer}, {status});", "}"]
    lines += [f"if (rc == MPI_SUCCESS) {{ {' '.join(after)} }}"] if after else []
    return lines


def written(f, p, flag):
    """The statement that writes output p."""
    if p.kind in SILENT or p.callback or (p.kind in ("status", "status_array") and "const" in p.c):
        return None
    n, kind = p.name, p.kind
    when = f"if (*{flag}) " if flag and p.name != flag else ""
    quiet = {"status": "MPI_STATUS_IGNORE", "status_array": "MPI_STATUSES_IGNORE"}.get(kind)
    if kind == "status":
        if f.chapter == "io":  # only the count is defined
            return f'if ({n} != {quiet}) rec_bytes("{n}", {n});'
        return f'{when}if ({n} != {quiet}{request_said(f, "0")}) rec_status("{n}", {n});'
    if kind == "status_array":
        return (f'{when}for (long i = 0; i < (long)({length(f, p)}) && {n} != {quiet}; ++i) '
                f'if (rc != MPI_SUCCESS{request_said(f, "i", " || ")}) rec_status_of("{n}", &{n}[i], rc);')
    if p.handle and p.is_array:
        return f'{when}for (long i = 0; i < (long)({length(f, p)}); ++i) rec_handle("{n}", "{p.handle}", REC_WORD({n}[i]));'
    if p.handle:
        return f'{when}rec_handle("{n}", "{p.handle}", REC_WORD(*{n}));'
    if kind == "string_out":
        return f'{when}rec_string("{n}", {n});'
    if kind in ("attr_val", "buffer_baseptr"):
        return f'{when}rec_address("{n}", *(void **){n});'
    if kind == "logical":
        return f'rec_number("{n}", "", *{n} != 0);'
    if kind == "errclass" and f.name.startswith("MPI_Add"):
        return f'rec_word("{n}", *{n} > MPI_ERR_LASTCODE ? "own" : "predefined");'
    if kind == "keyval":
        return f'rec_word("{n}", *{n} == MPI_KEYVAL_INVALID ? "invalid" : "some");'
    if kind == "strlen" or kind.startswith("t_") or kind == "errcode":
        return None
    name = NAMED.get(kind, "")
    if kind == "errcode_array":
        return None
    if kind == "weight_array":
        return None
    if p.is_array and p.base in ("int", "MPI_Aint", "MPI_Count"):
        if kind == "logical_array":
            return f'{when}for (long i = 0; i < (long)({length(f, p)}); ++i) rec_number("{n}", "", {n}[i] != 0);'
        return f'{when}for (long i = 0; i < (long)({length(f, p)}); ++i) rec_number("{n}", "{name}", {n}[i]);'
    if p.is_pointer and p.base in ("int", "MPI_Aint", "MPI_Count", "MPI_Offset"):
        return f'{when}rec_number("{n}", "{name}", *{n});'
    return None


def request_said(f, i, join=" && "):
    """The condition that the request a status is of has one that means something (a send's has not)."""
    names = {p.name for p in f.params}
    if "array_of_indices" in names:
        i = f"array_of_indices[{i}]"
    elif "index" in names:
        return f"{join}(*index < 0 || rec_says(was0[*index]))" if any(p.handle == "request" and p.dir == "inout" for p in f.params) else ""
    if any(p.handle == "request" and p.dir == "inout" for p in f.params):
        return f"{join}rec_says(was0[{i}])"
    if any(p.handle == "request" and p.dir == "in" and not p.is_array for p in f.params):
        return f"{join}rec_says(REC_WORD(request))"
    return f"{join}1"


def says(f):
    """Does the status of a request made by f say anything?"""
    return ( any(p.name in ("source", "message") for p in f.params) or
            any((p.callback or "").startswith("MPI_Grequest") for p in f.params))


def handles_in(f):
    """(expression of the pointer, number of elements, kind) of handles that the call may change."""
    for p in f.params:
        if p.handle and p.dir == "inout":
            many = length(f, p) if p.is_array else "1"
            yield p.name, "incount" if many == "*outcount" else many, p.handle


def body(f, header):
    outs = [p for p in f.params if p.dir in ("out", "inout")]
    flag = next((p.name for p in f.params if p.kind == "logical" and p.dir == "out" and p.name in ("flag", "completed")), None)
    lines = []
    if f.ret != "int" or f.name in ("MPI_Comm_toint",):
        lines += [f'rec_begin("{f.name}");', f'rec_called("{f.name}");', f"{f.ret} rc = W_{f.name}({', '.join(arguments(f))});"]
        kind = next((k for k, t in table.HANDLE_TYPES.items() if f.ret == "MPI_" + t), None)
        if kind:
            lines.append(f'rec_handle("=", "{kind}", REC_WORD(rc));')
        elif f.ret in ("MPI_Aint",):
            lines.append('rec_number("=", "", rc);')
        lines += ["rec_end();", "return rc;"]
        return lines
    lines += ["int rc;"]
    modes = modes_of(f)
    if any(m != "large" for m in modes) :
        lines.append("MPI_Request rec_request = MPI_REQUEST_NULL;")
    for i, (name, many, _) in enumerate(handles_in(f)):
        lines.append(f"unsigned long long *was{i} = rec_words({name}, sizeof *{name}, {many});")
    lines.append(f'rec_begin("{f.name}");')
    lines.append("switch (rec_mode) {")
    for mode, g in modes.items():
        lines.append(f"case REC_{mode.upper()}:")
        present = f"W_{g.name} != 0" + (f" && W_{f.name}_end != 0" if mode.startswith("split") else "")
        lines.append(f"    if (!({present})) goto plain;")
        lines += ["    " + s for s in ["{", *alternative(f, mode, g), "}"]]
        lines.append("    break;")
    if modes:
        lines.append("plain:")
    lines += ["default:", f'    if (W_{f.name} == 0) return rec_lacking("{f.name}");', f'    rec_called("{f.name}");',
              *("    " + s for s in nulls(f, arguments(f))), f"    rc = W_{f.name}({', '.join(arguments(f))});", "}"]
    lines.append("rec_class(rc);")
    body_out = [s for s in (written(f, p, flag) for p in outs) if s]
    if flag:  # first whether, then what
        body_out.sort(key=lambda s: not s.startswith(f'rec_number("{flag}"'))
    if body_out:
        lines.append("if (rc == MPI_SUCCESS || rec_in_status(rc)) {")
        lines += ["    " + s for s in body_out]
        lines.append("}")
    lines.append("if (rc == MPI_SUCCESS) {")
    for p in outs:
        if p.handle and p.dir == "out" and not p.is_array:
            when = f"if (*{flag}) " if flag else ""
            lines.append(f'    {when}rec_new("{p.handle}", REC_WORD(*{p.name}), "{f.name}", {int(says(f))});')
    lines.append("}")
    for i, (name, many, kind) in enumerate(handles_in(f)):
        lines.append(f'rec_gone("{kind}", was{i}, {name}, sizeof *{name}, {many});')
    for p in f.params:
        if p.handle and p.dir == "in" and not p.is_pointer:
            lines.append(f'rec_used("{p.handle}", REC_WORD({p.name}));')
    lines += ["rec_end();", "return rc;"]
    return lines


HEAD = "/* Generated from mpi/mpi.json by tools/fmgen/recorder.py. */\n"


def words_of_header(compiler):
    """What this version of the library's mpi.h declares."""
    done = subprocess.run([compiler, "-E", "-x", "c", "-include", "mpi.h", "/dev/null"], capture_output=True, text=True, check=True)
    return set(re.findall(r"\w+", done.stdout))


def generate(library, constants, directory, compiler):
    header, has = Header(library), words_of_header(compiler)
    functions = [f for f in table.functions() if header.callable(f)]
    h = [HEAD, "#ifndef RECORDER_H\n#define RECORDER_H\n#include <mpi.h>\n\n#include \"lower/binding/undeclared.h\"\n#include \"record.h\"\n\n"]
    for name in header.unknown:
        if name in has:
            continue
        if "function" in name:
            h.append(f"typedef void {name}();\n")
        else:
            h.append(f"typedef void *{name};\n")
    h.append("\nenum { " + ", ".join("REC_" + m.upper() for m in MODES) + ", REC_MODES };\n")
    h.append("extern int rec_mode;\nextern const char *const rec_mode_names[];\n\n")
    for f in functions:
        h.append(f"extern {prototype(f, 'W_' + f.name)} __asm__(\"{f.name}\") __attribute__((weak));\n")
        h.append(prototype(f, "R_" + f.name) + ";\n")
    h.append("\n#ifndef RECORDER_SOURCE\n")
    for f in functions:
        h.append(f"#undef {f.name}\n#define {f.name} R_{f.name}\n")
    h.append("#endif\n#endif\n")
    c = [HEAD, "#define RECORDER_SOURCE\n#include \"recorder.h\"\n\nint rec_peers(MPI_Comm), rec_size(MPI_Comm), rec_degree(MPI_Comm, int), rec_dims(MPI_Comm);\nint rec_mode;\nconst char *const rec_mode_names[] = {"
         + ", ".join(f'"{m}"' for m in MODES) + "};\n"]
    # Names of constants: known only when the program runs (Open MPI's handles are addresses).
    c.append("\nvoid rec_constants(void) {\n")
    for k in table.constants():
        if k.name not in constants or k.std is None:
            continue
        if k.cls.startswith("handle:"):
            c.append(f'    rec_constant("{k.cls[7:]}", "{k.short}", REC_WORD({k.name}));\n')
        elif k.cls in set(NAMED.values()) | {"undefined"}:
            c.append(f'    rec_constant("{k.cls}", "{k.short}", (unsigned long long)(long long){k.name});\n')
    c.append("}\n\n")
    for f in functions:
        c.append(prototype(f, "R_" + f.name) + " {\n" + "".join(f"    {s}\n" for s in body(f, header)) + "}\n")
    out = Path(directory)
    out.mkdir(parents=True, exist_ok=True)
    (out / "recorder.h").write_text("".join(h))
    (out / "recorder.c").write_text("".join(c))


if __name__ == "__main__":
    generate(sys.argv[1], set(json.loads(Path(sys.argv[2]).read_text())["constants"]), sys.argv[3], sys.argv[4])
