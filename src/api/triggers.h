// Triggers say when a program shall save its state, and when it shall end: by time, and by signals.
#pragma once

#include "api/options.h"
#include "api/ranks.h"

namespace fermata::api {

class Triggers {
  public:
    // With signals=yes SIGUSR1 and SIGTERM are heard from now on, until the end.
    explicit Triggers(const Options& options);
    ~Triggers();
    Triggers(const Triggers&) = delete;
    Triggers& operator=(const Triggers&) = delete;

    // Rank 0 decides for all. Collective.
    bool should_checkpoint(const Ranks& ranks);
    bool should_exit(const Ranks& ranks);
    // A save has begun; the newest took so many seconds to its end.
    void saved(double seconds);

  private:
    bool time_to_exit() const;
    const Options& options_;
    const double opened_;  // s
    double last_;          // s, of the newest save
    double cost_ = 0;      // s
    unsigned seen_ = 0;    // SIGUSR1s that were answered
    bool hears_ = false;
};

}  // namespace fermata::api
