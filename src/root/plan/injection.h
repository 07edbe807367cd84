// Injection is what `--inject` asks for: processes of ranks are killed at times that a law of failures gives,
// the same ones for the same seed. For tests of resilience.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fermata::root {

struct Injection {
    double shape = 1;  // of Weibull's law; 1: exponential
    double scale = 0;  // seconds
    uint64_t seed = 1;
    bool per_process = false;  // each process has a time of its own; else the job has one after the other
    bool replace = true;       // copies that are gone are made again

    // "weibull:shape=0.7,scale=20s,seed=3" or "exponential:mtbf=5s", each with "per=system|process" and
    // "replace=yes|no". Throws Error.
    static Injection parse(const std::string& words);
    // By inversion: the time below which a share `u` (0 to 1) of all times is.
    double time_of(double u) const;
};

// A sequence of numbers from 0 to 1, the same for the same seed (SplitMix64).
class Draws {
  public:
    explicit Draws(uint64_t seed) : state_(seed) {}
    double next();

  private:
    uint64_t state_;
};

// Says who is to die when. Times are ms.
class Injector {
  public:
    struct Process {
        int32_t rank = 0;
        bool copy = false;
        int32_t pid = 0;
        auto operator<=>(const Process&) const = default;
    };

    // `life`: how many of the job lie behind this one, in which other numbers are drawn.
    Injector(const Injection& what, uint32_t life);

    void begin(int64_t now);
    bool has_begun() const { return begun_ > 0; }
    // Names who dies now, out of those that live, in the order of their ranks; none: nobody yet. Asked again
    // until killed() has said that somebody was.
    std::optional<Process> due(int64_t now, std::vector<Process> living);
    void killed(int32_t pid);
    // The copy has its rank's place, and the time that it had.
    void leads(int32_t rank);
    uint32_t count() const { return count_; }
    double seconds(int64_t now) const { return static_cast<double>(now - begun_) / 1000; }

  private:
    struct Unit {
        int32_t pid = 0;   // the newest of a copy
        int64_t dies = 0;  // ms
    };
    int64_t drawn();
    std::optional<Process> of_the_job(int64_t now, const std::vector<Process>& living);
    std::optional<Process> by_itself(int64_t now, const std::vector<Process>& living);

    const Injection what_;
    const uint64_t seed_;
    Draws draws_;
    int64_t begun_ = 0;
    int64_t next_ = 0;   // of the job
    double whom_ = -1;   // drawn already for that one; < 0: not
    int64_t asked_ = 0;  // when somebody was to die who may have been replaced by then
    uint32_t count_ = 0;
    std::map<std::pair<int32_t, bool>, Unit> units_;  // by rank and whether it is the copy
    std::set<int32_t> dead_;                          // processes that others may not know of yet
    std::map<int32_t, uint32_t> nth_;                 // units that a rank has had
};

}  // namespace fermata::root
