// Partitioned communication (MPI-4) on top of ordinary messages: the whole buffer travels as one message once
// every partition is marked ready. Correct, and independent of what the real library offers; without its
// pipelining.
#pragma once

#include <cstdint>

namespace fermata::front {

struct Partitions {
    int32_t count;
    volatile int32_t left;  // not yet ready, of a started send
};

}  // namespace fermata::front
