// Metrics are a job's events as numbers in the text format of Prometheus, in a file for the textfile
// collector of node_exporter (docs/metrics.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "files/folder.h"
#include "journal/event.h"

namespace fermata::metrics {

// The numbers, without file and clock: what was heard so far, over all lives that this process has led.
class Numbers {
  public:
    // Takes the job's name from its first start.
    void hear(const journal::Event& event);
    // `now`: ms since 1970.
    std::string text(int64_t now) const;

  private:
    struct Copies {
        uint64_t ok = 0, failed = 0;
        double bytes = 0, seconds = 0;
    };
    void started(const journal::Event& event);
    void checkpoint(const journal::Event& event);
    void copy(const journal::Event& event);
    void replica(const journal::Event& event);
    void stopped_running(int64_t now);

    std::string job_, mpi_, host_, number_;
    int64_t first_start_ = 0, running_since_ = 0, failed_ = 0, newest_ = 0;  // ms; 0 = not (now)
    double ranks_ = 0, nodes_ = 0, ran_ = 0, lost_ = 0;
    uint64_t lives_ = 0, failures_ = 0, restarts_ = 0, good_ = 0, bad_ = 0;
    struct {
        uint64_t made = 0, ended = 0;  // copies of ranks; one that leads has ended as a copy
        double had = 0, wanted = 0;
        uint64_t masked = 0;  // deaths
        double seconds = 0;   // until all went on
    } members_;
    double bytes_ = 0, seconds_ = 0, standing_ = 0, cost_ = 0, last_bytes_ = 0, last_bandwidth_ = 0;
    std::vector<uint64_t> buckets_;
    std::map<std::string, double> phases_;
    std::map<std::string, Copies> copies_;     // by level
    std::map<std::string, int64_t> captured_;  // of this life's newest generations; ms
    int64_t ran_from_ = 0;                     // ms; of the newest life that ran
};

// Writes the numbers to a file, whole or not at all: at once after what happens to the job, and from time to
// time.
class Metrics {
  public:
    // Writes the file, without numbers yet, which has to be possible. Throws Error.
    explicit Metrics(const std::string& path);
    // Never throw: a file that cannot be written any more costs the numbers, not the job.
    void hear(const journal::Event& event) noexcept;
    void turn() noexcept;

  private:
    void try_to_write(int64_t now) noexcept;

    Numbers numbers_;
    files::Folder folder_;
    std::string name_;
    int64_t written_ = 0;
    bool said_ = false;  // that it cannot be written
};

}  // namespace fermata::metrics
