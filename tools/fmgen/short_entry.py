"""The entries that the application calls, as short as can be: the short form of a blocking collective within the function of
its ABI, so that the way from the application to the library is one function.

What it cannot do (arguments with a meaning of their own, the rest of ShortCollective::is_from_start) goes the usual way,
which is the function X_translated, through X_unknown if a handle was not met before; a checkpoint on its way goes on in
fm_X_held.
"""

from fmgen import direct, table

OBJECTS = {"comm": "CommObject", "datatype": "TypeObject", "op": "OpObject"}


def head(abi):
    used = ("all_plain", "are_plain_numbers", "front", "real_of", "ShortCollective", *OBJECTS.values())
    return (f'#include "front/abi/{abi}_objects.h"\n#include "front/core/short_collective.h"\n\n'
            + "".join(f"using fermata::front::{name};\n" for name in used))


def is_short(f):
    return f.wrapper == "collective" and direct.is_direct(f)


def held_declaration(f):
    """The rest of a collective that is_held(), with the arguments of fm_X."""
    return f"int {f.fm}_held({', '.join(f'{t} {n}' for t, n, _ in table.fm_params(f))})"


def entry(f, declaration, translated):
    """C++ of PMPI_X. `declaration`: its head; `translated`: the arguments of fm_X, in order."""
    names = [p.name for p in f.params]
    inward = dict(zip((n for _, n, _ in table.fm_params(f)), translated))
    usual = f"return {f.short}_translated({', '.join(names)});"
    objects, met, real, known = [], [], {}, []
    # The communicator first, which says whether this is the root.
    for n, p in sorted(((n, p) for _, n, p in table.fm_params(f) if p.handle), key=lambda each: (each[1].handle != "comm", each[1].root_only)):
        find, meet = f"object_of<Kind::{p.handle}>({n})", f"meet<Kind::{p.handle}>({n});"
        other = {"sendtype": "recvtype", "recvtype": "sendtype"}.get(n)
        if p.root_only:  # elsewhere it may be anything
            find = f"is_root(comm_o, root) ? {find} : {other}_o"
            meet = f"if (is_root(in_Comm(comm), in_rank(root))) {meet}"
        elif other in known:  # mostly the same one
            find = f"__builtin_expect({n} == {other}, 1) ? {other}_o : {find}"
        known.append(n)
        objects.append(f"    auto* const {n}_o = static_cast<{OBJECTS[p.handle]}*>({find});\n"
                       f"    if (__builtin_expect({n}_o == nullptr, 0)) {usual.replace('_translated', '_unknown', 1)}\n")
        met.append(f"    {meet}\n")
    for _, n, p in table.fm_params(f):
        real[n] = n if not p.handle else "call.comm()" if p.handle == "comm" else f"real_of({n}_o)"
    numbers = [n for t, n, p in table.fm_params(f) if t == "Count" or p.kind == "rank"]
    buffers = [inward[n] for _, n, p in table.fm_params(f) if n in ("sendbuf", "recvbuf")]
    plain = ([f"!are_plain_numbers({', '.join(numbers)})"] if numbers else []) + (
        [f"!all_plain({', '.join(buffers)})"] if buffers else [])
    lines = [f"    if ({' || '.join(plain)}) {usual}\n"] if plain else []
    lines += objects
    lines.append(f'    ShortCollective call("{f.name}", comm_o);\n    if (call.is_from_start()) {usual}\n')
    lines.append(f"    if (call.is_held()) {usual.replace('_translated', '_held', 1)}\n")
    arguments = ", ".join(real[n] for _, n in direct.params(f))
    lines.append(f"    return call.run(out_errclass, front.direct.{f.short}, {arguments});\n")
    unknown, held = (declaration.replace(f"PMPI_{f.short}", f"{f.short}_{way}", 1) for way in ("unknown", "held"))
    cold = "static __attribute__((noinline, cold))"
    return (f"{cold} {unknown} {{\n{''.join(met)}    {usual}\n}}\n"
            f"{cold} {held} {{\n    return out_errclass({f.fm}_held({', '.join(translated)}));\n}}\n"
            f"FRONT_API {declaration} {{\n{''.join(lines)}}}\n")
