// A checkpoint of a fake job, with which the tests of checkpoints begin.
#pragma once

#include <unistd.h>

#include <string>
#include <vector>

#include "fake_job.h"
#include "root/checkpoint/checkpoint.h"

namespace fermata::root {

using Phases = std::vector<std::string>;

// A checkpoint of a fake job, in a store of its own.
struct Scene {
    Scene() {
        settings.job_number = 7;
        settings.ckpt_dir = directory.path();
        settings.limits.resume = 2;
        store.lock("test", 7);
        job.checkpoint = &checkpoint;
    }
    Outcome take(bool stop = false, store::LevelName level = store::LevelName::files) {
        return checkpoint.take({"command", stop, 0, 3}, level, 0);
    }
    // The limits are for who waits in vain: a good one on a busy machine takes its time.
    void fail_at(const char* phase, Fault fault) {
        job.fails_at = phase;
        job.fault = fault;
        if (fault == Fault::silence)
            settings.limits.checkpoint = settings.limits.save = settings.limits.resume = 0.4;
    }
    size_t generations() const { return store.list().size(); }

    keeping::Directory directory;
    Settings settings;
    store::Store store = store::Store::for_writing(directory.path());
    keeping::FakeNodes nodes;
    tree::Tally tally{tree::Tally::Level::top};
    keeping::Keeper* keeper_of_job = nullptr;
    FakeJob job{tally, keeper_of_job};
    keeping::Keeper keeper{settings, store, nodes};
    Checkpoint checkpoint{job, settings, tally, store, keeper};
};

}  // namespace fermata::root
