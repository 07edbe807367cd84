// One record of the stream of a replicated rank: what one call said to the program. It is there as a whole or
// not at all: whoever writes it sets its commit word last.
#pragma once

#include <optional>
#include <variant>

#include "replay/memory.h"
#include "replay/types.h"

namespace fermata::replay {

// The calls that record. Starting a request, local calls and output record nothing.
enum class CallKind : uint8_t {
    send,        // blocking
    receive,     // blocking
    wait,        // Wait, Waitall
    choice,      // Test*, Wait{any,some}: which of them, or none
    probe,       // all four kinds of it
    collective,  // blocking
    value,       // a clock, a recorded read, a cancel, an error
    harvest,     // no call: receives that a waiting process names for the sake of synchronous senders
};

// A message consumed. Channel and request could be worked out by a replica that plays: named, a ring can be
// counted without that.
struct MessageItem {
    Uid comm;
    Envelope from;
    RequestNo request;
    Bytes bytes;
};
struct Made {  // by a creation
    Uid uid;
    Vec<Rank> members;
};
struct CollectiveItem {
    Uid comm;
    Instance instance;
    RequestNo request;
    Bytes result;
    std::optional<Made> made;
    bool frees = false;
};
using Item = std::variant<MessageItem, CollectiveItem>;

struct Probed {
    Uid comm;
    Envelope from;
};
// All that a call says beside data.
struct Outcome {
    CallKind kind;
    bool flag = true;
    int64_t index = 0;  // which request
    std::optional<Probed> probed{};
    Vec<RequestNo> told{};
    Bytes value{};  // of a clock, a recorded read
};

struct Record {
    CallNo call;
    Outcome outcome;
    Vec<Item> items;
    bool determinant;     // it could have been otherwise, and nothing but this record knows
    uint64_t digest = 0;  // of all that the process has handed to the library
};

}  // namespace fermata::replay
