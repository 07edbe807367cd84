// One communicator as the log sees it: the instances of its collective calls, and what of them a recovery
// would need.
#pragma once

#include "replay/collective.h"
#include "replay/exchange.h"
#include "replay/log_use.h"
#include "replay/told_set.h"

namespace fermata::replay {

// An instance that this rank was told and others perhaps not.
struct LoggedCall {
    Instance instance;
    Arguments arguments;
    Bytes input;                       // what this rank contributes
    Bytes result;                      // of Allreduce and Allgather only: the same everywhere
    bool in_use = false;               // a debt that is not paid yet
    std::optional<Spilled> spilled{};  // then both are there, one behind the other
    uint64_t input_size = 0;           // of those

    uint64_t held() const { return input.size() + result.size(); }
};

struct Communicator {
    Uid uid;
    Uid parent;
    Instance made_as;
    Vec<Rank> members;
    Instance entered{};  // calls numbered
    ToldSet told;
    ToldSet stable;       // of a rank with a copy: those that a stable record names
    ToldSet everywhere;   // told all members, by stable records
    Instance freed_as{};  // the free, once told
    Vec<LoggedCall> log;
    Vec<Planned> plan;  // of this epoch

    const Planned* planned(Instance i) const {
        for (const Planned& one : plan)
            if (one.instance == i) return &one;
        return nullptr;
    }
    LoggedCall* logged(Instance i) {
        for (LoggedCall& one : log)
            if (one.instance == i) return &one;
        return nullptr;
    }
};

}  // namespace fermata::replay
