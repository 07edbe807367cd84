// From a pulled message to the buffer of the application.
#include "front/core/fatal.h"
#include "front/requests/engine.h"

namespace fermata::front {

uint64_t self_comm() noexcept {
    if (engine.self_comm == 0) {
        mpi::RealComm dup{};
        if (LOWER(Comm_dup)(to_real(mpi::FM_COMM_SELF), &dup) != 0)
            fatal_line("fermata: cannot duplicate MPI_COMM_SELF to deliver a drained message");
        engine.self_comm = static_cast<uint64_t>(dup);
    }
    return engine.self_comm;
}

int deliver(QueuedMessage* m, void* buf, int64_t count, TypeObject* type, mpi::Status* status) noexcept {
    int rc = 0;
    int64_t bytes = m->bytes;
    bool dense = type != nullptr && type->predefined && type->size == type->extent;
    if (dense && bytes <= count * type->size) {
        if (bytes > 0) __builtin_memcpy(buf, m->data, static_cast<size_t>(bytes));
    } else if (bytes > 0 || count < 0) {
        // The real datatype engine knows every layout, and what a message that ends inside an element means:
        // send it to ourselves on a communicator nobody else uses.
        auto self = static_cast<mpi::RealComm>(self_comm());
        mpi::RealRequest reqs[2] = {};
        mpi::Status statuses[2] = {};
        rc = LOWER(Irecv)(buf, count, real_of(type), 0, 0, self, &reqs[0]);
        if (rc == 0) {
            rc = LOWER(Isend)(m->data, bytes, real_byte(), 0, 0, self, &reqs[1]);
            for (int i = 0; i < 2 && rc == 0; i++) {
                int flag = 0;
                while (flag == 0 && rc == 0) rc = LOWER(Test)(&reqs[i], &flag, &statuses[i]);
                if (rc == mpi::FM_ERR_TRUNCATE && i == 0) {
                    bytes = statuses[0].count;
                    int sent = 0;
                    while (sent == 0 && LOWER(Test)(&reqs[1], &sent, nullptr) == 0) {
                    }
                }
            }
        }
    }
    if (status != nullptr) *status = mpi::Status{m->source, m->tag, rc, 0, bytes, 0};
    return rc;
}

}  // namespace fermata::front
