// Triggers say when a program shall save its state, and when it shall end: by time, by signals, and because
// the job that it runs in wishes so.
#pragma once

#include <optional>

#include "api/in_job.h"
#include "api/options.h"
#include "api/ranks.h"

namespace fermata::api {

class Triggers {
  public:
    // With signals=yes SIGUSR1 and SIGTERM are heard from now on, until the end.
    Triggers(const Options& options, const InJob& job);
    ~Triggers();
    Triggers(const Triggers&) = delete;
    Triggers& operator=(const Triggers&) = delete;

    // Rank 0 decides for all. Collective.
    struct Due {
        bool save = false, end = false;
    };
    Due should_checkpoint(const Ranks& ranks);
    // As the newest should_checkpoint() had it, where the program calls that: it shall not end for a reason
    // that it has not been asked to save for.
    bool should_exit(const Ranks& ranks);
    // A save has begun; the newest took so many seconds to its end.
    void saved(double seconds);
    // A save begins: what the job wishes, which it answers. Rank 0.
    InJob::Wish answer();

  private:
    bool time_to_exit() const;
    const Options& options_;
    const InJob& job_;
    const double opened_;    // s
    double last_;            // s, of the newest save
    double cost_ = 0;        // s
    unsigned seen_ = 0;      // SIGUSR1s that were answered
    uint64_t answered_ = 0;  // the newest wish of the job, likewise
    bool hears_ = false;
    std::optional<bool> end_;  // what the newest should_checkpoint() said; none: it was never called
};

}  // namespace fermata::api
