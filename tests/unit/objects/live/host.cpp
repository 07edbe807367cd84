// A rank without the split: the core library and the real library in one process, on one thread pointer.
//
// Starts MPI, plays the lower half for the core (a Bridge, one ThreadRecord whose both sides are the same),
// then loads the core and the test body. Rebuild is tried by asking for it: the old real objects stay behind,
// all that the body uses afterwards are new ones.
#include <dlfcn.h>
#include <mpi.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "fermata_interface.h"
#include "fermata_table.h"
#include "lower/binding/binding.h"
#include "split/bridge.h"
#include "split/gate.h"

using namespace fermata;

namespace {

split::ThreadRecord record;
split::Bridge bridge;
split::UpperServices* services;
const uint32_t released = 1;

split::ThreadRecord* attach(uint64_t) noexcept {
    split::be_known_as(&record);
    return &record;
}
void nothing() noexcept {}
void warn(const char* line) noexcept { std::fprintf(stderr, "%s\n", line); }
void fatal(const char* line, int code) noexcept {
    std::fprintf(stderr, "%s\n", line);
    std::_Exit(code);
}
void register_upper(split::UpperServices* upper) noexcept { services = upper; }

// Windows that rebuild leaves behind: MPICH 4.0.2 over UCX aborts in MPI_Finalize when one was not freed.
mpi::Table table;
std::vector<mpi::RealWin> open_windows;
int create_window(void* base, mpi::Aint size, mpi::Aint unit, mpi::RealInfo info, mpi::RealComm comm,
                  mpi::RealWin* win) {
    int rc = lower::binding_table().Win_create(base, size, unit, info, comm, win);
    if (rc == 0) open_windows.push_back(*win);
    return rc;
}
int free_window(mpi::RealWin* win) {
    mpi::RealWin freed = *win;
    int rc = lower::binding_table().Win_free(win);
    if (rc == 0) std::erase(open_windows, freed);
    return rc;
}
void free_windows() {
    while (!open_windows.empty()) {
        mpi::RealWin win = open_windows.front();
        // Whatever epoch it was left in; the other call says no.
        if (table.Win_unlock_all(win) != 0) table.Win_fence(mpi::FM_MODE_NOSUCCEED, win);
        if (free_window(&win) != 0) return;
    }
}

void* load(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (library != nullptr) return library;
    std::fprintf(stderr, "%s\n", dlerror());
    MPI_Abort(MPI_COMM_WORLD, 1);
    return nullptr;
}

}  // namespace

// Seen by the core before libc's: it asks where the lower half is.
extern "C" __attribute__((visibility("default"))) unsigned long getauxval(unsigned long type) noexcept {
    if (type == split::kAuxvBridge) return reinterpret_cast<unsigned long>(&bridge);
    static auto next = reinterpret_cast<unsigned long (*)(unsigned long)>(dlsym(RTLD_NEXT, "getauxval"));
    return next(type);
}

int main(int argc, char** argv) {
    alarm(250);
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    lower::binding_ready();
    record.upper_fs = record.lower_fs = split::read_fs();
    record.half = split::Half::upper;
    record.run = split::Run::running;
    bridge.version = split::kBridgeVersion;
    bridge.interface = split::interface_version(mpi::kAbiHash);
    table = lower::binding_table();
    table.Win_create = create_window;
    table.Win_free = free_window;
    bridge.mpi = &table;
    bridge.attach = attach;
    bridge.stop_point = nothing;
    bridge.poke_agent = nothing;
    bridge.arrive_finalize = nothing;
    bridge.finalize_released = &released;
    bridge.finish_mpi = nothing;
    bridge.warn = warn;
    bridge.fatal = fatal;
    bridge.register_upper = register_upper;
    MPI_Comm_rank(MPI_COMM_WORLD, &bridge.world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bridge.world_size);
    bridge.thread_level = mpi::FM_THREAD_SERIALIZED;
    bridge.program = argv[0];
    bridge.mpi_library = lower::binding_name();
    bridge.os_page = 4096;

    load(argv[1]);
    void* body = load(argv[2]);
    auto run = reinterpret_cast<int (*)(split::UpperServices*, const char*)>(dlsym(body, "run_body"));
    int failures = run(services, argv[3]);
    free_windows();
    int all = 0;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (bridge.world_rank == 0) std::printf("%d failures\n", all);
    MPI_Finalize();
    return all != 0;
}
