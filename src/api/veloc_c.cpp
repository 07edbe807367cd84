// The functions of include/veloc.h and include/veloc/core.h: no exception leaves them, and whatever cannot be
// done is VELOC_FAILURE and a line.
#include <cstring>
#include <memory>

#include "api/veloc.h"
#include "base/error.h"
#include "base/log.h"
#include "veloc/core.h"
#include "veloc/defs.h"

using namespace fermata;
using namespace fermata::api;

struct fermata_veloc {
    Veloc client;
};

namespace {

// The client that VELOC_Init() has made.
std::unique_ptr<fermata_veloc>& the_client() {
    static std::unique_ptr<fermata_veloc> client;
    return client;
}

int failed(const std::string& why) {
    say("veloc: " + why);
    return VELOC_FAILURE;
}

template <class What>
int guarded(What what) {
    try {
        return what();
    } catch (const Fault& fault) {
        return failed(fault.sentence);
    } catch (const std::exception& error) {
        return failed(line_of(error));
    }
}

template <class What>
int with(fermata_veloc* client, What what) {
    if (!client) return failed("VELOC_Init() has not been called, or has failed");
    return guarded([&] { return what(client->client); });
}

std::string text_of(const char* text) { return text ? text : ""; }
std::set<int> set_of(const int* ids, int count) {
    return ids && count > 0 ? std::set<int>(ids, ids + count) : std::set<int>();
}

// MPI for a process that is alone.
fermata_mpi alone() {
    static int nothing;
    fermata_mpi mpi{};
    mpi.version = FERMATA_MPI_VERSION;
    mpi.size = 1;
    mpi.now = mpi.behind = &nothing;
    mpi.library = "none";
    mpi.bcast = [](void*, void*, int64_t, int) { return 0; };
    mpi.allgather = [](void*, const void* mine, void* all, int64_t size) {
        std::memcpy(all, mine, static_cast<size_t>(size));
        return 0;
    };
    // Nobody is there to exchange anything with.
    mpi.exchange = [](void*, const void*, int64_t, int to, void*, int64_t, int from) {
        return to < 0 && from < 0 ? 0 : 1;
    };
    mpi.begin_gather = mpi.allgather;
    mpi.begin_bcast = [](void*, void*, int64_t) { return 0; };
    mpi.test = [](void*, int, int* over) {
        *over = 1;
        return 0;
    };
    mpi.release = [](void*) {};
    return mpi;
}

}  // namespace

extern "C" {

fermata_veloc* fermata_veloc_open(const fermata_mpi* mpi, unsigned id, const char* configuration) {
    fermata_veloc* made = nullptr;
    guarded([&] {
        const std::optional<unsigned> number = mpi ? std::nullopt : std::optional(id);
        made = new fermata_veloc{Veloc(mpi ? *mpi : alone(), number, text_of(configuration))};
        return VELOC_SUCCESS;
    });
    return made;
}

int fermata_veloc_close(fermata_veloc* client) {
    const int code = with(client, [](Veloc& v) { return v.finish(), VELOC_SUCCESS; });
    delete client;
    return code;
}

int fermata_veloc_init(const fermata_mpi* mpi, unsigned id, const char* configuration) {
    if (the_client()) return failed("VELOC_Init() has been called already");
    the_client().reset(fermata_veloc_open(mpi, id, configuration));
    return the_client() ? VELOC_SUCCESS : VELOC_FAILURE;
}

int fermata_veloc_protect(fermata_veloc* c, int id, void* data, size_t count, size_t size,
                          const char* group) {
    return with(c, [&](Veloc& v) {
        if (size > 0 && count > SIZE_MAX / size)
            refuse(FERMATA_ARGUMENT, "region {} is larger than any memory", id);
        return v.protect(id, data, count * size, text_of(group)), VELOC_SUCCESS;
    });
}
int fermata_veloc_unprotect(fermata_veloc* c, int id, const char* group) {
    return with(c, [&](Veloc& v) { return v.unprotect(id, text_of(group)) ? VELOC_SUCCESS : VELOC_FAILURE; });
}
int fermata_veloc_clear(fermata_veloc* c, const char* group) {
    return with(c, [&](Veloc& v) { return v.clear(text_of(group)), VELOC_SUCCESS; });
}

int fermata_veloc_checkpoint_begin(fermata_veloc* c, const char* name, int version) {
    return with(c, [&](Veloc& v) { return v.begin(text_of(name), version), VELOC_SUCCESS; });
}
int fermata_veloc_checkpoint_mem(fermata_veloc* c, int mode, const int* ids, int count) {
    return with(c, [&](Veloc& v) { return v.copy(mode, set_of(ids, count)), VELOC_SUCCESS; });
}
int fermata_veloc_put(fermata_veloc* c, int id, const void* bytes, size_t size) {
    return with(c, [&](Veloc& v) {
        return v.put(id, std::string(static_cast<const char*>(bytes), size)), VELOC_SUCCESS;
    });
}
int fermata_veloc_checkpoint_end(fermata_veloc* c, int success) {
    return with(c, [&](Veloc& v) { return v.end(success != 0), VELOC_SUCCESS; });
}
int fermata_veloc_wait(fermata_veloc* c) {
    return with(c, [](Veloc& v) { return v.wait(), VELOC_SUCCESS; });
}
int fermata_veloc_finished(fermata_veloc* c) {
    return with(c, [](Veloc& v) { return v.finished() ? 1 : 0; });
}

int fermata_veloc_restart_test(fermata_veloc* c, const char* name, int below) {
    return with(c, [&](Veloc& v) { return v.newest(text_of(name), below).value_or(VELOC_FAILURE); });
}
int fermata_veloc_restart_begin(fermata_veloc* c, const char* name, int version) {
    return with(c, [&](Veloc& v) { return v.restart(text_of(name), version), VELOC_SUCCESS; });
}
int fermata_veloc_recover_mem(fermata_veloc* c, int mode, const int* ids, int count) {
    return with(c, [&](Veloc& v) { return v.recover(mode, set_of(ids, count)), VELOC_SUCCESS; });
}
const void* fermata_veloc_get(fermata_veloc* c, int id, size_t* size) {
    const std::string* bytes = c ? c->client.saved(id) : nullptr;
    *size = bytes ? bytes->size() : 0;
    return bytes ? bytes->data() : nullptr;
}
int fermata_veloc_restart_end(fermata_veloc* c, int success) {
    return with(c, [&](Veloc& v) { return v.end_restart(success != 0), VELOC_SUCCESS; });
}

int fermata_veloc_route_file(fermata_veloc* c, const char* original, char* routed) {
    return with(c, [&](Veloc& v) {
        const std::string path = v.route(text_of(original));
        std::memcpy(routed, path.c_str(), path.size() + 1);
        return VELOC_SUCCESS;
    });
}
int fermata_veloc_cleanup(fermata_veloc* c, const char*) {
    return with(c, [](Veloc& v) { return v.cleanup(), VELOC_SUCCESS; });
}

int VELOC_Finalize(int) {
    fermata_veloc* client = the_client().release();
    return client ? fermata_veloc_close(client) : failed("VELOC_Init() has not been called, or has failed");
}
int VELOC_Mem_protect(int id, void* data, size_t count, size_t size) {
    return fermata_veloc_protect(the_client().get(), id, data, count, size, nullptr);
}
int VELOC_Region_protect(int id, void* data, size_t count, size_t size, const char* name) {
    return fermata_veloc_protect(the_client().get(), id, data, count, size, name);
}
int VELOC_Mem_unprotect(int id) { return fermata_veloc_unprotect(the_client().get(), id, nullptr); }
int VELOC_Region_unprotect(int id, const char* name) {
    return fermata_veloc_unprotect(the_client().get(), id, name);
}
int VELOC_Mem_clear() { return fermata_veloc_clear(the_client().get(), nullptr); }
int VELOC_Region_clear(const char* name) { return fermata_veloc_clear(the_client().get(), name); }

int VELOC_Route_file(const char* original, char* routed) {
    return fermata_veloc_route_file(the_client().get(), original, routed);
}
int VELOC_Cleanup(const char* name) { return fermata_veloc_cleanup(the_client().get(), name); }

int VELOC_Checkpoint_begin(const char* name, int version) {
    return fermata_veloc_checkpoint_begin(the_client().get(), name, version);
}
int VELOC_Checkpoint_selective(int mode, int* ids, int count) {
    return fermata_veloc_checkpoint_mem(the_client().get(), mode, ids, count);
}
int VELOC_Checkpoint_mem() { return VELOC_Checkpoint_selective(VELOC_CKPT_ALL, nullptr, 0); }
int VELOC_Checkpoint_end(int success) { return fermata_veloc_checkpoint_end(the_client().get(), success); }
int VELOC_Checkpoint_wait() { return fermata_veloc_wait(the_client().get()); }
int VELOC_Checkpoint_finished() { return fermata_veloc_finished(the_client().get()); }
// A failure of one rank alone is told to all by the end.
int VELOC_Checkpoint(const char* name, int version) {
    if (VELOC_Checkpoint_begin(name, version) != VELOC_SUCCESS) return VELOC_FAILURE;
    return VELOC_Checkpoint_end(VELOC_Checkpoint_mem() == VELOC_SUCCESS);
}

int VELOC_Restart_test(const char* name, int below) {
    return fermata_veloc_restart_test(the_client().get(), name, below);
}
int VELOC_Restart_begin(const char* name, int version) {
    return fermata_veloc_restart_begin(the_client().get(), name, version);
}
int VELOC_Recover_selective(int mode, int* ids, int count) {
    return fermata_veloc_recover_mem(the_client().get(), mode, ids, count);
}
int VELOC_Recover_size(int id) {
    size_t size = 0;
    return fermata_veloc_get(the_client().get(), id, &size) && size <= INT32_MAX ? static_cast<int>(size)
                                                                                 : -1;
}
int VELOC_Recover_mem() { return VELOC_Recover_selective(VELOC_RECOVER_ALL, nullptr, 0); }
int VELOC_Restart_end(int success) { return fermata_veloc_restart_end(the_client().get(), success); }
int VELOC_Restart(const char* name, int version) {
    if (VELOC_Restart_begin(name, version) != VELOC_SUCCESS) return VELOC_FAILURE;
    return VELOC_Restart_end(VELOC_Recover_mem() == VELOC_SUCCESS);
}

}  // extern "C"
