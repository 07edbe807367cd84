// AutoLevels chooses the levels of a job and how often (`--levels auto`): each is measured once at full
// speed, then predict::Plan is made of what they cost and of the time between failures, and made again when
// what a checkpoint costs has changed. No clock and no I/O.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "keeping/account/settings.h"
#include "predict/levels.h"

namespace fermata::keeping {

class AutoLevels {
  public:
    // Shares of 100 failures: those that leave the memory of all nodes, those that take that of one node,
    // those that take more.
    static constexpr double kOfRanks = 0.90, kOfNode = 0.09, kOfMore = 0.01;

    // Writes the levels' periods there, and that of the interval.
    explicit AutoLevels(Settings& settings);

    bool on() const { return settings_.levels.automatic; }
    // There can be no second copies, for this reason; or the first one has failed.
    void no_buddies(const std::string& why);
    void buddies_failed(const std::string& why) {
        if (buddies_.bandwidth == 0) no_buddies(why);
    }
    // Take what was measured: a checkpoint to memory (seconds lost, bytes of all nodes), copies of such a
    // one.
    void memory(double cost, uint64_t bytes);
    // One that went to files, since no memory could be had.
    void no_memory(double cost);
    void buddies(uint64_t bytes, double seconds);
    void files(uint64_t bytes, double seconds);

    nlohmann::json status() const;

  private:
    // Speed and cost of copies beside the ranks.
    struct Copying {
        double bandwidth = 0;  // bytes a second at full speed; 0 = not measured
        void measured(uint64_t bytes, double seconds);
        double cost(uint64_t bytes) const;
    };
    void plan();

    Settings& settings_;
    double memory_cost_ = 0;
    uint64_t bytes_ = 0;  // of the newest generation in memory
    Copying buddies_, files_;
    std::string no_buddies_;  // why; "" = there are some
    predict::Plan plan_;      // empty: not all is measured
};

}  // namespace fermata::keeping
