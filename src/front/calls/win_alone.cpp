#include "front/calls/win_alone.h"

#include "front/core/bridge.h"
#include "front/objects/api.h"
#include "front/objects/datatype.h"
#include "front/requests/collective.h"
#include "front/requests/engine.h"

namespace fermata::front {

namespace single {
namespace {

struct Part {
    void* address;
    Count count;
    TypeObject* type;
};

// Finds the part of the window that is meant; false: nothing is to be done, *rc says why.
bool target(const WinObject& win, int rank, Aint disp, Count count, Datatype type, Part* part, int* rc) {
    *rc = FM_SUCCESS;
    if (rank == FM_PROC_NULL) return false;
    bool dynamic = win.flavor == FM_WIN_FLAVOR_DYNAMIC;
    *rc = rank != 0                ? FM_ERR_RANK
          : find(type) == nullptr  ? FM_ERR_TYPE
          : count < 0              ? FM_ERR_COUNT
          : (!dynamic && disp < 0) ? FM_ERR_DISP
                                   : FM_SUCCESS;
    if (*rc != FM_SUCCESS) return false;
    auto base = dynamic ? uintptr_t{0} : reinterpret_cast<uintptr_t>(win.base);
    auto offset = static_cast<uintptr_t>(dynamic ? disp : disp * win.disp_unit);
    *part = Part{reinterpret_cast<void*>(base + offset), count, find(type)};
    return true;
}

bool dense(const Part& part) { return part.type->predefined && part.type->size == part.type->extent; }

// Any layout into any other, in the lock that makes accesses atomic.
int copy(const Part& from, const Part& to) FERMATA_WANTS(library_lock) {
    Count bytes = from.count * from.type->size;
    if (dense(from) && dense(to) && bytes <= to.count * to.type->size) {
        if (bytes > 0) __builtin_memmove(to.address, from.address, static_cast<size_t>(bytes));
        return FM_SUCCESS;
    }
    auto self = static_cast<RealComm>(self_comm());
    return LOWER(Sendrecv)(from.address, from.count, real_of(from.type), 0, 0, to.address, to.count,
                           real_of(to.type), 0, 0, self, nullptr);
}

// The predefined type that all of it consists of: MPI-4.0 12.3.4 asks for one.
TypeObject* basic(TypeObject* type) {
    while (!type->predefined && !type->types.empty()) type = type->types[0];
    return type;
}

int reduce(const Part& from, const Part& to, Op op) FERMATA_WANTS(library_lock) {
    if (op == FM_NO_OP) return FM_SUCCESS;
    if (op == FM_REPLACE) return copy(from, to);
    TypeObject* unit = basic(to.type);
    if (unit->size == 0) return FM_SUCCESS;
    Count count = to.count * to.type->size / unit->size;
    auto room = static_cast<size_t>(count * unit->extent);
    Vec<char> mine(room, 0), theirs(room, 0);
    Part in{mine.data(), count, unit}, out{theirs.data(), count, unit};
    int rc = copy(from, in);
    if (rc == FM_SUCCESS) rc = copy(to, out);
    if (rc == FM_SUCCESS)
        rc = LOWER(Reduce_local)(in.address, out.address, count, real_of(unit), to_real(op));
    return rc == FM_SUCCESS ? copy(out, to) : rc;
}

// Accesses are atomic, and calls into the library on the communicator that copies use follow one another.
class FERMATA_LOCK_SCOPE Access {
  public:
    Access() noexcept FERMATA_TAKES(library_lock) : careful_(split::this_thread()), guard_(library_lock) {}
    ~Access() FERMATA_GIVES() {}

  private:
    Careful careful_;
    SpinGuard guard_;
};

Part origin_part(const void* address, Count count, Datatype type) {
    return Part{const_cast<void*>(address), count, find(type)};
}

}  // namespace

int Put(const WinObject& win, const void* origin, Count count, Datatype type, int rank, Aint disp,
        Count target_count, Datatype target_type) noexcept {
    Part to{}, from = origin_part(origin, count, type);
    int rc;
    if (!target(win, rank, disp, target_count, target_type, &to, &rc)) return rc;
    if (from.type == nullptr) return FM_ERR_TYPE;
    Access access;
    return copy(from, to);
}

int Get(const WinObject& win, void* origin, Count count, Datatype type, int rank, Aint disp,
        Count target_count, Datatype target_type) noexcept {
    Part from{}, to = origin_part(origin, count, type);
    int rc;
    if (!target(win, rank, disp, target_count, target_type, &from, &rc)) return rc;
    if (to.type == nullptr) return FM_ERR_TYPE;
    Access access;
    return copy(from, to);
}

int Accumulate(const WinObject& win, const void* origin, Count count, Datatype type, int rank, Aint disp,
               Count target_count, Datatype target_type, Op op) noexcept {
    Part to{}, from = origin_part(origin, count, type);
    int rc;
    if (!target(win, rank, disp, target_count, target_type, &to, &rc)) return rc;
    if (find(op) == nullptr) return FM_ERR_OP;
    if (from.type == nullptr) return FM_ERR_TYPE;
    Access access;
    return reduce(from, to, op);
}

int Get_accumulate(const WinObject& win, const void* origin, Count count, Datatype type, void* result,
                   Count result_count, Datatype result_type, int rank, Aint disp, Count target_count,
                   Datatype target_type, Op op) noexcept {
    Part to{}, from = origin_part(origin, count, type), old = origin_part(result, result_count, result_type);
    int rc;
    if (!target(win, rank, disp, target_count, target_type, &to, &rc)) return rc;
    if (find(op) == nullptr) return FM_ERR_OP;
    if ((from.type == nullptr && op != FM_NO_OP) || old.type == nullptr) return FM_ERR_TYPE;
    Access access;
    rc = copy(to, old);
    return rc == FM_SUCCESS ? reduce(from, to, op) : rc;
}

int Fetch_and_op(const WinObject& win, const void* origin, void* result, Datatype type, int rank, Aint disp,
                 Op op) noexcept {
    return Get_accumulate(win, origin, 1, type, result, 1, type, rank, disp, 1, type, op);
}

int Compare_and_swap(const WinObject& win, const void* origin, const void* compare, void* result,
                     Datatype type, int rank, Aint disp) noexcept {
    Part to{};
    int rc;
    if (!target(win, rank, disp, 1, type, &to, &rc)) return rc;
    auto size = static_cast<size_t>(to.type->size);
    Access access;
    __builtin_memcpy(result, to.address, size);
    if (__builtin_memcmp(compare, result, size) == 0) __builtin_memcpy(to.address, origin, size);
    return FM_SUCCESS;
}

}  // namespace single
}  // namespace fermata::front
