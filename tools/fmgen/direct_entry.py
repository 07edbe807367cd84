"""The entries that the application calls, as short as can be: a blocking collective of the direct tier within the function of
its ABI, so that the way from the application to the library is one function.

What it cannot do (two different types, arguments that mean something else to this library) goes the translated way, which is the function
X_translated, through X_unknown if a handle was not met before. Once the objects are known they stand where the handles
stood, also in what goes on from there: X_whole (DirectCollective::has_to_be_call), and X_held with a checkpoint on its way.
"""

from fmgen import direct, table

COLD = "static __attribute__((noinline, cold))"
OBJECTS = {"comm": "CommObject", "datatype": "TypeObject", "op": "OpObject"}


def head(abi):
    used = ("all_plain", "are_plain_numbers", "front", "library_is_of", "real_of", "DirectCollective", *OBJECTS.values())
    return (f'#include "front/abi/{abi}_objects.h"\n#include "front/requests/direct_collective.h"\n\n'
            + "".join(f"using fermata::front::{name};\n" for name in used))


def is_direct_entry(f):
    return f.wrapper == "collective" and direct.is_direct(f)


def held_declaration(f):
    """The rest of a collective that is_held(), with the arguments of fm_X."""
    return f"int {f.fm}_held({', '.join(f'{t} {n}' for t, n, _ in table.fm_params(f))})"


def entry(f, declaration, translated):
    """C++ of PMPI_X. `declaration`: its head; `translated`: the arguments of fm_X, in order."""
    params = table.fm_params(f)
    inward = dict(zip((n for _, n, _ in params), translated))
    # The communicator first, which says whether this is the root; last what may mean nothing: beside MPI_IN_PLACE, elsewhere
    # than at the root.
    handles = sorted(((n, p) for _, n, p in params if p.handle),
                     key=lambda each: (each[1].handle != "comm", each[1].root_only, each[0] == "sendtype"))
    find, met, first = [], [], {}
    for n, p in handles:
        if p.handle in first:  # of two types, mostly the same; one of them may be anything
            other = f"{n} != {first[p.handle]}"
            other = f"is_root(comm_o, root) && {other}" if p.root_only else other
            find.append(f"    if (__builtin_expect({other}, 0)) {go(f, 'translated')}\n    auto* const {n}_o = {first[p.handle]}_o;\n")
            continue
        first[p.handle] = n
        met.append(f"    meet<Kind::{p.handle}>({n});\n")
        find.append(f"    auto* const {n}_o = static_cast<{OBJECTS[p.handle]}*>(object_of<Kind::{p.handle}>({n}));\n"
                    f"    if (__builtin_expect({n}_o == nullptr, 0)) {go(f, 'unknown')}\n")

    early, plain = refusal(f, inward)
    real = {n: f"real_of({n}_o)" if p.handle else n for _, n, p in params}
    body = "".join(
        ([f"    if ({plain}) {go(f, 'translated')}\n"] if plain and early else []) + find
        + [f'    DirectCollective call("{f.name}", comm_o' + ("" if early else f", [&] {{\n        return !library_is_of(kFamily) && "
           f"({plain});\n    }}") + ");\n",
           f"    if (call.has_to_be_call()) {go(f, 'whole', '_o')}\n    if (call.is_held()) {go(f, 'held', '_o')}\n",
           f"    return call.run(out_errclass, front.direct.{f.short}, {', '.join(real[n] for _, n in direct.params(f))});\n"])
    unknown = declaration.replace(f"PMPI_{f.short}", f"{f.short}_unknown", 1)
    return (f"{COLD} {unknown} {{\n{''.join(met)}    {go(f, 'translated')}\n}}\n"
            f"{of_objects(f, 'whole', f.fm, inward)}{of_objects(f, 'held', f.fm + '_held', inward)}FRONT_API {declaration} {{\n{body}}}\n")


def refusal(f, inward):
    """C++: may the library not have the arguments as they came? And whether to ask at once. A library of the ABI's family has
    its values with a meaning of their own, so that arguments need not be looked at; which one it is, is known once a restart
    cannot change it. Where a type counts at the root only, the root is asked for before."""
    params = table.fm_params(f)
    numbers = [n for t, n, p in params if t == "Count" or p.kind == "rank"]
    buffers = [inward[n] for _, n, p in params if n in ("sendbuf", "recvbuf")]
    plain = ([f"!are_plain_numbers({', '.join(numbers)})"] if numbers else []) + (
        [f"!all_plain({', '.join(buffers)})"] if buffers else [])
    return not buffers or any(p.root_only and p.handle for _, _, p in params), " || ".join(plain)


def go(f, way, suffix=""):
    """The rest of the entry is another function's: with the arguments as they came, or with the objects found."""
    return f"return {f.short}_{way}({', '.join(p.name + (suffix if p.handle else '') for p in f.params)});"


def of_objects(f, way, function, inward):
    """A function that has objects where the entry has handles, in the same registers."""
    plain = {p.name: p for p in f.params}
    heads, arguments = [], []
    for t, n, p in table.fm_params(f):
        if p.handle:
            heads.append(f"const {OBJECTS[p.handle]}* {n}")
            arguments.append(f"static_cast<{t}>({n}->handle)")
        else:
            heads.append(f"{'int' if plain[n].base == 'int' and t == 'Count' else t} {n}")
            arguments.append(inward[n])
    return (f"{COLD} int {f.short}_{way}({', '.join(heads)}) {{\n"
            f"    return out_errclass({function}({', '.join(arguments)}));\n}}\n")
