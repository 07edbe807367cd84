// A library below the front's requests that does what a test tells it to: the table of functions of a world
// of one process, whose messages are to itself.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "fermata_api.h"
#include "front/core/call.h"
#include "front/requests/operations.h"

namespace fermata::front {

struct FakeLibrary {
    // A message on its way, or matched.
    struct Letter {
        uint64_t comm;
        int tag;
        std::string bytes;
        uint64_t send = 0;  // the request that ends when it is received; 0: none waits for that
    };
    struct Operation {
        bool done = false, receives = false, cancelled = false;
        int error = 0;
        uint64_t comm = 0;
        int tag = 0;
        void* buf = nullptr;
        size_t room = 0;
        Status status{};
    };
    std::deque<Letter> on_the_way;
    std::map<uint64_t, Letter> matched;
    std::map<uint64_t, Operation> operations;
    std::vector<int> posted_tags;  // of every Irecv, in order
    bool sends_wait = false;       // standard sends, too, end when they are received only
    int refuse_sends = 0;          // an error class
    int break_matched = 0;         // likewise: a matched message does not come
    int looks = 0;                 // calls of Test
    uint64_t last = 100;

    uint64_t begin_receive(void* buf, size_t room, int tag, uint64_t comm);
    uint64_t begin_send(const void* buf, size_t bytes, int tag, uint64_t comm, bool waits);
    void deliver(uint64_t request, const Letter& letter);
    // Ends a send as its receiver would.
    void end(uint64_t request, int error = 0) {
        operations.at(request).done = true;
        operations.at(request).error = error;
    }
};
extern FakeLibrary library;

// The front as it stands between MPI_Init and MPI_Finalize, with nothing open.
class RequestsTest : public ::testing::Test {
  protected:
    void SetUp() override;
    // Whatever a test began is over: no request lives, no message waits.
    void TearDown() override;

    // A message that others have sent.
    static void arrives(int tag, const std::string& bytes, uint64_t comm = 0);
    // As the agent: a checkpoint is on its way, pulls are exact; messages may be taken for good.
    static void begin_checkpoint(bool take);
    static void end_checkpoint();
    static split::DrainReport drain_frozen();
    static uint64_t received() { return slot().received[0]; }
    static uint64_t sent() { return slot().sent[0]; }
    static clock::Slot& slot() { return *static_cast<clock::Slot*>(record->slot); }
    static RequestObject* object(mpi::Request handle) { return find_request(handle); }
    static State state_of(const RequestObject* r) { return r->state; }

    static split::ThreadRecord* record;
    char buffer[64] = {};
};

uint64_t real_world();

}  // namespace fermata::front
