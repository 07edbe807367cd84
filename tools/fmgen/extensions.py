"""Entries of the Table that are not MPI functions.

The lower half offers a few operations of its own: waits that give up when the upper half is asked to stop, the
pull of the drain, facts about predefined handles. headers.py declares them in fermata_table.h beside the MPI
functions; src/lower/binding/extensions.cpp, compiled once per library, holds the bodies.

Types are those of fermata_types.h (Status, Count, RealX). A real handle word of 0 is the library's null handle
of that kind, in both directions; a `Status*` may be nullptr. Every entry that returns int returns a standard
error class. `stop` points to a word that another thread sets; it is looked at every few hundred tests at most.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Extension:
    name: str
    ret: str
    params: tuple  # of (C++ type, name)
    why: str  # becomes the comment in the header


# C++ text that fermata_table.h needs before the Table (after fermata_types.h).
PRELUDE = """\
// What a user-defined reduction calls: upper code, reached through the gate by the thunk that the binding makes
// for each op. `len` elements of `type`; in and inout as in MPI_User_function.
using OpCallback = void (*)(uint64_t cookie, void* in, void* inout, Count len, RealDatatype type);
"""

# MPI functions whose bodies are written by hand, in extensions.cpp: name -> C++ parameters.
OVERRIDES = {
    "MPI_Op_create": (("OpCallback", "fn"), ("uint64_t", "cookie"), ("int", "commute"), ("RealOp*", "op")),
    "MPI_T_cvar_handle_alloc": (("int", "index"), ("int", "bind"), ("uint64_t", "object"), ("uint64_t*", "handle"),
                                ("int*", "count")),
    "MPI_T_pvar_handle_alloc": (("uint64_t", "session"), ("int", "index"), ("int", "bind"), ("uint64_t", "object"),
                                ("uint64_t*", "handle"), ("int*", "count")),
    "MPI_Win_lock": (("int", "lock_type"), ("int", "rank"), ("int", "assert"), ("RealWin", "win")),
}


def _e(name, params, why, ret="int"):
    pairs = tuple(tuple(p.strip().rsplit(" ", 1)) for p in params.split(",")) if params else ()
    return Extension(name, ret, pairs, why)


EXTENSIONS = (
    _e("RealOfPredefined", "uint32_t kind, uint32_t std_value",
       "real handle of a predefined virtual one; 0 for null handles and for those the library lacks", "uint64_t"),
    _e("RecvSpin", "void* buf, Count count, RealDatatype type, int source, int tag, RealComm comm, "
       "const volatile uint32_t* stop, RealRequest* req, Status* status",
       "Irecv, then test until done or *stop: then -1, and *req stays open"),
    _e("SendSpin", "const void* buf, Count count, RealDatatype type, int dest, int tag, RealComm comm, "
       "uint32_t mode, const volatile uint32_t* stop, RealRequest* req, int* done",
       "Isend (mode 0 standard, 1 synchronous, 2 ready), then test until done or *stop: then done=0 and *req stays open"),
    _e("SendrecvSpin", "const void* sendbuf, Count sendcount, RealDatatype sendtype, int dest, int sendtag, "
       "void* recvbuf, Count recvcount, RealDatatype recvtype, int source, int recvtag, RealComm comm, "
       "const volatile uint32_t* stop, RealRequest* reqs, Status* status, int* done",
       "Irecv (reqs[0]) and Isend (reqs[1]), then test both as SendSpin; status is the receive's"),
    _e("WaitSpin", "int n, RealRequest* reqs, Status* statuses, const volatile uint32_t* stop, int* next",
       "Waitall, in order from reqs[*next], that gives up on *stop; *next == n when all are done (call again with "
       "the same *next after a stop). Finished ones become 0 (none is persistent); their statuses hold their "
       "error. Returns the error itself for n == 1, else ERR_IN_STATUS if one finished in this call failed"),
    _e("WaitOneSpin", "RealRequest* req, Status* status, const volatile uint32_t* stop",
       "Wait that gives up on *stop: then -1, else the error, and *req is 0 (it is not persistent)"),
    _e("WaitInPlace", "RealRequest* req, void* status, const volatile uint32_t* stop",
       "as WaitOneSpin, with a status, or MPI_STATUS_IGNORE, of the library's own; *req is left as the library leaves it"),
    _e("WaitAnySpin", "int n, RealRequest* reqs, int* index, Status* status, const volatile uint32_t* stop, "
       "int* done",
       "Waitany that gives up on *stop; index is the standard's UNDEFINED when all are null"),
    _e("WaitAnyInPlace", "int n, RealRequest* reqs, int* index, void* status, const volatile uint32_t* stop",
       "Testany until one is done or *stop: then -1, else its error; with a status, or MPI_STATUS_IGNORE, of the library's own"),
    _e("ProbeSpin", "int source, int tag, RealComm comm, const volatile uint32_t* stop, Status* status, int* found",
       "Probe that gives up on *stop"),
    _e("MprobeSpin", "int source, int tag, RealComm comm, const volatile uint32_t* stop, RealMessage* message, "
       "Status* status, int* found",
       "Mprobe that gives up on *stop"),
    _e("PullOne", "RealComm comm, int* found, RealMessage* message, Status* status",
       "the drain's step: Improbe(ANY_SOURCE, ANY_TAG)"),
    _e("Progress", "", "lets the library make progress; matches nothing", "void"),
    _e("GroupOfWorldRanks", "int n, const int32_t* ranks, RealGroup* group",
       "a real group from ordered world ranks (and numbers of strangers); free it with Group_free"),
    _e("WorldRanksOfComm", "RealComm comm, int remote, int n, int32_t* ranks",
       "ordered world ranks of a communicator's (remote) group of n members; strangers are numbered from the world's "
       "size on, in the order in which this process meets them"),
    _e("ForgetStrangers", "", "numbers of strangers begin anew; how many there were"),
    _e("WorldAttribute", "int std_keyval, int64_t* value, int* found",
       "TAG_UB, HOST, IO, WTIME_IS_GLOBAL, APPNUM, UNIVERSE_SIZE, LASTUSEDCODE by value (ranks as standard values)"),
    _e("WinAttribute", "RealWin win, int std_keyval, int64_t* value, int* found",
       "WIN_BASE (an address), WIN_SIZE, WIN_DISP_UNIT, WIN_CREATE_FLAVOR, WIN_MODEL by value"),
    _e("ClassOf", "int code", "the standard class of a code that one of the direct functions returned"),
    _e("ToolsStart", "", "initialises the tools interface"),
    _e("LibraryText", "int what, char* text, uint64_t size",
       "0: library version, 1: processor name; at most size bytes with the final 0"),
)
