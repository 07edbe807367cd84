// Settings that a job is told at its start, and the times that it may take.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/generation.h"
#include "image/save_options.h"
#include "journal/forecast.h"
#include "keeping/account/settings.h"
#include "root/plan/injection.h"
#include "store/store.h"

namespace fermata::root {

// Seconds. A phase that takes longer is given up with a diagnosis; the job goes on.
struct Limits {
    double start = 600;       // until every rank of the job runs (its image is loaded); 0 = no limit
    double checkpoint = 600;  // request .. drain together
    double save = 3600;       // a request's own time is for both
    double resume = 60;
    // SIGTERM: request .. commit. Without a value: half a minute, or as long as it is likely to take.
    std::optional<double> grace;
};

// Whether another life of the job follows one that ends with this exit code, was ended by the loss of this
// rank (-1: of none) and has committed this generation (none: it has not).
using GoesOn = std::function<bool(int code, int rank, Generation newest)>;

// keeping::Settings: what keeping takes of it.
struct Settings : keeping::Settings {
    std::string job;
    std::string job_id;
    std::string protocol = "cc-d";
    bool message_log = false;  // ranks log their messages, so that they can stop anywhere
    std::string cpu;           // level of the CPUs that the program may use; "" = all
    uint64_t log_memory = store::MessageLog::kDefaultMemory;  // bytes of a rank's log in memory
    std::string replicas;                // ranks that shall have copies (replicas.h); "" = none
    std::optional<Injection> injection;  // failures that are made, for tests
    uint32_t log_epoch = 0;              // of the message logs in the generation that it is restarted from
    // Message logs know the newest recovery by its epoch, over all lives of a job.
    uint32_t first_epoch() const { return message_log ? std::max(restarts << 10, log_epoch + 1) : 0; }
    image::SaveOptions save_options;
    image::KeyPointer key;  // of the images; null = none
    std::vector<std::string> command;
    std::vector<store::Segment> segments;  // of a job of several programs
    int expected_ranks = 0;                // 0 = whatever the launcher starts
    double walltime = 0;                   // seconds this job may last, over all its lives; 0 = no limit
    // Seconds left, as the scheduler says that has given the walltime and may change it; null: none has.
    std::function<std::optional<double>()> left_in_slot;
    int64_t began = 0;  // ms; the first of its lives here, 0 = this one
    // The cost of the generation that it is restarted from.
    std::optional<journal::Measured> measured_before;
    uint32_t restarts = 0;     // that lie behind it, here
    bool may_restart = false;  // a supervisor goes on from the newest generation when it fails
    GoesOn goes_on;
    bool program_interrupt = false;   // SIGINT is the program's, and Fermata hands it on
    std::function<void()> each_turn;  // of the root's loop; null = none
    bool own_state = false;           // every checkpoint is the program's own work (libfermata)
    bool note_end = false;  // exit code 0 is noted in the directory also when no generation was made
    Limits limits;
};

}  // namespace fermata::root
