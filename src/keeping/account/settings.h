// Settings says what src/keeping has to know of a job: where its generations go, and how often.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/generation.h"
#include "journal/writer.h"
#include "level/levels.h"
#include "store/generation.h"

namespace fermata::keeping {

struct Settings {
    uint64_t job_number = 0;  // image::Identity::job: the same over restarts
    std::string ckpt_dir;     // absolute
    Generation restored;      // this job was restarted from it; none = first start
    double interval = 0;      // seconds; 0 = none, < 0 = auto (Daly)
    level::Levels levels;     // none: all generations go to files
    // Generations that it may be restarted from, newest first, when nodes have to be asked what they have of
    // it.
    std::vector<store::GenerationInfo> candidates;
    double mtbf = 86400;  // seconds between failures, for auto
    unsigned keep = 0;    // generations; 0 = all
    bool verbose = false;
    journal::WriterPointer journal;  // null = none
};

}  // namespace fermata::keeping
