// `fermata batch`: a job script for a batch system that goes on by itself until the program is done, whatever
// the time limits in between.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fermata::cli {

enum class Scheduler { slurm, grid_engine, lsf, htcondor };
// Throws Error (exit code 2) with the names that there are.
Scheduler scheduler_named(const std::string& word);

struct BatchOptions {
    Scheduler scheduler = Scheduler::slurm;
    std::string name;  // of the batch job
    double total = 0;  // seconds the program may take in all; 0 = no limit
    double least = 0;  // seconds of one slot, at least and at most
    double most = 0;
    double warning = 300;  // seconds before a slot's end: the scheduler says that it comes
    int ranks = 0;
    std::string ckpt_dir;            // as the words of `run` have it
    std::vector<std::string> words;  // of `fermata run`: options, program, arguments
    std::vector<std::string> extra;  // more options for the scheduler, as they stand in a script
};

// "2h..48h", or "48h" for slots of one length: into least and most. Throws Error (exit code 2).
void parse_slot(const std::string& text, BatchOptions& options);
// The file that is to be submitted, and in its first comment how. Throws Error (exit code 2) that names a
// word which the scheduler's format cannot hold.
std::string batch_script(const BatchOptions& options);

}  // namespace fermata::cli
