"""The table of MPI functions and constants, as every generator sees it.

Facts live in mpi/mpi.json (one function per line: parameters with C type, kind, direction, length), mpi/beyond.json
(those beyond the standard) and mpi/constants.json (one constant per line: value in the standard ABI of MPI-5.0, in MPICH's ABI and in Open MPI's).
This module gives them one clean face and decides, once, how a C function becomes an *internal* one:

* `Function.internal` names the internal entry an ABI function goes to. Large-count variants whose signature
  differs only in the width of scalars (or of nothing) share one entry, with `Count`; functions with int arrays
  keep X and X_c ("split"). Deprecated names are aliases.
* `fm_params(f)` are the C++ parameters of `fm_X` (virtual handles), `table_params(f)` those of the table entry
  (real handles, upper-half-only things absent).
"""

import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Kinds of virtual handles, with the numbers that dynamic handles carry in bits 26..30.
KINDS = {
    "comm": 1, "group": 2, "datatype": 3, "op": 4, "request": 5, "errhandler": 6, "info": 7, "message": 8,
    "win": 9, "file": 10, "session": 11, "keyval": 12,
}
# Handle kinds that have a C++ type (a keyval is an int in every ABI).
HANDLE_TYPES = {
    "comm": "Comm", "group": "Group", "datatype": "Datatype", "op": "Op", "request": "Request",
    "errhandler": "Errhandler", "info": "Info", "message": "Message", "win": "Win", "file": "File",
    "session": "Session",
}
_HANDLE_CTYPES = {"MPI_" + t: k for k, t in HANDLE_TYPES.items()}

# Rooms whose functions never reach a fm_ entry: translated or answered in the ABI layer itself.
ABI_ONLY_ROOMS = ("abi", "tools")

# Handles of the tools interface: pointers in every ABI, words inside.
TOOL_WORDS = ("t_enum", "t_cvar", "t_pvar", "t_pvar_session")

# Adapter per callback type: the front of each ABI passes one that calls the application's function (see
# fermata_types.h). A callback parameter becomes two: `void* fn, Adapter fn_adapter`.
ADAPTERS = {
    "MPI_User_function": "OpAdapter",
    "MPI_User_function_c": "OpAdapter",
    "MPI_Comm_copy_attr_function": "CopyAdapter",
    "MPI_Type_copy_attr_function": "CopyAdapter",
    "MPI_Win_copy_attr_function": "CopyAdapter",
    "MPI_Comm_delete_attr_function": "DeleteAdapter",
    "MPI_Type_delete_attr_function": "DeleteAdapter",
    "MPI_Win_delete_attr_function": "DeleteAdapter",
    "MPI_Comm_errhandler_function": "ErrhandlerAdapter",
    "MPI_File_errhandler_function": "ErrhandlerAdapter",
    "MPI_Win_errhandler_function": "ErrhandlerAdapter",
    "MPI_Session_errhandler_function": "ErrhandlerAdapter",
    "MPI_Grequest_query_function": "GrequestQueryAdapter",
    "MPI_Grequest_free_function": "GrequestFreeAdapter",
    "MPI_Grequest_cancel_function": "GrequestCancelAdapter",
    "MPI_Datarep_conversion_function": "DatarepConversionAdapter",
    "MPI_Datarep_conversion_function_c": "DatarepConversionAdapter",
    "MPI_Datarep_extent_function": "DatarepExtentAdapter",
}


@dataclass(frozen=True)
class Param:
    name: str
    c: str  # C type as in the standard's binding, "MPI_Comm *", "const int []"
    kind: str  # comm, datatype, rank, count, buffer_in, callback:MPI_User_function ...
    dir: str  # in, out, inout
    len: str = ""  # length of an array or string, as an expression over other parameters
    root_only: bool = False

    @property
    def handle(self):
        """Handle kind ("comm" ...) or None."""
        return _HANDLE_CTYPES.get(self.base)

    @property
    def base(self):
        """C type without const, pointer and array signs."""
        return self.c.replace("const ", "").replace("[]", "").replace("[3]", "").replace("*", "").strip()

    @property
    def is_array(self):
        return "[]" in self.c or self.kind in ("status_array",)

    @property
    def is_pointer(self):
        return "*" in self.c or "[]" in self.c

    @property
    def callback(self):
        return self.kind.split(":", 1)[1] if self.kind.startswith("callback:") else None


@dataclass(frozen=True)
class Function:
    name: str  # MPI_Send
    params: tuple
    ret: str = "int"
    chapter: str = ""
    wrapper: str = "pass"  # objects, p2p, request, collective, init, local, pass, mpit, abi, tools: who writes fm_X
    alias: str = ""  # another MPI function with the same meaning
    large: str = ""  # "merged", "split" or "" (no large-count variant)
    libraries: tuple = field(default=())  # which of mpich 4.0.2, openmpi 4.1.4 export it
    # Has struct Table an entry? Else it is kept wholly in the upper half, or done by extensions (extensions.py).
    table: bool = False
    direct: bool = False  # called in the library itself, without a binding between: see direct.py
    language: bool = False  # attributes are stored by one language and may be read by another (MPI-4.0 19.3.7)
    by_hand: str = ""  # why the fronts' entry is not generated
    abis: tuple = field(default=())  # beyond the standard: whose fronts have it
    why: str = ""  # beyond the standard: answered by an error, for this reason
    answer: str = ""  # beyond the standard: what the call amounts to

    @property
    def short(self):
        """Send"""
        return self.name.split("_", 1)[1]

    @property
    def prefix(self):
        """MPI_, or MPIX_, QMPI_ of what the standard does not have."""
        return self.name.split("_", 1)[0] + "_"

    @property
    def fm(self):
        return "fm_" + (self.short if self.prefix == "MPI_" else self.name)

    @property
    def internal(self):
        """Name (MPI_...) of the function whose fm_ entry this one uses."""
        if not self.alias:
            return self.name
        return function(self.alias).internal

    def param(self, name):
        return next(p for p in self.params if p.name == name)


@dataclass(frozen=True)
class Constant:
    name: str
    cls: str  # "handle:comm", errclass, rank, tag, amode, assert, thread_level, limit, ...
    std: int
    mpich: int  # None when MPICH 4.0.2 lacks it; handles as unsigned words
    openmpi: object  # int, "&symbol" for handles, or None
    openmpi_fortran: object = None  # handles: Open MPI's Fortran integer (asked from its MPI_X_c2f), or None

    @property
    def short(self):
        return self.name.split("_", 1)[1]


@lru_cache(maxsize=None)
def functions():
    """All C functions of the standard (MPI-5.0 with the removed ones), by the order of the file."""
    rows = json.loads((ROOT / "mpi/mpi.json").read_text())["functions"]
    out = []
    for r in rows:
        params = tuple(Param(p["name"], p["c"], p["kind"], p["dir"], p.get("len", ""), p.get("root_only", False))
                       for p in r["params"])
        out.append(Function(r["name"], params, r.get("ret", "int"), r["chapter"], r["wrapper"], r.get("alias", ""),
                            r.get("large", ""), tuple(r["in"]), r.get("table", False), r.get("direct", False),
                            r.get("language", False), r.get("by_hand", "")))
    return tuple(out)


@lru_cache(maxsize=None)
def beyond():
    """What libraries have beyond the standard (mpi/beyond.json)."""
    rows = json.loads((ROOT / "mpi/beyond.json").read_text())["functions"]
    return tuple(Function(r["name"], tuple(Param(p["name"], p["c"], p["kind"], p["dir"]) for p in r.get("params", ())),
                          r.get("ret", "int"), r.get("chapter", ""), alias=r.get("alias", ""), by_hand=r.get("by_hand", ""),
                          abis=tuple(r["abis"]), why=r.get("why", ""), answer=r.get("answer", "")) for r in rows)


def beyond_internals():
    """Those with a fm_ entry of their own."""
    return tuple(f for f in beyond() if not f.alias and not f.by_hand)


@lru_cache(maxsize=None)
def _by_name():
    return {f.name: f for f in functions()}


def function(name):
    return _by_name()[name]


def has_function(name):
    return name in _by_name()


@lru_cache(maxsize=None)
def internals():
    """Functions that have a fm_ entry: no aliases, nothing that the ABI layer answers by itself."""
    return tuple(f for f in functions() if not f.alias and f.wrapper not in ABI_ONLY_ROOMS)


@lru_cache(maxsize=None)
def table_functions():
    """Functions with an entry in struct Table; the binding implements exactly these (and the extensions)."""
    return tuple(f for f in internals() if f.table)


@lru_cache(maxsize=None)
def constants():
    rows = json.loads((ROOT / "mpi/constants.json").read_text())["constants"]
    return tuple(Constant(r["name"], r["class"], r["std"], r["mpich"], r["openmpi"], r.get("openmpi_fortran"))
                 for r in rows)


def constants_of(cls):
    return tuple(c for c in constants() if c.cls == cls)


def constant(name):
    return next(c for c in constants() if c.name == name)


# What the libraries may be handed as NULL, by the standard or because they say so.
_MAY_BE_NULL = ("argc", "argv", "extra_state", "address", "ptr", "buffer_in", "buffer_out", "buffer_inout", "string_in")


def needs_place(f, p):
    """Is this a pointer through which the call reads or writes one thing? Not arrays (of no elements they may be NULL),
    not what MPI_T makes optional, not what is asked for at one process only."""
    if p.callback or p.is_array or p.root_only or f.chapter in ("dynamic", "abi/f2c", "tools(MPI_T)"):
        return False
    return p.is_pointer and p.dir in ("out", "inout") and p.kind not in _MAY_BE_NULL


def room(f, p):
    """The length that the caller gives with a place for text and gets back: with 0 it asks for the length only, and there
    may be no place. None: there is no such length."""
    if p.kind != "string_out":
        return None
    return next((q.name for q in f.params if q.kind == "strlen" and q.dir == "inout"), None)


def needs_places(f, p):
    """The parameter that says how many elements the call writes to this array; None if it is no such array."""
    if not p.is_array or p.dir != "out" or p.kind == "status_array" or f.chapter in ("dynamic", "tools(MPI_T)"):
        return None
    return next((q.name for q in f.params if q.name == p.len and q.dir == "in" and not q.is_pointer), None)


@lru_cache(maxsize=None)
def null_classes(library):
    """{(function, parameter): error class} of what that library says to NULL there (mpi/nulls.json), where it is not
    MPI_ERR_ARG. MPI_SUCCESS: it takes it."""
    rows = json.loads((ROOT / "mpi/nulls.json").read_text())
    return {tuple(place.split()): name for name, places in rows.get(library, {}).items() for place in places}


def widened_params(f):
    """C-level parameters with merged scalars widened: those of the X_c variant where both share an entry."""
    if f.large == "merged":
        return function(f.name + "_c").params
    wide = next((g for g in functions() if g.alias == f.name and g.name.endswith("_x")), None)
    return wide.params if wide else f.params


def _cxx(p, real):
    """C++ type of one internal parameter."""
    const = "const " if p.c.startswith("const ") else ""
    handle = p.handle
    if handle:
        base = ("Real" if real else "") + HANDLE_TYPES[handle]
        return f"{const}{base}*" if p.is_pointer else base
    if p.kind == "buffer_baseptr":
        return "void**"
    if p.kind in TOOL_WORDS:
        return "uint64_t*" if p.is_pointer else "uint64_t"
    base = {"MPI_Count": "Count", "MPI_Aint": "Aint", "MPI_Offset": "Offset", "MPI_Status": "Status"}.get(p.base,
                                                                                                         p.base)
    if "[3]" in p.c:
        return "const int*"
    stars = p.c.count("*") + p.c.count("[]")
    return f"{const}{base}{'*' * stars}"


def fm_params(f):
    """[(C++ type, name, Param or None)] of fm_X: virtual handles, callbacks with adapters, extras at the end."""
    out = []
    for p in widened_params(f):
        if p.kind == "varargs":
            continue
        if p.callback:
            out.append(("void*", p.name, p))
            out.append((ADAPTERS[p.callback], p.name + "_adapter", None))
        else:
            out.append((_cxx(p, real=False), p.name, p))
    if f.language:
        out.append(("AttrLanguage", "language", None))
    return out


def table_params(f):
    """[(C++ type, name, Param or None)] of the table entry: real handles."""
    from fmgen import extensions

    if f.name in extensions.OVERRIDES:
        return [(t, n, None) for t, n in extensions.OVERRIDES[f.name]]
    return [(_cxx(p, real=True), p.name, p) for p in widened_params(f)]


def cxx_ret(f):
    return {"MPI_Aint": "Aint"}.get(f.ret, f.ret)


def openmpi_data_symbols():
    """[(size, name)] of the data symbols of libmpi.so.40; executables copy-relocate them, sizes must be exact."""
    rows = (ROOT / "mpi/openmpi_data_symbols.txt").read_text().split("\n")
    return [(int(r.split()[0]), r.split()[1]) for r in rows if r.strip()]
