// Collectives of which some members were told and some not: all take part with bytes, so that a member whose
// part is a debt needs no types and no buffers of the program.
#include "front/core/fatal.h"
#include "front/logged/state.h"

namespace fermata::front::logged {
namespace {

using replay::Kind;
using replay::Way;

void lay_out(const Side& side, int members, Vec<mpi::Count>* counts, Vec<mpi::Aint>* places) noexcept {
    counts->clear();
    places->clear();
    mpi::Aint behind = 0;
    for (int i = 0; i < members; i++) {
        const int64_t bytes = side.of(i).bytes();
        counts->push_back(static_cast<mpi::Count>(bytes));
        places->push_back(behind);
        behind += static_cast<mpi::Aint>(bytes);
    }
}
void make_room(Part& part, int64_t bytes) noexcept { part.room.assign(static_cast<size_t>(bytes) + 1, 0); }
void fit_room(Part& part, int64_t bytes) noexcept { part.room.resize(static_cast<size_t>(bytes)); }

mpi::RealDatatype byte() noexcept { return real_byte(); }

int scatter(Part& part, const CommObject& comm, mpi::RealRequest* real) noexcept {
    const bool is_root = comm.rank == part.root;
    int64_t own = part.receive.whole().bytes();
    if (is_root) {
        lay_out(part.send, comm.size, &part.counts, &part.places);
        own = part.send.of(comm.rank).bytes();
    }
    make_room(part, own);
    fit_room(part, own);
    return LOWER(Iscatterv_c)(part.given.data(), part.counts.data(), part.places.data(), byte(),
                              part.room.data(), own, byte(), part.root, real_of(&comm), real);
}

int gather(Part& part, const CommObject& comm, mpi::RealRequest* real) noexcept {
    if (comm.rank == part.root) {
        lay_out(part.receive, comm.size, &part.room_counts, &part.room_places);
        const int64_t all = bytes_of_all(part.receive);
        make_room(part, all);
        fit_room(part, all);
    }
    return LOWER(Igatherv_c)(part.given.data(), static_cast<mpi::Count>(part.given.size()), byte(),
                             part.room.data(), part.room_counts.data(), part.room_places.data(), byte(),
                             part.root, real_of(&comm), real);
}

int alltoall(Part& part, const CommObject& comm, mpi::RealRequest* real) noexcept {
    lay_out(part.in_place ? part.receive : part.send, comm.size, &part.counts, &part.places);
    lay_out(part.receive, comm.size, &part.room_counts, &part.room_places);
    const int64_t all = bytes_of_all(part.receive);
    make_room(part, all);
    fit_room(part, all);
    return LOWER(Ialltoallv_c)(part.given.data(), part.counts.data(), part.places.data(), byte(),
                               part.room.data(), part.room_counts.data(), part.room_places.data(), byte(),
                               real_of(&comm), real);
}

int bcast(Part& part, const CommObject& comm, int root, int64_t bytes, const replay::Bytes& data,
          mpi::RealRequest* real) noexcept {
    if (comm.rank == root)
        part.room = data;
    else
        part.room.assign(static_cast<size_t>(bytes), 0);
    return LOWER(Ibcast)(part.room.data(), static_cast<mpi::Count>(part.room.size()), byte(), root,
                         real_of(&comm), real);
}

// The input as the program's type has it, for a reduction whose buffers are the program's again.
int reduce(Part& part, const CommObject& comm, mpi::RealRequest* real) noexcept {
    TypeObject* type = part.receive.type;
    int64_t count = part.receive.count;
    if (part.arguments.kind == Kind::reduce_scatter) {
        count = 0;
        for (int64_t one : part.receive.counts) count += one;
    }
    const int64_t span = count * type->extent + type->true_extent + 64;
    replay::Bytes spread(static_cast<size_t>(span), 0);
    unpack({spread.data() - type->true_lb, count, type}, part.given.data(),
           static_cast<int64_t>(part.given.size()));
    part.given = std::move(spread);
    make_room(part, span);
    const void* in = part.given.data() - type->true_lb;
    void* out = part.room.data() - type->true_lb;
    const mpi::RealOp op = real_of(part.op);
    switch (part.arguments.kind) {
        case Kind::reduce:
            return LOWER(Ireduce)(in, out, count, real_of(type), op, part.root, real_of(&comm), real);
        case Kind::scan:
            if (part.exclusive)
                return LOWER(Iexscan)(in, out, count, real_of(type), op, real_of(&comm), real);
            return LOWER(Iscan)(in, out, count, real_of(type), op, real_of(&comm), real);
        default:
            part.counts.clear();
            for (int64_t one : part.receive.counts) part.counts.push_back(static_cast<mpi::Count>(one));
            return LOWER(Ireduce_scatter_c)(in, out, part.counts.data(), real_of(type), op, real_of(&comm),
                                            real);
    }
}

}  // namespace

static bool has_form_on_bytes(Kind kind) noexcept {
    switch (kind) {
        case Kind::bcast:
        case Kind::scatter:
        case Kind::gather:
        case Kind::alltoall:
        case Kind::create:
            return true;
        default:
            return false;
    }
}

bool goes_on_bytes(const Part& part) noexcept {
    if (!part.planned || part.way == Way::native) return false;
    return part.way == Way::from_result || has_form_on_bytes(part.arguments.kind);
}

int issue_on_bytes(Part& part, const CommObject& comm, const replay::Bytes& known,
                   mpi::RealRequest* real) noexcept {
    if (part.way == Way::from_result)
        return bcast(part, comm, rank_in(comm, part.from), result_bytes(part, comm), known, real);
    switch (part.arguments.kind) {
        case Kind::bcast:
            return bcast(part, comm, part.root, part.receive.whole().bytes(), part.given, real);
        case Kind::scatter:
            return scatter(part, comm, real);
        case Kind::gather:
            return gather(part, comm, real);
        case Kind::alltoall:
            return alltoall(part, comm, real);
        case Kind::create:
            part.room.assign(part.given.size() * static_cast<size_t>(comm.size), 0);
            return LOWER(Iallgather)(part.given.data(), static_cast<mpi::Count>(part.given.size()), byte(),
                                     part.room.data(), static_cast<mpi::Count>(part.given.size()), byte(),
                                     real_of(&comm), real);
        default:
            fatal_line("fermata: a collective of the message log has no such form");
    }
}

void owe(const replay::Pay& pay) noexcept {
    Log& log = the_log();
    bring_back(replay::CallLogged{pay.comm, pay.instance});
    const replay::LoggedCall* entry = log.machine.logged(pay.comm, pay.instance);
    for (Kept& kept : log.kept) {
        if (kept.comm != pay.comm || kept.instance != pay.instance) continue;
        Part& part = *kept.part;
        part.way = pay.way;
        part.from = pay.from;
        part.planned = true;
        part.given = entry->input;
        Debt debt{pay.comm, pay.instance, {}};
        const int rc = goes_on_bytes(part) ? issue_on_bytes(part, *kept.on, entry->result, &debt.real)
                                           : reduce(part, *kept.on, &debt.real);
        if (rc == 0) log.debts.push_back(debt);
        if (rc != 0 && !library_fails("a collective of the log", rc))
            fatal_line("fermata: the library refuses a collective of the message log");
        return;
    }
    fatal_line("fermata: a collective that other ranks need is not in the message log");
}

}  // namespace fermata::front::logged
