// Messages of a renewal: ranks get new lower halves while they run. message.h has the rules of all messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/daemons.h"
#include "wire/launch.h"

namespace fermata::wire {

// Where an MPI library lies that is not the one Fermata was built with: its folder, the library's file there,
// and the name by which the lower half asks for it. All empty: the one it was built with.
struct LibraryPlace {
    std::string folder, file, wanted;
};

// In place of Save: a new lower half serves the program, in a child of the rank's process. From the root with
// the variables that change; each node daemon gives its ranks all of theirs. Answered by Saved, without an
// image, when the child is ready; the child goes on when Resume comes, the process itself when Cancel comes.
struct Renew {
    static constexpr uint16_t kType = 40;
    uint32_t epoch = 0;
    uint32_t world = 0;                    // number of the world that the new lower halves make
    std::vector<std::string> environment;  // NAME=VALUE; from the root: over what it was
    std::string mpi;                       // the library's name, "openmpi" or "mpich"
    std::string lower;                     // the lower half's program, a path
    LibraryPlace reach;                    // from the root
    std::vector<Run> copies;               // ranks whose process stays behind as their copy
    std::vector<LaunchBlock> blocks;       // where ranks are in that world; none: where they were launched
    template <class F>
    void each(F&& f) {
        f(epoch, world, environment, mpi, lower, reach.folder, reach.file, reach.wanted, copies, blocks);
    }
};

// Signals that have come to a process, for the child that goes on in its place; before Go.
struct Waiting {
    static constexpr uint16_t kType = 41;
    std::vector<std::string> signals;  // siginfo_t each
    template <class F>
    void each(F&& f) {
        f(signals);
    }
};

// This rank is another process from now on, a child of its node daemon, which hands it on; its MPI library as
// in Hello.
struct Moved {
    static constexpr uint16_t kType = 105;
    int32_t rank = -1;
    int32_t pid = 0;
    std::string mpi, mpi_version;
    template <class F>
    void each(F&& f) {
        f(rank, pid, mpi, mpi_version);
    }
};

}  // namespace fermata::wire
