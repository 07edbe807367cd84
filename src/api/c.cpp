// The functions of fermata_core.h: no exception leaves them, and each error is a code with a sentence.
#include "api/handle.h"
#include "base/error.h"

using namespace fermata;
using namespace fermata::api;

namespace {

std::string& no_handle() {
    static std::string sentence = "no error";
    return sentence;
}

// Runs `what`, which may answer with a code.
template <class What>
int guarded(fermata_handle* handle, What what) {
    if (!handle) {
        no_handle() = "there is no handle: fermata_open() makes one";
        return FERMATA_ARGUMENT;
    }
    try {
        return what();
    } catch (const Fault& fault) {
        handle->message = fault.sentence;
        return fault.code;
    } catch (const std::exception& error) {
        Fault fault = Ranks::fault_of(error);
        handle->message = fault.sentence;
        return fault.code;
    }
}

// The same for calls that need fermata_open() to have gone well.
template <class What>
int opened(fermata_handle* handle, What what) {
    return guarded(handle, [&]() -> int {
        if (!handle->is_open()) refuse(FERMATA_ARGUMENT, "fermata_open() failed: {}", handle->message);
        return what();
    });
}

}  // namespace

extern "C" {

int fermata_open_with(fermata_handle** handle, const fermata_mpi* mpi, const char* directory,
                      const char* options) {
    if (!handle || !mpi) {
        no_handle() = "fermata_open() needs a place for the handle";
        return FERMATA_ARGUMENT;
    }
    *handle = new fermata_handle;
    return guarded(*handle, [&]() -> int {
        (*handle)->start(*mpi, directory ? directory : "fermata-state", options ? options : "");
        return FERMATA_OK;
    });
}

int fermata_protect_global(fermata_handle* h, const char* name, void* data, fermata_type type,
                           int64_t count) {
    return guarded(h, [&] { return h->state.protect(Kind::global, name, data, type, count), FERMATA_OK; });
}

int fermata_protect_local(fermata_handle* h, const char* name, void* data, fermata_type type, int64_t count) {
    return guarded(h, [&] { return h->state.protect(Kind::local, name, data, type, count), FERMATA_OK; });
}

int fermata_protect_array(fermata_handle* h, const char* name, void* data, fermata_type type, int dimensions,
                          const int64_t* global, const int64_t* offset, const int64_t* extent,
                          const int64_t* stride) {
    return guarded(h, [&] {
        return h->state.protect_array(name, data, type, dimensions, global, offset, extent, stride),
               FERMATA_OK;
    });
}

int fermata_add_part(fermata_handle* h, const char* name, void* data, const int64_t* offset,
                     const int64_t* extent, const int64_t* stride) {
    return guarded(h, [&] { return h->state.add_part(name, data, offset, extent, stride), FERMATA_OK; });
}

int fermata_protect_object(fermata_handle* h, const char* name, void* object, fermata_size_hook size,
                           fermata_pack_hook pack, fermata_unpack_hook unpack) {
    return guarded(h, [&] {
        return h->state.protect_object(name, {object, size, pack, unpack}), FERMATA_OK;
    });
}

int fermata_forget(fermata_handle* h, const char* name) {
    return guarded(h, [&] { return h->state.forget(name), FERMATA_OK; });
}

int fermata_save(fermata_handle* h, int64_t step) {
    return opened(h, [&] { return h->save(step), FERMATA_OK; });
}

int fermata_test(fermata_handle* h, int* durable) {
    return opened(h, [&] { return *durable = 1, *durable = h->test() ? 1 : 0, FERMATA_OK; });
}

int fermata_wait(fermata_handle* h) {
    return opened(h, [&] { return h->wait(), FERMATA_OK; });
}

int fermata_restore(fermata_handle* h, int64_t* step) {
    return opened(h, [&] { return h->restore(step) ? FERMATA_OK : FERMATA_NOTHING; });
}

int fermata_should_checkpoint(fermata_handle* h) {
    int yes = 0;
    opened(h, [&] { return yes = h->should_checkpoint() ? 1 : 0, FERMATA_OK; });
    return yes;
}

int fermata_should_exit(fermata_handle* h) {
    int yes = 0;
    opened(h, [&] { return yes = h->should_exit() ? 1 : 0, FERMATA_OK; });
    return yes;
}

const char* fermata_message(const fermata_handle* h) { return h ? h->message.c_str() : no_handle().c_str(); }

int fermata_close(fermata_handle* h) {
    int code = guarded(h, [&] { return h->is_open() ? (h->finish(), FERMATA_OK) : FERMATA_OK; });
    if (h && code != FERMATA_OK) no_handle() = h->message;
    delete h;
    return code;
}

}  // extern "C"
