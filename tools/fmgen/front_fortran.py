"""Generates the Fortran entry points of an ABI: mpi_x_ and its other manglings, on top of fm_X.

    python3 -m fmgen.front_fortran openmpi|mpich OUTPUT_DIRECTORY

Every procedure has two halves. The inner one, F_X, is the C front's body (front_c.Body) for an ABI whose handles are
INTEGERs; the outer one turns Fortran's arguments (all by reference, blank-padded strings with hidden lengths,
LOGICALs, addresses of common blocks, indices from 1) into C's. gfortran's LOGICAL is 0 or 1 and needs no more than
that.

openmpi: the whole of libmpi_mpifh.so.40. mpich: only what Debian's own libmpichfort.so.12 cannot do on top of the
front, namely the procedures that take attribute and generalized-request callbacks (it would tell the library through
MPICH internals how to call them).
"""

import sys
from pathlib import Path

from fmgen import front_beyond, front_c, table
from fmgen.headers import write_if_changed

PARTS = front_c.PARTS
INT64 = ("MPI_Aint", "MPI_Count", "MPI_Offset")

# Their X_init are MPIX in Open MPI 4.1.4.
COLLECTIVE_CHAPTERS = ("persistent-coll", "collective", "neighbourhood")
# Other names of a procedure: Open MPI's modules for mpi_f08 call these.
EXTRA_NAMES = {"alloc_mem": ("cptr",), "win_allocate": ("cptr",), "win_allocate_shared": ("cptr",),
               "win_shared_query": ("cptr",), "wtime": ("f90",), "wtick": ("f90",), "aint_add": ("f90",),
               "aint_diff": ("f90",)}
# Fortran types that mpi_sizeof_<type>_<rank> knows, with their bytes.
SIZEOF = {"character": 1, "logical": 4, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "real32": 4, "real64": 8,
          "real128": 16, "complex32": 8, "complex64": 16, "complex128": 32}
RANKS = ["scalar"] + [f"r{i}" for i in range(1, 16)]


def mpi1(f):
    """MPI-1 procedures take INTEGER where C takes MPI_Aint."""
    return f.chapter == "removed(MPI-1)"


def attribute_mpi1(f):
    return f.alias != "" and table.function(f.alias).language


def wanted(f, abi):
    if f.name.endswith("_c") or f.chapter == "tools(MPI_T)" or f.name.startswith("MPI_Status_") and "2f" in f.name:
        return False
    if f.short.endswith(("_c2f", "_f2c", "_toint", "_fromint", "_f2c08", "_c2f08")) or f.name == "MPI_Info_create_env":
        return False
    if f.name.startswith("MPI_Status_f") or f.name.startswith("MPI_Abi_"):
        return False
    if abi == "mpich":
        return any(p.callback and ("attr" in p.callback or "Grequest" in p.callback or
                                   p.callback in ("MPI_Copy_function", "MPI_Delete_function")) for p in f.params)
    return True


class Outer:
    """The Fortran-facing half of one procedure."""

    def __init__(self, f):
        self.f = f
        self.params, self.hidden = [], []
        self.before, self.args, self.after = [], [], []
        self.requests = any(p.kind == "request_array" for p in f.params)
        for p in f.params:
            self.add(p)

    def add(self, p):
        n, f = p.name, self.f
        base = p.base
        if p.kind in ("argc", "argv") or p.kind == "varargs":
            if p.kind != "varargs":
                self.args.append("nullptr")
            return
        if p.callback:
            self.par("void*", n, n)
        elif p.kind == "string_in":
            self.par("const char*", n, f"{n}_s.c_str()")
            self.hidden.append(f"int {n}_len")
            self.before.append(f"FString {n}_s({n}, {n}_len);")
        elif p.kind == "string_out":
            limit = p.len[4:] if p.len.startswith("MPI_MAX") else front_c.STRING_LIMITS.get(f.name, "MAX_INFO_VAL")
            self.par("char*", n, f"{n}_s")
            self.hidden.append(f"int {n}_len")
            self.before.append(f"char {n}_s[A_{limit} + 1];\n    {n}_s[0] = 0;")
            flag = next((q.name for q in f.params if q.kind == "logical" and q.dir == "out"), None)
            self.after.append(f"if (rc == 0{f' && *{flag} != 0' if flag else ''}) pad_string({n}, {n}_len, {n}_s);")
        elif p.kind in ("string_array", "string_array2"):
            # Programs to spawn and their arguments: the root's only.
            self.par("char*", n, f"{n}_s.data()")
            self.hidden.append(f"int {n}_len")
            kind = "FStringRows" if p.kind == "string_array2" else "FStrings"
            count = "*count" if p.len else "-1"
            self.before.append(f"{kind} {n}_s(at_root(in_Comm(*comm), in_rank(*root)) ? fargv({n}) : nullptr, {n}_len, "
                               f"{count});")
        elif p.kind == "strlen" and p.dir == "in":
            self.par("const int*", n, f"(*{n} < A_MAX_INFO_VAL ? *{n} : A_MAX_INFO_VAL)")
        elif p.kind in ("status", "status_array"):
            self.par("A_Status*", n, f"fstatus({n})")
        elif p.kind in ("buffer_in", "buffer_out", "buffer_inout", "ptr", "ptr_in"):
            self.par("void*", n, f"fbuf({n})")
        elif p.kind == "buffer_baseptr":
            if n == "buffer_addr":  # Fortran programs know what they attached
                self.before.append(f"void* {n}_d = nullptr;")
                self.par("void*", n, f"&{n}_d")
            else:
                self.par("void*", n, n)
        elif p.kind == "attr_val":
            word = "int" if attribute_mpi1(f) else "int64_t"
            if p.dir == "in":
                self.par(f"const {word}*", n, f"reinterpret_cast<void*>(static_cast<intptr_t>(*{n}))")
            else:
                self.par(f"{word}*", n, n)
                keyval = next(q.name for q in f.params if q.kind == "keyval")
                self.after.append(f"if (rc == 0 && *flag != 0)\n        *{n} = static_cast<{word}>("
                                  f"attribute_value(in_keyval(*{keyval}), *{n}));")
        elif p.kind == "extra_state":
            if "Grequest" in f.name:  # the callbacks get the program's variable itself
                self.par("int64_t*", n, n)
            else:
                word = "int" if attribute_mpi1(f) else "int64_t"
                self.par(f"const {word}*", n, f"reinterpret_cast<void*>(static_cast<intptr_t>(*{n}))")
        elif p.kind == "weight_array":
            self.par("int*", n, f"fweights({n})")
        elif p.kind == "errcode_array":
            self.par("int*", n, f"ferrcodes({n})")
        elif "[3]" in p.c:
            self.par("int*", n, f"reinterpret_cast<int (*)[3]>({n})")
        elif not p.is_pointer:
            word = "int64_t" if base in INT64 and not mpi1(f) else "int"
            self.par(f"const {word}*", n, f"*{n}")
        elif base in INT64 and mpi1(f):
            self.old_address(p)
        else:
            word = "int64_t" if base in INT64 else "char" if base == "char" else "int"
            self.par(f"{word}*", n, n)
            if p.kind == "logical":
                self.after.append(f"*{n} = *{n} != 0;")
            elif p.kind == "index" and p.dir == "out" and self.requests:
                self.after.append(f"if (rc == 0) from_one({n});")
            elif p.kind == "index_array" and p.dir == "out" and self.requests:
                self.after.append(f"if (rc == 0)\n        for (int i = 0; i < *outcount; i++) from_one(&{n}[i]);")

    def old_address(self, p):
        n = p.name
        if p.is_array:
            self.before.append(f"Temp<int64_t> {n}_w(*count);\n"
                               f"    for (int i = 0; i < *count; i++) {n}_w[i] = {n}[i];")
            self.par("int*", n, f"{n}_w.data()")
        else:
            self.before.append(f"int64_t {n}_w = 0;")
            self.par("int*", n, f"&{n}_w")
            self.after.append(f"*{n} = static_cast<int>({n}_w);")

    def par(self, ctype, name, argument):
        self.params.append(f"{ctype} {name}")
        self.args.append(argument)

    def text(self, ret, name):
        call = f"F_{self.f.short}({', '.join(self.args)})"
        if ret != "int":  # functions, not subroutines
            return f"FRONT_FORTRAN {ret} {name}({', '.join(self.params)}) {{ return {call}; }}\n"
        ierr = [] if self.f.name == "MPI_Pcontrol" else ["int* ierror"]
        lines = "".join(f"    {b}\n" for b in self.before)
        lines += f"    int rc = {call};\n"
        lines += "".join(f"    {a}\n" for a in self.after)
        lines += "    if (ierror != nullptr) *ierror = rc;\n" if ierr else "    (void)rc;\n"
        return f"FRONT_FORTRAN void {name}({', '.join(self.params + ierr + self.hidden)}) {{\n{lines}}}\n"


def inner(f):
    """F_X: the C front's body with INTEGER handles. Those written by hand are in fortran.h."""
    if f.by_hand:
        return ""
    target = None if f.wrapper == "abi" or f.why else f if f.abis else table.function(f.internal)
    if f.why:
        body = front_beyond.refusal(f)
    elif target is None:
        body = "    return out_errclass(FM_ERR_UNSUPPORTED_OPERATION);"
    else:
        b = front_c.Body(f, "openmpi", handles_are_pointers=False)
        for p, w in zip(f.params, table.widened_params(target)):
            b.add(p, w)
        if f.name in front_c.AFTER and "get_contents" in f.name:
            b.after.append(front_c.AFTER[f.name])
        language = "AttrLanguage::fortran_int" if attribute_mpi1(f) else "AttrLanguage::fortran_aint"
        body = b.text(target.fm, [language] if target.language else [])
    return f"static inline {front_c.declaration(f, 'F_')} {{\n{body}\n}}\n"


def beyond_procedure(f):
    """What Open MPI 5 has beyond the standard."""
    primary, base = f"pmpix_{f.short.lower()}_", f.short.lower()
    return (inner(f) + Outer(f).text("int", primary) +
            f'FRONT_MPIX_ALIASES("{base}", "{base.upper()}", "{f.short}", "{primary}")\n\n')


def aliases(primary, base, c_name, openmpi):
    """Other names of `primary` (pmpi_x_). base: x in lower case; c_name: X as in C."""
    if not openmpi:
        return f'FRONT_NAMES("{base}", "{base.upper()}")\n'
    out = f'FRONT_NAMES("{base}", "{base.upper()}")\nFRONT_OPENMPI_NAMES("{base}", "{c_name}")\n'
    for extra in EXTRA_NAMES.get(base, ()):
        names = [f"{head}_{base}_{extra}{tail}" for head in ("mpi", "pmpi") for tail in ("", "_", "__")]
        names += [f"ompi_{base}_{extra}_f", *(f"{head}_{base}_{extra}".upper() for head in ("mpi", "pmpi"))]
        names += [f"{head}_{c_name}_{extra}{tail}" for head in ("MPI", "PMPI") for tail in ("_f", "_f08")]
        out += "asm(" + " ".join(f'FRONT_NAME("{n}", "{primary}")' for n in names) + ");\n"
    if c_name.endswith("_init") and table.function("MPI_" + c_name).chapter in COLLECTIVE_CHAPTERS:
        out += f'FRONT_MPIX_NAMES("{base}", "{base.upper()}", "{c_name}")\n'
    return out


def procedure(f, abi):
    ret = {"int": "int", "double": "double", "MPI_Aint": "int64_t"}[f.ret]
    primary = f"pmpi_{f.short.lower()}_"
    return (inner(f) + Outer(f).text(ret, primary) +
            aliases(primary, f.short.lower(), f.short, abi == "openmpi") + "\n")


def handles_header():
    """in_X and out_X for Open MPI's INTEGER handles."""
    out = ["// Generated by tools/fmgen/front_fortran.py: do not edit.\n#pragma once\n\nnamespace fermata::abi {\n\n"]
    f_of = {c.std: c.openmpi_fortran for c in table.constants()
            if c.cls.startswith("handle:") and c.openmpi_fortran is not None}
    out.append("inline constexpr short kFortranOf[1024] = {" + ", ".join(str(f_of.get(i, -1)) for i in range(1024)) +
               "};\n")
    for kind, t in table.HANDLE_TYPES.items():
        rows = {c.openmpi_fortran: c.std for c in table.constants_of("handle:" + kind)
                if c.openmpi_fortran is not None}
        size = max(rows, default=-1) + 1
        values = ", ".join(str(rows.get(i, 0)) for i in range(size)) or "0"
        out.append(f"inline constexpr short kIn{t}[{max(size, 1)}] = {{{values}}};\n"
                   f"inline {t} in_{t}(int handle) {{ return static_cast<{t}>(in_fint(handle, kIn{t}, {size})); }}\n"
                   f"inline int out_{t}({t} handle) {{ return out_fint(static_cast<uint32_t>(handle), kFortranOf); }}\n")
    out.append("\n}  // namespace fermata::abi\n")
    return "".join(out)


def sizeof_source():
    out = []
    for kind, size in SIZEOF.items():
        primary = f"pmpi_sizeof_{kind}_scalar_"
        out.append(f"FRONT_FORTRAN void {primary}(void*, int* size, int* ierror) {{\n    *size = {size};\n"
                   "    if (ierror != nullptr) *ierror = 0;\n}\n")
        names = [f"{head}_sizeof_{kind}_{rank}_" for head in ("mpi", "pmpi") for rank in RANKS]
        out.append("asm(" + "\n    ".join(f'FRONT_NAME("{n}", "{primary}")' for n in names if n != primary) + ");\n")
    return "".join(out)


def source(functions, abi):
    header = "front/fortran/openmpi_fortran.h" if abi == "openmpi" else "front/fortran/mpich_fortran.h"
    out = [f'// Fortran entry points. Generated by tools/fmgen/front_fortran.py: do not edit.\n#include "{header}"\n\n'
           'using namespace fermata::abi;\n\n']
    out += [procedure(f, abi) for f in functions]
    return "".join(out)


def main(abi, directory):
    directory = Path(directory)
    functions = [f for f in table.functions() if wanted(f, abi)]
    if abi == "mpich":
        write_if_changed(directory / "mpich_fortran.cpp", source(functions, abi))
        return
    write_if_changed(directory / "openmpi_fortran_handles.h", handles_header())
    for name, chapters in PARTS:
        text = source([f for f in functions if f.chapter in chapters], abi)
        if name == "datatype":
            text += sizeof_source()
        if name == "objects":
            text += "".join(beyond_procedure(f) for f in table.beyond() if f.params and abi in f.abis)
        write_if_changed(directory / f"openmpi_fortran_{name}.cpp", text)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
