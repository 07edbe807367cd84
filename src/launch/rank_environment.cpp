#include "launch/rank_environment.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/log.h"

namespace fermata::launch {

// The shared store of PMIx 5 to 7 wants an address that the upper half has (docs/internals/bindings.md), and
// without it no rank starts. Others of its stores serve.
std::vector<std::string> needed_by(const Library& library) {
    if (library.mpi != "openmpi") return {};
    return {"PMIX_MCA_gds=^shmem,shmem2,shmem3"};
}

void set_rank_environment(const LaunchPlan& plan) {
    for (auto& [name, value] : plan.environment) ::setenv(name.c_str(), value.c_str(), 1);
    if (::geteuid() == 0) {
        ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
        ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    }
    // Registration caches do not see the upper half's munmap (docs/internals/job.md): off, unless the
    // user knows better.
    ::setenv("OMPI_MCA_mpi_leave_pinned", "0", 0);
    ::setenv("FI_MR_CACHE_MONITOR", "disabled", 0);
    // Open MPI 4.1's window component ucx takes every window and, without RDMA adapters, fails to make
    // it.
    if (::access("/sys/class/infiniband", F_OK) != 0) ::setenv("OMPI_MCA_osc", "^ucx", 0);
    // Open MPI 4's mpiexec ends ranks by SIGTERM, waits for a second on each node, one node after the other,
    // and kills them (docs/internals/job.md). Open MPI 5's does not wait.
    if (plan.may_restart) ::setenv("OMPI_MCA_odls_base_sigkill_timeout", "0", 0);
    for (const std::string& word : needed_by(plan.library)) {
        const size_t equals = word.find('=');
        ::setenv(word.substr(0, equals).c_str(), word.c_str() + equals + 1, 1);
    }
    // UCX patches memory functions of the whole process, and reads these before main. With hooks its
    // registration cache serves memory that the program has given back: wrong data. Not the user's to
    // choose.
    ::setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 1);
    ::setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 0);
    // UCX 1.18 starts a thread before main for its file system of diagnostics, and it may be there still when
    // the lower half's code is redirected: crossings would write the FS base then, which costs 10 ns each.
    ::setenv("UCX_VFS_ENABLE", "n", 0);
    // UCX says among the program's lines what it cannot reach of a rank that has died, where a copy goes on.
    ::setenv("UCX_LOG_FILE", "stderr", 0);
    // hwloc's x86 component moves itself to each CPU in turn, which can take a minute on a busy machine
    // (docs/internals/job.md); what it asks there, hwloc's Linux component knows.
    ::setenv("HWLOC_COMPONENTS", "-x86", 0);
}

void warn_of_unused_variables() {
    if (const char* hooks = std::getenv("UCX_MEM_MMAP_HOOK_MODE"); hooks && std::string_view(hooks) != "none")
        say(fmt::format(
            "UCX_MEM_MMAP_HOOK_MODE={} is not used: the ranks get none (UCX's hooks do not see the program's "
            "memory, and its messages would be wrong)",
            hooks));
}

}  // namespace fermata::launch
