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

extern "C" {

int fm_Op_create(void* fn, OpAdapter adapter, int commute, Op* op) {
    Call call("MPI_Op_create");
    auto* object = fm_new<OpObject>();
    object->function = fn;
    object->adapter = adapter;
    object->commutes = commute != 0;
    if (int rc = op_make_real(object)) {
        fm_delete(object);
        return call.finish(rc);
    }
    {
        SpinGuard guard(list_lock);
        object->next = ops;
        if (ops != nullptr) ops->previous = object;
        ops = object;
    }
    *op = Op{give_handle(object)};
    return FM_SUCCESS;
}

int fm_Op_free(Op* op) {
    Call call("MPI_Op_free");
    OpObject* object = find(*op);
    if (object == nullptr || object->predefined || object->freed) return call.finish(FM_ERR_OP);
    object->freed = true;
    op_unref(object);
    *op = FM_OP_NULL;
    return FM_SUCCESS;
}

int fm_Op_commutative(Op op, int* commute) {
    Call call("MPI_Op_commutative");
    OpObject* object = find(op);
    if (object == nullptr) return call.finish(FM_ERR_OP);
    *commute = object->commutes;
    return FM_SUCCESS;
}

}  // extern "C"
}  // namespace fermata::front
