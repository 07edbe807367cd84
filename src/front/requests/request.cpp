#include "front/requests/request.h"

#include "front/objects/file.h"
#include "front/requests/engine.h"
#include "front/requests/generalized.h"
#include "front/requests/nonblocking.h"
#include "front/requests/synchronous.h"

namespace fermata::front {

RequestChunk* request_chunks;

constinit RequestPool request_pool{};

void grow_pool() noexcept {
    auto* chunk = fm_new<RequestChunk>();
    chunk->items = static_cast<RequestObject*>(fm_alloc(sizeof(RequestObject) * kRequestsPerChunk));
    for (int i = 0; i < kRequestsPerChunk; i++) {
        auto* r = new (&chunk->items[i]) RequestObject();
        give_handle(r);
    }
    for (int i = kRequestsPerChunk - 1; i >= 0; i--) {
        chunk->items[i].next = request_pool.first;
        request_pool.first = &chunk->items[i];
    }
    chunk->next = request_chunks;
    request_chunks = chunk;
}

void strip_request(RequestObject* r) noexcept {
    switch (r->what) {
        case What::collective:
            if (r->collective != nullptr) release_collective(r->collective);
            break;
        case What::generalized:
            fm_free(r->generalized);
            break;
        case What::partitioned_send:
            fm_free(r->partitions);
            break;
        case What::sendrecv:
            release_request(r->pair->send);
            release_request(r->pair->recv);
            fm_free(r->pair->copy);
            fm_free(r->pair);
            break;
        case What::send:
            if (r->mode == kSynchronous)
                channel_close(r);
            else if (__builtin_expect(r->copy != nullptr && (r->place & 1) == 0, 0))
                fm_free(r->copy);
            break;
        default:
            break;
    }
    if (r->type != nullptr && !r->type->predefined) type_unref(r->type);
    if (r->comm != nullptr && !r->comm->predefined) comm_unref(r->comm);
    r->what = What::none;
    r->collective = nullptr;
    r->bare = true;
}

mpi::Request request_completed() noexcept {
    RequestObject* r = new_request(What::done);
    empty_status(&r->status);
    r->state = State::complete;
    return handle_of(r);
}

mpi::Request request_foreign(mpi::RealRequest real, mpi::Comm errors_on) noexcept {
    RequestObject* r = new_request(What::foreign);
    r->comm = find(errors_on);
    if (r->comm != nullptr && !r->comm->predefined) comm_ref(r->comm);
    r->real = static_cast<uint64_t>(real);
    return handle_of(r);
}

mpi::Request request_of_file(mpi::RealRequest real, mpi::File fh) noexcept {
    RequestObject* r = new_request(What::of_file);
    r->real = static_cast<uint64_t>(real);
    r->peer = static_cast<int32_t>(word_of(fh));
    r->after = nullptr;
    FileObject* file = find(fh);
    SpinGuard guard(file->order);
    auto* last = file->oldest;
    while (last != nullptr && last->after != nullptr) last = last->after;
    if (last != nullptr)
        last->after = r;
    else
        file->oldest = r;
    return handle_of(r);
}

}  // namespace fermata::front
