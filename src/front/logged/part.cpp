#include "front/logged/part.h"

#include "front/requests/nonblocking.h"

namespace fermata::front::logged {
namespace {

using replay::Kind;

bool is_integer(const TypeObject* type) noexcept {
    if (!type->predefined) return false;
    const mpi::Datatype integers[] = {
        mpi::FM_CHAR,    mpi::FM_SIGNED_CHAR,    mpi::FM_UNSIGNED_CHAR, mpi::FM_BYTE,
        mpi::FM_SHORT,   mpi::FM_UNSIGNED_SHORT, mpi::FM_INT,           mpi::FM_UNSIGNED,
        mpi::FM_LONG,    mpi::FM_UNSIGNED_LONG,  mpi::FM_LONG_LONG,     mpi::FM_UNSIGNED_LONG_LONG,
        mpi::FM_INT8_T,  mpi::FM_INT16_T,        mpi::FM_INT32_T,       mpi::FM_INT64_T,
        mpi::FM_UINT8_T, mpi::FM_UINT16_T,       mpi::FM_UINT32_T,      mpi::FM_UINT64_T,
        mpi::FM_AINT,    mpi::FM_OFFSET,         mpi::FM_COUNT,         mpi::FM_INTEGER,
        mpi::FM_LOGICAL, mpi::FM_C_BOOL};
    for (mpi::Datatype one : integers)
        if (type->handle == static_cast<uint32_t>(one)) return true;
    return false;
}

// Another order of evaluation may give other bits.
bool order_matters(const OpObject* op, const TypeObject* type) noexcept {
    if (op == nullptr || type == nullptr) return false;
    if (!op->predefined) return true;
    const bool adds =
        op->handle == static_cast<uint32_t>(mpi::FM_SUM) || op->handle == static_cast<uint32_t>(mpi::FM_PROD);
    return adds && !is_integer(type);
}

bool reduces(Kind kind) noexcept {
    return kind == Kind::reduce || kind == Kind::allreduce || kind == Kind::scan ||
           kind == Kind::reduce_scatter;
}

void keep(TypeObject* type) noexcept {
    if (type != nullptr) type_ref(type);
}
void let_go(TypeObject* type) noexcept {
    if (type != nullptr) type_unref(type);
}
void let_go(Side& side) noexcept {
    let_go(side.type);
    for (TypeObject* type : side.types) let_go(type);
}

void pack_all(const Side& side, replay::Bytes* out) noexcept {
    for (size_t i = 0; i < side.counts.size(); i++) pack(side.of(static_cast<int>(i)), out);
}

int64_t sum(const Vec<int64_t>& numbers) noexcept {
    int64_t all = 0;
    for (int64_t one : numbers) all += one;
    return all;
}

// Finds what a reduction takes: for Reduce_scatter the parts of all members, one behind the other.
Block reduced(const Part& part) noexcept {
    const Side& where = part.in_place ? part.receive : part.send;
    const int64_t count =
        part.arguments.kind == Kind::reduce_scatter ? sum(part.receive.counts) : part.receive.count;
    return {where.base, count, part.receive.type};
}

// Does this member have a result, in one block?
bool has_result(const Part& part, const CommObject& comm, Block* block) noexcept {
    const bool is_root = comm.rank == part.root;
    switch (part.arguments.kind) {
        case Kind::bcast:
            *block = part.receive.whole();
            return !is_root;
        case Kind::scatter:
            *block = part.receive.whole();
            return !(is_root && part.in_place);
        case Kind::reduce:
            *block = part.receive.whole();
            return is_root;
        case Kind::allreduce:
            *block = part.receive.whole();
            return true;
        case Kind::scan:
            *block = part.receive.whole();
            return !(part.exclusive && comm.rank == 0);
        case Kind::reduce_scatter:
            *block = {part.receive.base, part.receive.counts[static_cast<size_t>(comm.rank)],
                      part.receive.type};
            return true;
        default:
            return false;
    }
}

// Or a block of every member?
bool has_all(const Part& part, const CommObject& comm) noexcept {
    const Kind kind = part.arguments.kind;
    return kind == Kind::allgather || kind == Kind::alltoall ||
           (kind == Kind::gather && comm.rank == part.root);
}

}  // namespace

Block Side::of(int member) const {
    const auto i = static_cast<size_t>(member);
    if (!types.empty()) return {static_cast<char*>(base) + places[i], counts[i], types[i]};
    return {static_cast<char*>(base) + places[i] * type->extent, counts[i], type};
}

Part* new_part(Kind kind, bool blocking) noexcept {
    auto* part = fm_new<Part>();
    part->arguments.kind = kind;
    part->arguments.blocking = blocking;
    return part;
}

void set_root(Part* part, const CommObject* comm, int root) noexcept {
    part->root = root;
    if (root >= 0 && root < comm->size)
        part->arguments.root = comm->members[static_cast<size_t>(root)].rank();
}

void set_op(Part* part, mpi::Op op) noexcept {
    part->op = find(op);
    if (part->op != nullptr && !part->op->predefined) ref(part->op);
}

void set_side(Side* side, const void* base, int64_t count, mpi::Datatype type) noexcept {
    side->base = const_cast<void*>(base);
    side->count = count;
    side->type = find(type);
    keep(side->type);
}

void set_equal_sides(Side* side, const void* base, int64_t count, mpi::Datatype type, int members) noexcept {
    set_side(side, base, count, type);
    side->for_each_member = true;
    for (int i = 0; i < members; i++) {
        side->counts.push_back(count);
        side->places.push_back(count * i);
    }
}

void set_types(Side* side, const mpi::Datatype* types, int members) noexcept {
    if (types == nullptr) return;
    for (int i = 0; i < members; i++) {
        TypeObject* type = find(types[i]);
        keep(type);
        side->types.push_back(type);
    }
}

void finish_part(Part* part) noexcept {
    const Kind kind = part->arguments.kind;
    part->in_place = part->send.base == mpi::FM_IN_PLACE || part->receive.base == mpi::FM_IN_PLACE;
    if (!reduces(kind)) {
        part->arguments.overwrites = part->in_place && kind == Kind::alltoall;
        return;
    }
    part->arguments.order_matters = order_matters(part->op, part->receive.type);
    part->arguments.overwrites = part->in_place;
}

Part* copy_of(const Part& part) noexcept {
    auto* copy = fm_new<Part>(part);
    for (const Side* side : {&copy->send, &copy->receive}) {
        keep(side->type);
        for (TypeObject* type : side->types) keep(type);
    }
    if (copy->op != nullptr && !copy->op->predefined) ref(copy->op);
    return copy;
}

void drop(Part* part) noexcept {
    if (part == nullptr) return;
    let_go(part->send);
    let_go(part->receive);
    if (part->op != nullptr && !part->op->predefined) op_unref(part->op);
    fm_delete(part);
}

void contribution(const Part& part, const CommObject& comm, replay::Bytes* out) noexcept {
    const bool is_root = comm.rank == part.root;
    switch (part.arguments.kind) {
        case Kind::bcast:
            if (is_root) pack(part.send.whole(), out);
            return;
        case Kind::scatter:
            if (is_root) pack_all(part.send, out);
            return;
        case Kind::gather:
        case Kind::allgather:
            pack(part.in_place ? part.receive.of(comm.rank) : part.send.whole(), out);
            return;
        case Kind::alltoall:
            pack_all(part.in_place ? part.receive : part.send, out);
            return;
        case Kind::create: {
            const auto* asked = reinterpret_cast<const uint8_t*>(&part.asked);
            out->insert(out->end(), asked, asked + sizeof part.asked);
            return;
        }
        case Kind::barrier:
        case Kind::free:
            return;
        default:
            pack(reduced(part), out);
    }
}

void result(const Part& part, const CommObject& comm, replay::Bytes* out) noexcept {
    Block block;
    if (has_all(part, comm))
        pack_all(part.receive, out);
    else if (has_result(part, comm, &block))
        pack(block, out);
}

int64_t bytes_of_all(const Side& side) noexcept {
    int64_t all = 0;
    for (size_t i = 0; i < side.counts.size(); i++) all += side.of(static_cast<int>(i)).bytes();
    return all;
}

int64_t result_bytes(const Part& part, const CommObject& comm) noexcept {
    Block block;
    if (has_all(part, comm)) return bytes_of_all(part.receive);
    return has_result(part, comm, &block) ? block.bytes() : 0;
}

void put_result(const Part& part, const CommObject& comm, const uint8_t* data, int64_t size) noexcept {
    Block block;
    if (has_all(part, comm)) {
        for (size_t i = 0; i < part.receive.counts.size(); i++) {
            const Block one = part.receive.of(static_cast<int>(i));
            unpack(one, data, one.bytes());
            data += one.bytes();
        }
    } else if (has_result(part, comm, &block)) {
        unpack(block, data, size);
    }
}

void put_input(const Part& part, const replay::Bytes& input) noexcept {
    if (part.arguments.kind != Kind::alltoall)
        return unpack(reduced(part), input.data(), static_cast<int64_t>(input.size()));
    const uint8_t* data = input.data();
    for (size_t i = 0; i < part.receive.counts.size(); i++) {
        const Block one = part.receive.of(static_cast<int>(i));
        unpack(one, data, one.bytes());
        data += one.bytes();
    }
}

}  // namespace fermata::front::logged
