// What a job is told at its start, and how long it may take for what.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/generation.h"
#include "image/save_options.h"
#include "store/store.h"

namespace fermata::root {

// Seconds. A phase that takes longer is given up with a diagnosis; the job goes on.
struct Limits {
    double start = 600;       // until every rank of the job runs (its image is loaded); 0 = no limit
    double checkpoint = 600;  // request .. drain together
    double save = 3600;       // a request's own time is for both
    double resume = 60;
    double grace = 30;  // SIGTERM: request .. commit
};

struct Settings {
    std::string job;
    std::string job_id;
    uint64_t job_number = 0;  // image::Identity::job: the same over restarts
    std::string ckpt_dir;     // absolute
    std::string protocol = "cc-d";
    image::SaveOptions save_options;
    image::KeyPointer key;  // of the images; null = none
    std::vector<std::string> command;
    std::vector<store::Segment> segments;  // of a job of several programs
    int expected_ranks = 0;                // 0 = whatever the launcher starts
    Generation restored;                   // this job was restarted from it; none = first start
    double interval = 0;                   // seconds; 0 = none, < 0 = auto (Young/Daly)
    double mtbf = 86400;                   // seconds between failures, for auto
    double walltime = 0;                   // seconds this job may last; 0 = no limit
    unsigned keep = 0;                     // generations; 0 = all
    bool verbose = false;
    bool note_end = false;  // exit code 0 is noted in the directory also when no generation was made
    Limits limits;
};

}  // namespace fermata::root
