// MPI_Op_*: making and freeing reductions of the application.
#include "front/objects/api.h"
#include "front/objects/internal.h"

namespace fermata::front {

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
    op_publish(object);
    *op = Op{object->handle};
    return FM_SUCCESS;
}

void* fm_op_calls(Op op, OpAdapter adapter, void* function) {
    OpObject* object = find(op);
    if (object == nullptr || object->predefined) return nullptr;
    void* had = object->function;
    object->adapter = adapter;
    if (function != nullptr) object->function = function;
    return had;
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
