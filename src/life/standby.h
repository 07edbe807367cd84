// Standby keeps the next life of a job ready while this one runs: its node daemons and ranks are there, and
// have started MPI, so that after a failure nothing is launched. The ranks only load what they go on from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "life/submission.h"
#include "root/beside.h"

namespace fermata::life {

class Standby : public root::Beside {
  public:
    ~Standby() override { dismiss(); }

    // Notes that this life begins, which `root` leads; the one that stands by will follow it.
    void of(const Submission& what, const std::string& base, const root::Root& root);
    // Hands out the life that stands by, also when its ranks are still to come, if it can go on as `what`
    // says; nothing where there is none, or another one.
    std::optional<Prepared> take(const Submission& what);
    // Ends it: nobody needs it any more.
    void dismiss();

    void add_to(std::vector<pollfd>& fds) override;
    int rest(int otherwise) const override;
    void serve(const std::vector<pollfd>& fds, size_t first) override;
    // Begins to prepare it once there is a generation, and again a while after it has fallen.
    void turn(Generation newest) override;
    const char* state() const override;

  private:
    void prepare_from(Generation newest);

    std::optional<Submission> next_;
    const root::Root* job_ = nullptr;
    std::string base_;  // of run directories
    std::optional<Prepared> life_;
    std::string mpi_;         // its library
    int64_t not_before_ = 0;  // ms
    bool said_ = false;       // that there is none
};

}  // namespace fermata::life
