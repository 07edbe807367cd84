// Reductions. User functions stay in the upper half; the lower half calls them back with the op as cookie.
#include "front/objects/op.h"

#include "front/objects/api.h"
#include "front/objects/internal.h"

namespace fermata::front {
namespace {

SpinLock list_lock;
OpObject* ops;

// Runs in the upper half, called by the binding's thunk.
void reduce(uint64_t cookie, void* in, void* inout, Count len, RealDatatype type) {
    auto* op = reinterpret_cast<OpObject*>(cookie);
    TypeObject* object = find_type_of_real(static_cast<uint64_t>(type));
    Datatype virtual_type = object != nullptr ? Datatype{object->handle} : FM_DATATYPE_NULL;
    LowerFramesBelow below(split::this_thread());
    op->adapter(op->function, in, inout, &len, &virtual_type);
}

}  // namespace

int op_make_real(OpObject* op) noexcept {
    RealOp real{};
    int rc = LOWER(Op_create)(reduce, reinterpret_cast<uint64_t>(op), op->commutes, &real);
    op->real = rc == FM_SUCCESS ? static_cast<uint64_t>(real) : 0;
    return rc;
}

OpObject* first_op() noexcept { return ops; }

void op_publish(OpObject* op) noexcept {
    give_handle(op);
    SpinGuard guard(list_lock);
    op->next = ops;
    if (ops != nullptr) ops->previous = op;
    ops = op;
}

void op_unref(OpObject* op) noexcept {
    if (op->predefined || !drop(op)) return;
    {
        SpinGuard guard(list_lock);
        if (op->previous != nullptr) op->previous->next = op->next;
        if (op->next != nullptr) op->next->previous = op->previous;
        if (ops == op) ops = op->next;
    }
    take_handle(op);
    RealOp real{op->real};
    if (op->real != 0) LOWER(Op_free)(&real);
    fm_delete(op);
}

}  // namespace fermata::front
