// NetmodChoice has MPICH talk between nodes by libfabric where its way over UCX loses receives: from 4.3 on,
// with UCX and shared memory in one build, a receive from MPI_ANY_SOURCE never ends when its message came
// from another node before the receive was posted (docs/internals/bindings.md).
#pragma once

#include <string>
#include <string_view>

namespace fermata::lower {

enum class Netmod {
    as_it_is,
    ofi,     // instead of UCX
    losing,  // nothing else is there, or the user wants it
};

// `text`: what MPI_Get_library_version says; `wanted`: MPIR_CVAR_CH4_NETMOD, empty when it is not set.
Netmod netmod_for(std::string_view text, std::string_view wanted);

// For the time of MPI_Init, which reads the environment; afterwards the program's own is as it was. All ranks
// of a job decide alike: by what the library says of itself, and by whether the job has one node.
class NetmodChoice {
  public:
    explicit NetmodChoice(std::string_view text);
    ~NetmodChoice();
    NetmodChoice(const NetmodChoice&) = delete;
    NetmodChoice& operator=(const NetmodChoice&) = delete;

    // For the user of a job over several nodes; empty: nothing.
    std::string line() const;

  private:
    Netmod made_ = Netmod::as_it_is;
};

}  // namespace fermata::lower
