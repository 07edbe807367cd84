"""The functions of the library that the upper half calls without a binding between: those on the path that has to be
fast, with arguments that need no translation.

Both libraries' functions have one signature at the level of the machine (System V psABI, x86-64: an int handle and a pointer
handle arrive in the same register or the same eight bytes of stack), so `struct Direct` declares each once, with words for
handles. Whether an argument is plain (a count that fits an int, a rank that is a number, no MPI_IN_PLACE, no null handle)
the caller asks before (all_plain).
"""

from fmgen import table

# Libraries of one family have one status and one MPI_STATUS_IGNORE: what the ABI of the application has, the library may have.
FAMILY = """
// Who has the same status, MPI_STATUS_IGNORE and other values with a meaning of their own.
enum class Family : uint32_t { none, openmpi, mpich };
"""
MORE = """    int (*Iprobe)(int source, int tag, RealComm comm, int* flag, void* status);
    int (*Test)(RealRequest* request, int* flag, void* status);
    // See lower/binding/look.h and spent_receive.h.
    using Look = int (*)(RealRequest request, void* status, uint64_t room, const volatile uint32_t* stop);
    const Look* look_at_receive;
    int (*end_spent_receive)();
    RealRequest* spent_receive;
    // Right after a test of another request: the library's engine has been turned.
    int (*TestAnother)(RealRequest* request, int* flag, void* status);
    // What Isend gives for a message that is on its way for good, if that is always one and the same request which nobody
    // has to free; else 0.
    const uint64_t* ended_send;
    Family family;
"""

def is_direct(f):
    if f.direct:
        return True
    params = table.fm_params(f)
    return (f.wrapper == "collective" and not f.name.endswith("_c") and "_init" not in f.name and f.short[0] != "I"
            and any(n == "comm" for _, n, _ in params) and not any(p.handle and p.is_array for _, _, p in params))


def functions():
    return [f for f in table.table_functions() if is_direct(f)]


def params(f):
    """[(C++ type, name)] of the library's function, with words for handles."""
    plain = {q.name: q for q in f.params}
    return [("int" if t == "Count" and plain[n].base == "int" else t, n) for t, n, _ in table.table_params(f)]


def declaration(f):
    return f"int (*{f.short})({', '.join(f'{t} {n}' for t, n in params(f))});"


def all_plain(f, names):
    """C++: may the library have the arguments as they are? `names` gives the expression of each parameter."""
    numbers, others = [], []
    for t, n, p in table.table_params(f):
        if t == "Count" or p.kind in ("rank", "tag"):
            numbers.append(names[n])
        elif n in ("sendbuf", "recvbuf") or (p.handle and p.handle != "comm" and not p.is_pointer):
            others.append(names[n])
    questions = [f"are_plain_numbers({', '.join(numbers)})"] if numbers else []
    if others:
        questions.append(f"all_plain({', '.join(others)})")
    return " && ".join(questions) or "true"
