// Small message-passing programs for the explorer: scripts of MPI-like operations, written by hand
// (scenarios) or at random. Random ones are correct by construction: every operation is appended to its
// participants in one global order, in which even unbuffered sends and synchronising collectives can run.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace fermata::clock::test {

enum class Do : uint8_t {
    collective,  // blocking
    start,       // non-blocking collective
    finish,      // MPI_Wait for it
    spin,        // while (!MPI_Test) for it
    send,
    isend,
    wait_send,
    receive,
    ireceive,
    wait_receive,
    receive_any,
    create,      // collective on `comm` that makes `other`
    group_call,  // MPI_Comm_create_group: only the members take part, nobody has agreed on a uid before
    release,     // MPI_Comm_free
    signal,      // wakes a thread of the same rank: a dependency outside MPI
    await,
};

enum class Flow : uint8_t { all, from_root, to_root };  // barrier-like; broadcast and reduce may return early

struct Op {
    Do what;
    int comm = -1;
    int other = -1;  // create: the new communicator
    int peer = -1;   // rank
    int tag = 0;
    int request = -1;  // of start/finish, isend/wait_send, ...; finish with -1: the oldest on `comm`
    Flow flow = Flow::all;
    int root = -1;
    bool reissuable = true;
};

struct Group {
    std::string name;
    std::vector<int> members;
    int parent = -1;    // made by a `create` on this one; -1: exists from the start
    bool call = false;  // a group call's stand-in
};

struct Script {
    int rank;
    std::vector<Op> ops;
    int loop = -1;  // repeat from here for ever
};

struct Program {
    int ranks = 0;
    std::vector<Group> comms;
    std::vector<Script> threads;

    bool endless() const;
    bool threaded() const;  // some rank has two threads
    bool has(Do what) const;
    std::string text() const;
};

// "A=1,2 B=1,4; 1: B >2; 2: <1 A; 3: A; 4: B". Operations: X collective, X^r broadcast from r, X~r reduce to
// r, iX / iX^r start, wX wait for the oldest, tX poll for the oldest, !X start one that cannot be issued
// again, >r send, <r receive, <* receive from any, [ begin of the endless loop. A rank given twice has two
// threads. Ranks count from 1.
Program parse(const char* text);

struct Taste {
    int ranks = 4, comms = 3, steps = 10;
    int collectives = 5, messages = 4, nonblocking = 3, requests = 2, wildcards = 0, polls = 0, creations = 1;
    int threads = 1;  // per rank, at most 2
    int signals = 0;
    bool endless = false;
};

Taste random_taste(std::mt19937_64& random);
Program random_program(std::mt19937_64& random, const Taste& taste);

}  // namespace fermata::clock::test
