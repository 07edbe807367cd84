// A History is what the events of one job add up to: its lives, and in each the checkpoints, copies and the
// failure that ended it. A value that no event says stays 0 or empty. No clock and no I/O.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "journal/event.h"
#include "journal/ranks.h"

namespace fermata::journal {

// Times of a History are ms since 1970, durations seconds.

struct PhaseTaken {
    std::string name, generation, last, waits;
    int64_t end = 0;
    double seconds = 0;
};

struct CheckpointTaken {
    std::string generation, level, origin, line;
    bool ok = false;
    int64_t end = 0;
    double bytes = 0, seconds = 0, standing = 0, behind = 0, bandwidth = 0, cost = 0;
    std::vector<PhaseTaken> phases;
    RanksTook took;  // each rank for itself

    // When the ranks had been captured: what they did since is not in it.
    int64_t captured() const { return end - static_cast<int64_t>(behind * 1000); }
};

struct CopyMade {
    std::string generation, level, why;
    bool ok = false;
    int64_t end = 0;
    double bytes = 0, seconds = 0;
};

// A rank's death that the job has survived as it ran, since the rank had a copy.
struct Masked {
    int64_t end = 0;     // all ranks went on
    double seconds = 0;  // since the death was seen
    std::string line;
    std::vector<std::pair<std::string, double>> phases;

    int64_t death() const { return end - static_cast<int64_t>(seconds * 1000); }
};

struct Failure {
    int64_t time = 0;
    std::string why, host;
    int rank = -1;  // -1: no rank's
};

struct Life {
    int64_t start = 0, running = 0, end = 0;  // running 0: never; end: of its last event when it has none
    bool ended = false;                       // its end is in the journal
    int code = 0;
    std::string name, host, restored, why, newest;
    int ranks = 0, nodes = 0;
    std::string mpi;
    double pause = 0;  // of the restart that follows
    std::vector<CheckpointTaken> checkpoints;
    std::vector<CopyMade> copies;
    std::vector<Failure> losses;
    std::vector<Masked> masked;
    std::vector<PhaseTaken> phases;  // of a checkpoint whose end is not there (yet)
    RanksTook took;                  // of that

    // The failure that ended it, if one did: a loss, or an end with another code than 0, 85 and 143.
    std::optional<Failure> failure() const;
    // Its ranks ran; a clock that was set back makes it 0.
    double seconds() const {
        return running && end > running ? static_cast<double>(end - running) / 1000 : 0;
    }
};

struct History {
    uint64_t job = 0;
    std::vector<std::string> command;
    std::string directory, given_up;
    std::vector<Life> lives;
    size_t events = 0;
    bool begun = false;  // its first event is a start: the journal has all of the job

    const std::string& name() const;  // of its newest life
    int ranks() const;
    double running() const;  // seconds that its ranks ran, over all lives
    size_t failures() const;
    size_t masked() const;   // deaths of ranks
    double masking() const;  // seconds that those took
    // Seconds from a failure until all ranks ran again, one for each that the job came back from.
    std::vector<double> recoveries() const;
    // Work of a life that the next one did again, seconds; 0 when nothing is known.
    double lost_after(size_t life) const;
    std::vector<const CheckpointTaken*> good() const;
};

// Numbers that a job has measured; one that nothing was measured for is 0, and so is its count.
struct Measurements {
    double cost = 0, bytes = 0, bandwidth = 0;  // means of good checkpoints
    double recovery = 0;                        // mean
    double mtbf = 0;                            // time that the ranks ran by failures
    double interval = 0;                        // median
    size_t costs = 0, sizes = 0, bandwidths = 0, recoveries = 0, failures = 0, intervals = 0;
};
Measurements measurements_of(const History& job);

// The jobs in these events, in the order of their first ones.
std::vector<History> histories(const std::vector<Event>& events);

}  // namespace fermata::journal
