// Submission is one life of a job: a first start, or a restart from a generation. Everything that the life
// needs is decided before it begins.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "image/image.h"
#include "launch/launcher.h"
#include "life/options.h"
#include "metrics/metrics.h"
#include "root/plan/settings.h"
#include "root/root.h"
#include "store/store.h"

namespace fermata::life {

struct Submission {
    SubmitOptions options;
    std::vector<std::string> command;
    std::vector<launch::Part> parts;  // first start: the programs, found (program_place.h)
    std::vector<store::Segment> segments;
    std::string preferred_mpi;
    std::string ckpt_dir;  // absolute
    std::optional<store::GenerationInfo> from;
    // When nodes have to be asked for it: `from`, and what it may be instead when that cannot be had.
    std::vector<store::GenerationInfo> candidates;
    void go_on_from(std::vector<store::GenerationInfo> newest_first) {
        from = newest_first.at(0);
        candidates = std::move(newest_first);
    }
    image::KeyPointer key;
    uint64_t job_number = 0;
    uint32_t restarts = 0;
    bool may_restart = false;                   // a supervisor goes on when it fails
    root::GoesOn goes_on;                       // whether it does so after such a failure
    int64_t began = 0;                          // ms; the first life here
    journal::WriterPointer journal;             // of all lives
    std::shared_ptr<metrics::Metrics> metrics;  // the same; null = none
    bool again = false;                         // an earlier life of this process's job has failed
    std::vector<std::string> suspects;          // nodes that were lost then, by host name
};

// How a life ended.
struct Ended {
    int code = 0;
    bool asked_to = false;
    std::string why;    // for people; "" = nothing is known
    int rank = -1;      // that was lost first; -1: none
    Generation newest;  // that it has committed
    // Of what the program saves itself (OwnState); there is something, it is newer than `newest`, this life
    // has saved it.
    bool own_exists = false, own_newest = false, own_saved = false;
    std::vector<std::string> lost_nodes;  // by host name; of ranks, too
    bool node_lost = false;               // a node daemon was
};

// A life with all that starts it, not yet begun.
struct Prepared {
    int ranks = 0;
    std::unique_ptr<root::Root> root;
    std::unique_ptr<launch::Launcher> launcher;
};
// `stands_by`: its ranks start and wait to be told what they go on from. Throws Error.
// `base`: of run directories.
Prepared prepare(const Submission& what, const std::string& base, bool stands_by);

class Standby;

// Starts the job, or takes the life that stands by, and serves it to its end. nullptr: none shall. Throws
// Error before anything was started.
Ended live(const Submission& what, Standby* standby = nullptr);

}  // namespace fermata::life
