// Small message-passing programs for the simulator of the message log: written by hand, or drawn.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "replay/collective.h"

namespace fermata::replay::test {

inline constexpr int kProbed = -2;  // the rank whose message the last probe found; else any

enum class Do : uint8_t {
    send,     // and with a handle: the non-blocking form
    receive,  // likewise
    probe,    // blocking
    iprobe,
    wait,  // for all of `handles`
    any,   // for one of them
    test,  // one of them, once
    drop,  // MPI_Request_free of a send
    collective,
    print,
    finalize,
};

struct Op {
    Do what{};
    int peer = -1;    // rank; -1: any source. Of a creation: the new communicator
    int tag = 0;      // -1: any
    int comm = 0;     // 0: of all ranks
    int handle = -1;  // -1: blocking
    bool synchronous = false, slow = false, large = false, in_place = false;
    Kind kind{};
    std::vector<int> handles{};
    std::vector<int> members{};  // of the communicator that a creation makes
};

struct Program {
    std::vector<std::vector<Op>> ranks;
    bool sends_synchronously() const;
    std::string text() const;
};

// One text for each rank, words between blanks: send1.t2.c1 isend1=3 ssend1 recv* recv? irecv0.t*=1 probe*
// iprobe0 wait1,2 any1,2 test1 drop1 barrier bcast0.c1=2 scatter0 gather0 reduce0 allreduce allgather
// alltoall scan rscatter new2/0,1 free.c2 print; .W: a message that takes a while after it is matched; .L:
// one whose sender waits for that, too; !: in place.
Program parse(const std::vector<std::string>& ranks);

Program random_program(std::mt19937_64& random, int actions);

}  // namespace fermata::replay::test
