"""Generates the C fronts: what the application links as its MPI, in the ABI of Open MPI, of MPICH or of
MPI-5.0 (libmpi_abi).

    python3 -m fmgen.front_c openmpi|mpich|standard OUTPUT_DIRECTORY

For each ABI:
  <abi>_values.h    constants: in_x() from the ABI's value to the standard one, out_x() back, for each class;
  <abi>_tables.cpp  predefined handles, data symbols;
  <abi>_N.cpp       PMPI_X for every function of the table, and MPI_X as its weak alias.
What has no rule here is written by hand in src/front/abi/special.cpp (SPECIAL below).
"""

import re
import sys
from dataclasses import replace
from pathlib import Path

from fmgen import short_entry, table
from fmgen.headers import write_if_changed

# Integer classes: class of api/constants.json -> True when any non-negative value stands for itself.
CLASSES = {
    "rank": True, "tag": True, "errclass": False, "thread_level": False, "order": False, "distrib": False,
    "darg": True, "combiner": False, "typeclass": False, "compare_result": False, "topo_type": False,
    "split_type": False, "lock_type": False, "win_flavor": False, "win_model": False, "whence": False,
    "keyval": False, "t_verbosity": False, "t_bind": False, "t_scope": False, "t_class": False,
}
BITS = ("amode", "assert")
# Classes of which an unknown value passes unchanged: codes and keyvals are also made at run time.
OPEN = {"errclass", "keyval"}

# Parameter kind -> class whose translation its value needs.
KIND_CLASS = {
    "rank": "rank", "tag": "tag", "errcode": "errclass", "errclass": "errclass", "thread_level": "thread_level",
    "order": "order", "combiner": "combiner", "typeclass": "typeclass", "compare_result": "compare_result",
    "topo_type": "topo_type", "split_type": "split_type", "lock_type": "lock_type", "whence": "whence",
    "keyval": "keyval", "amode": "amode", "assert": "assert", "t_verbosity": "t_verbosity", "t_bind": "t_bind",
    "t_scope": "t_scope", "t_class": "t_class",
}
ARRAY_CLASS = {"rank_array": "rank", "distrib_array": "distrib", "darg_array": "darg", "errcode_array": "errclass"}

# Written by hand, with the reason.
SPECIAL = {
    "MPI_Pcontrol": "varargs",
    "MPI_Abort": "the code is the application's own, not an error class",
    "MPI_T_cvar_handle_alloc": "the object's kind depends on the variable",
    "MPI_T_pvar_handle_alloc": "the object's kind depends on the variable",
    "MPI_Get_version": "the version of the ABI's header",
    "MPI_Type_extent": "MPI-1", "MPI_Type_lb": "MPI-1", "MPI_Type_ub": "MPI-1",
    "MPI_Status_c2f": "layout", "MPI_Status_f2c": "layout", "MPI_Status_c2f08": "layout", "MPI_Status_f082c": "layout",
    "MPI_Status_f082f": "layout", "MPI_Status_f2f08": "layout",
    "MPI_Info_create_env": "argv is not an array of handles",
    "MPI_Abi_get_version": "of the standard ABI", "MPI_Abi_get_info": "of the front",
    "MPI_Abi_get_fortran_info": "of the front", "MPI_Abi_get_fortran_booleans": "of the front",
}
# Written once for all ABIs, over the usual way.
ABI_SOURCES = Path(__file__).resolve().parents[2] / "src" / "front" / "abi"
SHORT_MESSAGES = {"MPI_" + x for header in ("short_message.h", "short_wait.h")
                  for x in re.findall(r"^FRONT_API int PMPI_(\w+)\(", (ABI_SOURCES / header).read_text(), re.M)}
# Functions after whose success the result needs another look: name of a helper in special.h.
AFTER = {
    "MPI_Comm_get_attr": "after_get_attr(comm_keyval, attribute_val, flag);",
    "MPI_Attr_get": "after_get_attr(keyval, attribute_val, flag);",
    "MPI_Win_get_attr": "after_get_attr(win_keyval, attribute_val, flag);",
    "MPI_Type_get_contents": "after_get_contents(in_Datatype(datatype), max_integers, array_of_integers);",
    "MPI_Type_get_contents_c": "after_get_contents(in_Datatype(datatype), max_integers, array_of_integers);",
}
# String results whose length limit is a constant of the ABI.
STRING_LIMITS = {"MPI_Info_get_nthkey": "MAX_INFO_KEY"}

NO_SIZE = {"openmpi": {"ompi_mpi_instance_null": 1024, "ompi_mpi_errors_abort": 1024}}
PARTS = (
    ("p2p", ("p2p/request", "persistent-p2p", "partitioned")),
    ("collective", ("collective", "collective-nb", "persistent-coll", "neighbourhood")),
    ("objects", ("comm/group", "topology", "attributes/naming", "errhandling", "info", "op", "sessions", "env",
                 "dynamic", "removed(MPI-1)")),
    ("datatype", ("datatype", "abi/f2c", "tools(MPI_T)")),
    ("access", ("rma", "io")),
)


def abi_value(c, abi):
    if abi == "standard":
        return c.std
    return c.mpich if abi == "mpich" else c.openmpi


def class_pairs(cls, abi):
    """[(ABI value, standard value)] of a class; values the ABI lacks are left out."""
    pairs = []
    for c in table.constants_of(cls):
        v = abi_value(c, abi)
        if v is not None:
            pairs.append((v, c.std))
    if cls in ("rank", "topo_type", "split_type"):  # MPI_Topo_test says UNDEFINED, MPI_Comm_split_type is told
        pairs.append((abi_value(table.constant("MPI_UNDEFINED"), abi), table.constant("MPI_UNDEFINED").std))
    assert len({a for a, _ in pairs}) == len(pairs), (cls, abi)
    return pairs


def values_header(abi):
    out = [f"""\
// Constants of {abi}'s ABI and of the standard one. Generated by tools/fmgen/front_c.py: do not edit.
#pragma once

namespace fermata::abi {{

inline constexpr int kAnySource = {abi_value(table.constant("MPI_ANY_SOURCE"), abi)};
"""]
    for cls, natural in CLASSES.items():
        if abi == "standard":
            out.append(f"inline int in_{cls}(int v) {{ return v; }}\ninline int out_{cls}(int v) {{ return v; }}\n")
            continue
        pairs = class_pairs(cls, abi)
        for way, swap in (("in", False), ("out", True)):
            # A value that only one side knows stays an error: unknown classes become MPI_ERR_OTHER, the rest invalid.
            default = "v" if cls in OPEN else "kInvalid"
            seen = dict((b, a) if swap else (a, b) for a, b in pairs)
            if cls == "errclass" and swap:
                other = abi_value(table.constant("MPI_ERR_OTHER"), abi)
                for c in table.constants_of("errclass"):
                    seen.setdefault(c.std, other)
            # A positive value with a meaning of its own takes the long way: MPI_DISTRIBUTE_DFLT_DARG is 19 in the standard.
            short_way = natural and all(a < 0 or a == b for a, b in seen.items())
            if natural and not short_way:
                default = "v >= 0 ? v : kInvalid"
            if all(a == b for a, b in seen.items()) and cls in OPEN:
                out.append(f"inline int {way}_{cls}(int v) {{ return v; }}\n")
                continue
            cases = "".join(f"        case {a}: return {b};\n" for a, b in sorted(seen.items())
                            if not (short_way and a >= 0) and not (cls in OPEN and a == b))
            if cls == "errclass":
                # The application's own codes begin after the last code of its ABI.
                last = abi_value(table.constant("MPI_ERR_LASTCODE"), abi)
                inner = table.constant("MPI_ERR_LASTCODE").std
                if last > inner:
                    start, by = (last, inner - last) if way == "in" else (inner, last - inner)
                    default = f"v > {start} ? v + {by} : v" if by >= 0 else f"v > {start} ? v - {-by} : v"
            # Static, so that the compiler knows which registers it leaves alone (-fipa-ra): the usual way saves nothing.
            attribute = "[[maybe_unused]] __attribute__((noinline, cold)) static" if short_way or cls == "errclass" else "inline"
            name = f"{way}_{cls}" + ("_special" if short_way or cls == "errclass" else "")
            out.append(f"{attribute} int {name}(int v) {{\n    switch (v) {{\n{cases}"
                       f"        default: return {default};\n    }}\n}}\n")
            if short_way:
                # Most values are plain numbers: one compare on the hot path.
                out.append(f"inline int {way}_{cls}(int v) {{ return __builtin_expect(v >= 0, 1) ? v : {name}(v); }}\n")
            elif cls == "errclass":
                out.append(f"inline int {way}_{cls}(int v) {{ return __builtin_expect(v == 0, 1) ? 0 : {name}(v); }}\n")
    for cls in BITS:
        if abi == "standard":
            out.append(f"inline int in_{cls}(int v) {{ return v; }}\ninline int out_{cls}(int v) {{ return v; }}\n")
            continue
        pairs = class_pairs(cls, abi)
        for way, swap in (("in", False), ("out", True)):
            lines, known = "", 0
            for a, b in pairs:
                a, b = (b, a) if swap else (a, b)
                lines += f"    if (v & {a}) r |= {b};\n"
                known |= a
            # A bit nobody knows must stay wrong, not vanish.
            out.append(f"inline int {way}_{cls}(int v) {{\n    int r = 0;\n{lines}    if (v & ~{known}) r |= 1 << 30;\n"
                       "    return r;\n}\n")
    for c in table.constants_of("limit"):
        v = abi_value(c, abi)
        out.append(f"inline constexpr int A_{c.short} = {v if v is not None else c.std};\n")
    out.append(f"inline constexpr int A_ERR_LASTCODE = {abi_value(table.constant('MPI_ERR_LASTCODE'), abi)};\n")
    if abi == "mpich":
        out.append(mpich_handle_maps()[0])
    out.append("\n}  // namespace fermata::abi\n")
    return "".join(out)


def handle_constants(kind, abi):
    """[(ABI value, standard value)]; for Open MPI the ABI value is a symbol's name."""
    return [(abi_value(c, abi).lstrip("&") if abi == "openmpi" else abi_value(c, abi), c.std)
            for c in table.constants_of("handle:" + kind) if abi_value(c, abi) is not None]


def perfect_hash(words):
    """(factor, bits): words * factor >> (32 - bits) is different for each word. Odd factors from a fixed sequence."""
    for bits in range(1, 11):
        if 1 << bits < len(words):
            continue
        x = 0x9E3779B1
        for _ in range(20000):
            x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
            factor = x | 1
            if len({((w * factor) & 0xFFFFFFFF) >> (32 - bits) for w in words}) == len(words):
                return factor, bits
    raise SystemExit("no perfect hash")


def mpich_handle_maps():
    """Declarations of the maps with what goes through them, and the maps."""
    out, tables = ["\n"], []
    for kind, t in table.HANDLE_TYPES.items():
        if kind == "file":
            continue
        pairs = handle_constants(kind, "mpich")
        factor, bits = perfect_hash([a for a, _ in pairs])
        slots = {((a * factor) & 0xFFFFFFFF) >> (32 - bits): (a, s) for a, s in pairs}
        # An empty place holds a word that never hashes to it... which 0xffffffff, no handle of any kind, stands for.
        rows = ", ".join("{0x%xu, %du, &fermata::front::no_object}" % slots.get(i, (0xFFFFFFFF, 0)) for i in range(1 << bits))
        tables.append(f"MapEntry fermata_mpich_{kind}[{1 << bits}] = {{{rows}}};\n")
        out.append(f'extern "C" __attribute__((visibility("hidden"))) MapEntry fermata_mpich_{kind}[{1 << bits}];\n')
        out.append(f"template <>\ninline constexpr auto kMap<Kind::{kind}> = HandleMap<0x{factor:x}u, {32 - bits}>"
                   f"{{fermata_mpich_{kind}}};\n")
        # Requests are hardly ever predefined ones, and these are below our dynamic words.
        dynamic = "    if (handle < 0) return static_cast<Request>(handle);\n" if kind == "request" else ""
        assert not dynamic or all(a < 1 << 31 for a, _ in pairs)
        out.append(f"inline {t} in_{t}(A_{t} handle) {{\n{dynamic}"
                   f"    return static_cast<{t}>(in_word<Kind::{kind}>(static_cast<uint32_t>(handle)));\n}}\n")
        out.append(f"inline A_{t} out_{t}({t} handle) {{ return out_word(static_cast<uint32_t>(handle)); }}\n")
    return "".join(out), "".join(tables)


def tables_source(abi):
    out = ["// Predefined handles. Generated by tools/fmgen/front_c.py: do not edit.\n"
           f'#include "front/abi/{abi}.h"\n#include "front/objects/registry.h"\n\n']
    if abi == "standard":
        return out[0]
    by_std = {}
    for kind in table.HANDLE_TYPES:
        for a, s in handle_constants(kind, abi):
            by_std[s] = a
    if abi == "mpich":
        init = ", ".join(f"0x{by_std.get(i, 0):x}u" for i in range(1024))
        out.append(f'extern "C" const uint32_t fermata_mpich_handles[1024] = {{{init}}};\n')
        out.append("namespace fermata::abi {\n" + mpich_handle_maps()[1] + "}\n")
        return "".join(out)
    sizes = {n: s for s, n in table.openmpi_data_symbols()}
    sizes.update(NO_SIZE["openmpi"])
    value_of = {a: s for s, a in by_std.items()}
    for other in ("ompi_mpi_unavailable", "ompi_mpi_2cplex", "ompi_mpi_2dblcplex",
                  "ompi_mpi_c_complex", "ompi_mpi_ldblcplex"):
        value_of[other] = table.constant("MPI_DATATYPE_NULL").std
    value_of["ompi_mpi_c_complex"] = table.constant("MPI_C_FLOAT_COMPLEX").std
    value_of["ompi_mpi_ldblcplex"] = table.constant("MPI_CXX_LONG_DOUBLE_COMPLEX").std
    value_of["ompi_mpi_errors_throw_exceptions"] = table.constant("MPI_ERRORS_RETURN").std
    # Data symbols of the library with their exact sizes: executables copy-relocate them, by size.
    symbols = sorted(sizes)
    declared = []
    for n in symbols:
        size = sizes[n]
        if n in ("ompi_mpi_comm_parent",):
            declared.append(f'FRONT_API char* {n};\nchar* {n} = nullptr;\n')
        elif n.endswith("_addr") and n[:-5] in sizes:
            continue
        elif n in value_of:
            declared.append(f"struct S_{n} {{ fermata::abi::Predefined is; char rest[{size - 16}]; }};\n"
                            f"static_assert(sizeof(S_{n}) == {size});\nFRONT_API S_{n} {n};\n"
                            f"alignas(64) S_{n} {n} = {{{{{value_of[n]}, &fermata::front::no_object}}, {{}}}};\n")
        else:
            align = min(64, 1 << (size.bit_length() - 1))
            declared.append(f"FRONT_API char {n}[{size}];\nalignas({align}) char {n}[{size}] = {{}};\n")
    for n in symbols:
        if n.endswith("_addr") and n[:-5] in sizes:
            declared.append(f"FRONT_API void* {n};\nvoid* {n} = &{n[:-5]};\n")
    out.append("".join(declared))
    init = ", ".join(f"&{by_std[i]}" if i in by_std else "nullptr" for i in range(1024))
    out.append(f'extern "C" void* const fermata_openmpi_handles[1024] = {{{init}}};\n')
    # Fortran integers of predefined handles.
    f_of = {c.std: c.openmpi_fortran for c in table.constants()
            if c.cls.startswith("handle:") and c.openmpi_fortran is not None}
    init = ", ".join(str(f_of.get(i, -1)) for i in range(1024))
    out.append("\nnamespace fermata::abi {\n\n"
               f"static const short kFortranOf[1024] = {{{init}}};\n"
               "int c2f(uint32_t word) { return word >> 31 ? static_cast<int>(word) : kFortranOf[word & 1023]; }\n"
               "uint32_t f2c(Kind kind, int fortran) {\n"
               "    if (fortran < 0) return static_cast<uint32_t>(fortran);\n    switch (kind) {\n")
    for kind in table.HANDLE_TYPES:
        rows = {c.openmpi_fortran: c.std for c in table.constants_of("handle:" + kind)
                if c.openmpi_fortran is not None}
        if not rows:
            continue
        top = max(rows) + 1
        init = ", ".join(str(rows.get(i, 0)) for i in range(top))
        out.append(f"        case Kind::{kind}: {{\n            static const short map[{top}] = {{{init}}};\n"
                   f"            return fortran < {top} ? static_cast<uint32_t>(map[fortran]) : 0;\n        }}\n")
    out.append("        default: return 0;\n    }\n}\n\n}  // namespace fermata::abi\n")
    return "".join(out)


def abi_type(ctype, name=""):
    """C++ declaration of a parameter as the application's ABI has it."""
    base = ctype.replace("const ", "").replace("[]", "").replace("[3]", "").replace("*", "").strip()
    const = "const " if "const " in ctype and ctype.strip() != "const int" else ""
    stars = "*" * (ctype.count("*") + ctype.count("[]") + ctype.count("[3]"))
    if "[3]" in ctype:
        return f"int (*{name})[3]"
    if base in ("int", "char", "void", "double"):
        pass
    elif base in ("MPI_Count", "MPI_Aint", "MPI_Offset"):
        base = "int64_t"
    elif base == "MPI_Fint":
        base = "int"
    elif base == "MPI_Status":
        base = "A_Status"
    elif base in ("MPI_T_cb_safety", "MPI_T_source_order"):
        base = "int"
    elif base.startswith("MPI_") and base[4:] in table.HANDLE_TYPES.values():
        base = "A_" + base[4:]
    else:  # callbacks and MPI_T handles: pointers
        base, stars = "void*", stars[1:] if base.endswith("function") else stars
    return f"{const}{base}{stars} {name}".strip()


def declaration(f, prefix="PMPI_"):
    args = ", ".join(abi_type(p.c, p.name) for p in f.params)
    ret = abi_type(f.ret)
    return f"{ret} {prefix}{f.short}({args})"


def length(expression, f):
    """C++ expression for the length of an array parameter."""
    first_comm = next((p.name for p in f.params if p.c == "MPI_Comm"), "")
    known = {
        "remote_or_comm_size(comm)": f"peers(in_Comm({first_comm}))", "indegree(comm)": f"indegree(in_Comm({first_comm}))",
        "outdegree(comm)": f"outdegree(in_Comm({first_comm}))", "index[nnodes-1]": "(nnodes > 0 ? index[nnodes - 1] : 0)",
        "sum(degrees)": "sum(n, degrees)", "nx3": "3 * n", "outcount(incount max)": "incount",
        "sum(array_of_maxprocs)": "sum(count, array_of_maxprocs)",
        "cart_ndims(comm)": f"cart_ndims(in_Comm({first_comm}))",
    }
    return known.get(expression, expression)


class Body:
    """Collects the statements of one ABI function."""

    def __init__(self, f, abi, handles_are_pointers=True):
        self.f, self.abi = f, abi
        self.handles_may_dangle = handles_are_pointers and abi == "openmpi"
        self.before, self.args, self.after, self.always = [], [], [], []
        self.flag = next((p.name for p in f.params if p.name == "flag" and p.dir == "out"), None)

    def add(self, p, wide):
        """p: parameter of the ABI function; wide: the same parameter of the internal one."""
        n, f = p.name, self.f
        if p.kind == "varargs":
            return
        if p.callback:
            if "copy" in p.callback.lower():
                self.args.append(f"in_copy_fn({n})")
            elif "delete" in p.callback.lower():
                self.args.append(f"in_delete_fn({n})")
            else:
                self.args.append(n)
            self.args.append(f"adapter_{p.callback}")
        elif p.kind in table.TOOL_WORDS:
            self.tool_word(p)
        elif p.handle:
            self.handle(p)
        elif p.kind == "status_array":
            size = length(p.len, f)
            self.before.append(f"Temp<Status> {n}_t({n} == kStatusIgnore ? 0 : {size});")
            self.args.append(f"{n} == kStatusIgnore ? nullptr : {n}_t.data()")
            count = "*outcount" if "outcount" in p.len else size
            if "outcount" in p.len:
                count = "(*outcount == FM_UNDEFINED ? 0 : *outcount)"
            condition = " && *flag" if self.flag else ""
            self.always.append(
                f"if ({n} != kStatusIgnore && (rc == FM_SUCCESS || rc == FM_ERR_IN_STATUS){condition})\n"
                f"        for (int i = 0, e = {count}; i < e; i++) {{\n"
                f"            out_status(&{n}[i], {n}_t[i]);\n"
                f"            if (rc != FM_SUCCESS) {n}[i].error = out_errclass({n}_t[i].error);\n        }}")
        elif p.kind == "status":
            if p.dir == "in":
                self.before.append(f"Status {n}_t;\n    in_status(&{n}_t, {n});")
                self.args.append(f"&{n}_t")
            elif p.dir == "inout":
                self.before.append(f"Status {n}_t;\n    in_status(&{n}_t, {n});")
                self.args.append(f"&{n}_t")
                self.after.append(f"out_status({n}, {n}_t);\n        {n}->error = out_errclass({n}_t.error);")
            else:
                self.before.append(f"Status {n}_t{{}};")
                self.args.append(f"{n} == kStatusIgnore ? nullptr : &{n}_t")
                condition = " && *flag" if self.flag else ""
                # A truncated message has a source and a tag, and applications look at them.
                self.always.append(f"if ({n} != kStatusIgnore && (rc == FM_SUCCESS || rc == FM_ERR_TRUNCATE)"
                                   f"{condition}) out_status({n}, {n}_t);")
        elif p.kind in ("buffer_in", "buffer_out", "buffer_inout"):
            # No buffer of a message is MPI_IN_PLACE.
            self.args.append(n if f.chapter == "p2p/request" else f"in_buf({n})")
        elif p.kind == "buffer_baseptr":
            self.args.append(f"static_cast<void**>({n})")
        elif p.kind == "weight_array":
            self.args.append(f"in_weights({n})")
        elif p.kind in ARRAY_CLASS:
            self.array(p, ARRAY_CLASS[p.kind])
        elif p.kind == "string_out" and (p.len.startswith("MPI_MAX") or f.name in STRING_LIMITS):
            limit = STRING_LIMITS.get(f.name, p.len[4:])
            strlen = next((q.name for q in f.params if q.kind == "strlen" and q.dir == "out"), "nullptr")
            self.before.append(f"char {n}_t[FM_{limit}];\n    {n}_t[0] = 0;")
            self.args.append(f"{n}_t")
            self.after.append(f"out_string({n}, A_{limit}, {n}_t, {strlen});")
        elif p.kind in KIND_CLASS and not p.is_array:
            cls = KIND_CLASS[p.kind]
            if p.dir == "in":
                self.args.append(f"in_{cls}({n})")
            else:
                if p.dir == "inout":
                    self.before.append(f"*{n} = in_{cls}(*{n});")
                    self.always.append(f"*{n} = out_{cls}(*{n});")
                elif cls.startswith("t_"):  # those that MPI_T gives out may be NULL
                    self.after.append(f"if ({n} != nullptr) *{n} = out_{cls}(*{n});")
                else:
                    self.after.append(f"*{n} = out_{cls}(*{n});")
                self.args.append(n)
        elif p.c.replace("const ", "") == "int *" and wide.base == "MPI_Count" and p.dir != "in":
            init = f" = *{n}" if p.dir == "inout" else ""
            self.before.append(f"Count {n}_t{init};")
            self.args.append(f"&{n}_t")
            self.after.append(f"*{n} = narrow({n}_t);")
        elif p.c == "int *" and wide.base == "MPI_Aint" and p.dir == "out":
            self.before.append(f"Aint {n}_t;")
            self.args.append(f"&{n}_t")
            self.after.append(f"*{n} = narrow({n}_t);")
        elif "[3]" in p.c:
            self.args.append(f"&{n}[0][0]")
        else:
            self.args.append(n)

    def tool_word(self, p):
        n = p.name
        if not p.is_pointer:
            self.args.append(f"reinterpret_cast<uint64_t>({n})")
            return
        start = f"{n} != nullptr ? reinterpret_cast<uint64_t>(*{n}) : 0" if p.dir == "inout" else "0"
        self.before.append(f"uint64_t {n}_t = {start};")
        self.args.append(f"&{n}_t")
        self.after.append(f"if ({n} != nullptr) *{n} = reinterpret_cast<void*>({n}_t);")

    def significant(self, p, value, otherwise):
        """`value` where the argument counts. Elsewhere it may be anything: a pointer that leads nowhere, a length."""
        conditions = []
        if p.root_only:
            comm = next((q.name for q in self.f.params if q.c == "MPI_Comm"), "")
            root = "is_root" if self.f.wrapper == "collective" else "at_root"
            conditions.append(f"{root}(in_Comm({comm}), in_rank(root))")
        if p.name == "peer_comm":
            conditions.append("at_root(in_Comm(local_comm), in_rank(local_leader))")
        if buffer := self.in_place_of(p):
            conditions.append(f"in_buf({buffer}) != FM_IN_PLACE")
        return f"({' && '.join(conditions)} ? {value} : {otherwise})" if conditions else value

    def in_place_of(self, p):
        """The buffer whose MPI_IN_PLACE makes these types meaningless."""
        if self.f.wrapper != "collective" or "neighbor" in self.f.short:
            return None
        return {"sendtype": "sendbuf", "sendtypes": "sendbuf", "recvtype": "recvbuf"}.get(p.name)

    def handle(self, p):
        n, t = p.name, table.HANDLE_TYPES[p.handle]
        if not p.is_pointer:
            inward = f"in_{t}({n})"
            self.args.append(self.significant(p, inward, f"FM_{p.handle.upper()}_NULL") if self.handles_may_dangle else inward)
        elif p.is_array:
            size = self.significant(p, length(p.len, self.f), 0)
            self.before.append(f"Temp<{t}> {n}_t({n} == nullptr ? 0 : {size});")
            if p.dir != "out":
                self.before.append(f"if ({n} != nullptr)\n        for (int64_t i = 0, e = {size}; i < e; i++) "
                                   f"{n}_t[i] = in_{t}({n}[i]);")
            self.args.append(f"{n} == nullptr ? nullptr : {n}_t.data()")
            if p.dir == "inout" and t == "Request":
                # They become null or stay, also when the call fails.
                self.always.append(f"for (int64_t i = 0, e = {n} == nullptr ? 0 : {size}; i < e; i++)\n"
                                   f"        if ({n}_t[i] == FM_REQUEST_NULL) {n}[i] = out_Request(FM_REQUEST_NULL);")
            elif p.dir == "inout":
                # 0: was no handle, stays what it was.
                self.always.append(f"for (int64_t i = 0, e = {n} == nullptr ? 0 : {size}; i < e; i++)\n"
                                   f"        if (word_of({n}_t[i]) != 0) {n}[i] = out_{t}({n}_t[i]);")
            elif p.dir == "out":
                self.before.append(f"if ({n} != nullptr)\n        for (int64_t i = 0, e = {size}; i < e; i++) "
                                   f"{n}_t[i] = {{}};")
                self.after.append(f"for (int64_t i = 0, e = {n} == nullptr ? 0 : {size}; i < e; i++)\n"
                                  f"            if (word_of({n}_t[i]) != 0) {n}[i] = out_{t}({n}_t[i]);")
        elif p.dir == "out" and t == "Request" and self.abi == "mpich":
            # An int as well, always a dynamic one, and written only by success.
            self.args.append(f"reinterpret_cast<Request*>({n})")
        elif p.dir == "out":
            self.before.append(f"{t} {n}_t{{}};")
            self.args.append(f"&{n}_t")
            # 0: nothing came out (MPI_Improbe without a message). Also on errors: a failed MPI_Comm_dup says null.
            place = f" && {n} != nullptr" if self.f.wrapper == "mpit" else ""
            self.always.append(f"if (word_of({n}_t) != 0{place}) *{n} = out_{t}({n}_t);")
        else:
            self.before.append(f"{t} {n}_t = in_{t}(*{n});")
            self.args.append(f"&{n}_t")
            if p.dir == "inout":
                if t == "Request":
                    self.always.append(f"if ({n}_t == FM_REQUEST_NULL) *{n} = out_Request(FM_REQUEST_NULL);")
                elif t == "Message":
                    self.before.append(f"{t} {n}_was = {n}_t;")
                    self.always.append(f"if ({n}_t != {n}_was) *{n} = out_{t}({n}_t);")
                else:
                    self.always.append(f"if (word_of({n}_t) != 0) *{n} = out_{t}({n}_t);")

    def array(self, p, cls):
        n = p.name
        size = length(p.len, self.f)
        if p.dir == "in":
            self.before.append(f"Temp<int> {n}_t({n} == nullptr ? 0 : {size});\n    if ({n} != nullptr)\n"
                               f"        for (int64_t i = 0, e = {size}; i < e; i++) "
                               f"{n}_t[i] = in_{cls}({'(&' + n + '[0][0])' if '[3]' in p.c else n}[i]);")
            self.args.append(f"{n} == nullptr ? nullptr : {n}_t.data()")
        else:
            self.args.append(n)
            # Codes tell what failed; elsewhere than at the root they are 0, and their number is not known here.
            errors = p.kind == "errcode_array"
            if errors:
                size = self.significant(replace(p, root_only=True), size, 0)
            (self.always if errors else self.after).append(
                f"for (int64_t i = 0, e = {n} == nullptr ? 0 : {size}; i < e; i++) {n}[i] = out_{cls}({n}[i]);")

    def text(self, call, extra):
        lines = ["    " + b for b in self.before]
        args = ", ".join(self.args + extra)
        if not self.after and not self.always and self.f.ret == "int":
            lines.append(f"    return out_errclass({call}({args}));")
        elif self.f.ret != "int":
            lines.append(f"    return {call}({args});")
        else:
            lines.append(f"    int rc = {call}({args});")
            lines += ["    " + a for a in self.always]
            if len(self.after) == 1 and "\n" not in self.after[0]:
                lines.append(f"    if (__builtin_expect(rc == FM_SUCCESS, 1)) {{ {self.after[0]} }}")
            elif self.after:
                lines.append("    if (__builtin_expect(rc == FM_SUCCESS, 1)) {")
                lines += ["        " + a for a in self.after]
                lines.append("    }")
            lines.append("    return out_errclass(rc);")
        return "\n".join(lines)


def tools_body(f):
    """Events: no library here has any, and then nothing in them depends on the library (MPI-4.0 14.3.8)."""
    return "    if (int rc = fm_T_ready()) return out_errclass(rc);\n" + tools_answer(f)


def tools_answer(f):
    if f.short in ("T_event_get_num", "T_source_get_num"):
        return f"    *{f.params[0].name} = 0;\n    return 0;"
    if f.short == "T_event_get_index":
        return "    return out_errclass(FM_T_ERR_INVALID_NAME);"
    if any(p.name.endswith("_index") and p.dir == "in" for p in f.params):
        return "    return out_errclass(FM_T_ERR_INVALID_INDEX);"
    return "    return out_errclass(FM_T_ERR_INVALID_HANDLE);"


def integer_body(f):
    """X_c2f, X_f2c, X_toint, X_fromint."""
    p = f.params[0]
    if f.short.endswith(("_c2f", "_toint")):
        return f"    return c2f(word_of(in_{table.HANDLE_TYPES[p.handle]}({p.name})));"
    t = f.ret[4:]
    kind = next(k for k, v in table.HANDLE_TYPES.items() if v == t)
    return f"    return out_{t}(static_cast<{t}>(f2c(Kind::{kind}, {p.name})));"


def null_checks(f, abi):
    """Statements that meet NULL where the call has to read or write one thing: the class that ABI's library answers, through
    the handler of the first object (api/nulls.json). Where the library takes it, so do we."""
    known = table.null_classes("openmpi" if abi == "openmpi" else "mpich")
    of_class, lines = {}, []
    for p in f.params:
        if not table.needs_place(f, p) or (p.kind == "status" and abi != "mpich"):  # NULL is MPI_STATUS_IGNORE there
            continue
        name = known.get((f.name, p.name), "ERR_ARG")
        if name == "SUCCESS":
            spared = abi_type(p.c).removesuffix("*").strip()
            lines.append(f"{spared} {p.name}_spare;\n    if ({p.name} == nullptr) {p.name} = &{p.name}_spare;")
        elif room := table.room(f, p):
            of_class.setdefault(name, []).append(f"({p.name} == nullptr && {room} != nullptr && *{room} != 0)")
        else:
            of_class.setdefault(name, []).append(f"{p.name} == nullptr")
    for p in f.params:
        if count := table.needs_places(f, p):
            name = known.get((f.name, p.name), "ERR_ARG")
            if name != "SUCCESS":
                of_class.setdefault(name, []).append(f"({p.name} == nullptr && {count} > 0)")
    owner = next((p for p in f.params if p.handle in ("comm", "win", "file", "session") and not p.is_pointer), None)
    kind, word = (f"Kind::{owner.handle}", f"word_of(in_{table.HANDLE_TYPES[owner.handle]}({owner.name}))") if owner else (
        "Kind::none", "0")
    for name, conditions in of_class.items():
        lines.append(f"if (__builtin_expect({' || '.join(conditions)}, 0))\n"
                     f'        return out_errclass(fm_raise({kind}, {word}, FM_{name}, "{f.name}"));')
    return "".join(f"    {line}\n" for line in lines)


def function_text(f, abi):
    if f.wrapper == "tools":
        body = tools_body(f)
    elif f.short.endswith(("_c2f", "_f2c", "_toint", "_fromint")):
        body = integer_body(f)
    elif f.wrapper == "abi":
        body = '    return out_errclass(FM_ERR_UNSUPPORTED_OPERATION);'
    else:
        target = table.function(f.internal)
        wide = table.widened_params(target)
        b = Body(f, abi)
        for p, w in zip(f.params, wide):
            b.add(p, w)
        if f.name in AFTER:
            b.after.append(AFTER[f.name])
        extra = ["AttrLanguage::c" for _ in table.EXTRA_PARAMS.get(target.name, ())]
        body = null_checks(f, abi) + b.text(target.fm, extra)
    alias = f'FRONT_API {declaration(f, "MPI_")} __attribute__((weak, alias("PMPI_{f.short}")));\n'
    if abi == "openmpi" and f.short.endswith("_init") and f.chapter in ("persistent-coll", "neighbourhood"):
        # Open MPI 4.1 has the persistent collectives as extensions only.
        alias += "".join(f'FRONT_API {declaration(f, x)} __attribute__((weak, alias("PMPI_{f.short}")));\n'
                         for x in ("PMPIX_", "MPIX_"))
    short = short_entry.is_short(f)
    if short or f.name in SHORT_MESSAGES:
        usual = f'static __attribute__((noinline)) int {declaration(f, "").removeprefix("int ").replace("(", "_translated(", 1)}'
        return f"{usual} {{\n{body}\n}}\n{short_entry.entry(f, declaration(f), b.args) if short else ''}{alias}\n"
    return f"FRONT_API {declaration(f)} {{\n{body}\n}}\n{alias}\n"


def part_source(abi, chapters):
    out = [f"// PMPI_X in the ABI of {abi}, and MPI_X as weak aliases. Generated by tools/fmgen/front_c.py: do not edit.\n"
           f'#include "front/abi/{abi}.h"\n#include "front/abi/adapters.h"\n#include "front/abi/special.h"\n']
    functions = [f for f in table.functions() if f.chapter in chapters and f.name not in SPECIAL]
    if any(short_entry.is_short(f) for f in functions):
        out.append(short_entry.head(abi))
    out.append("\nusing namespace fermata::abi;\n\n")
    for f in functions:
        out.append(function_text(f, abi))
    if any(f.name in SHORT_MESSAGES for f in functions):
        out.append(f'#include "front/abi/{abi}_objects.h"\n#include "front/abi/short_wait.h"\n')
    return "".join(out)


def sources(abi):
    return [f"{abi}_tables.cpp"] + [f"{abi}_{name}.cpp" for name, _ in PARTS]


def main(abi, directory):
    directory = Path(directory)
    missing = {f.chapter for f in table.functions()} - {c for _, cs in PARTS for c in cs}
    if missing:
        raise SystemExit(f"front_c: chapters without a file: {sorted(missing)}")
    write_if_changed(directory / f"{abi}_values.h", values_header(abi))
    write_if_changed(directory / f"{abi}_tables.cpp", tables_source(abi))
    for name, chapters in PARTS:
        write_if_changed(directory / f"{abi}_{name}.cpp", part_source(abi, chapters))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
