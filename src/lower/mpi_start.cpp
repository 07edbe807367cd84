#include "lower/mpi_start.h"

#include <fmt/core.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "lower/binding/binding.h"
#include "lower/binding/library.h"
#include "lower/binding/spent_receive.h"
#include "lower/exit_handlers.h"
#include "lower/netmod.h"
#include "lower/node_ranks.h"
#include "split/fds/connections.h"

namespace fermata::lower {
namespace {

// Standard-ABI thread levels (MPI-5.0, 20.4).
constexpr int kStdSerialized = 2048, kStdMultiple = 4096;

// Without a communicator made for it, if possible (why: world_again()).
int ranks_here() {
    if (int said = node_ranks()) return said;
    MPI_Comm node;
    int ranks = 1;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) == MPI_SUCCESS) {
        MPI_Comm_size(node, &ranks);
        MPI_Comm_free(&node);
    }
    return ranks;
}

bool is_crowded(int ranks) {
    cpu_set_t cpus;
    int cores = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    // One rank bound to one core is not crowding, even if the node has as many ranks as cores.
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return ranks > (cores > 1 ? cores : online);
}

// Allowed before MPI_Init.
std::string library_text() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    return text;
}

}  // namespace

MpiFacts start_mpi(ThreadNeed need) {
    // The agent drains while every application thread stands still, one caller at a time: SERIALIZED in
    // words. Open MPI 4.1 pays with mutexes for every level above SINGLE (opal_uses_threads) although one
    // caller at a time works without them; MPICH 4.0 pays only for MULTIPLE.
    int serial = std::string(binding_name()) == "openmpi" ? MPI_THREAD_SINGLE : MPI_THREAD_SERIALIZED;
    int wanted = need == ThreadNeed::many ? MPI_THREAD_MULTIPLE : serial;
    int provided = 0;
    const std::string text = library_text();
    const NetmodChoice netmod(text);
    if (MPI_Init_thread(nullptr, nullptr, wanted, &provided) != MPI_SUCCESS)
        fail("MPI_Init_thread of {} failed", binding_name());
    if (provided < serial)
        fail("{} offers only thread level {}; Fermata needs {}", binding_name(), provided, serial);
    if (int code = binding_ready())
        fail("{}: cannot set up the predefined objects (error class {})", binding_name(), code);
    MpiFacts facts;
    int process = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &process);
    facts.process = PhysicalRank(process);
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    facts.size = static_cast<uint32_t>(size);
    facts.thread_level = provided == MPI_THREAD_MULTIPLE ? kStdMultiple : kStdSerialized;
    facts.many_threads = need == ThreadNeed::many;
    const int here = ranks_here();
    facts.crowded = is_crowded(here);
    if (process == 0 && here < size && !netmod.line().empty()) say(netmod.line());
    MPI_Comm twin;
    if (world_again(&twin) != MPI_SUCCESS) fail("{}: cannot duplicate MPI_COMM_WORLD", binding_name());
    // MPICH 4.0.2 crashes in MPI_Comm_create_group on a duplicate whose group nobody has asked for.
    MPI_Group group;
    if (MPI_Comm_group(twin, &group) == MPI_SUCCESS) MPI_Group_free(&group);
    facts.private_world = static_cast<uint64_t>(real_Comm(twin));
    facts.library = binding_name();
    facts.version = text.substr(0, text.find('\n'));
    std::replace(facts.version.begin(), facts.version.end(), '\t', ' ');  // MPICH's
    return facts;
}

void finish_mpi() {
    split::hide_ends(false);  // all ranks are here, and leave
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) {
        if (end_spent_receive() != MPI_SUCCESS) {
            fmt::print(stderr, "fermata: {} says an error of a receive that it had said to have ended well\n",
                       binding_name());
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        MPI_Finalize();
    }
    run_exit_handlers_of_mpi();
}

}  // namespace fermata::lower
