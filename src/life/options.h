// SubmitOptions is what the words of `fermata run` and `fermata restart` ask for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/make.h"
#include "root/plan/settings.h"

namespace fermata::life {

struct RestartFrom {
    std::optional<uint32_t> generation;  // none = newest
    bool latest = false;                 // the newest by name, also of a job that has ended
    bool fallback = false;               // pass over damaged ones
};

// Asked for, and only with --launcher own.
struct OfOwn {
    bool standby = false;                         // the next life's ranks start while this one's run
    bool message_log = false;                     // ranks log their messages, so that they can stop anywhere
    std::optional<uint64_t> log_bytes;            // so much of a rank's log is in memory
    std::string replicas;                         // which ranks have copies; "" = none
    static constexpr const char* kNone = "none";  // restart: replicas = none, though the generation had some
};

// TellingOptions say where the job tells what it does.
struct TellingOptions {
    bool verbose = false;
    std::string metrics;  // a file for Prometheus; empty = none
};

// TestingOptions make trouble, to see what becomes of a job.
struct TestingOptions {
    std::optional<root::Injection> inject;
};

struct SubmitOptions : TellingOptions, TestingOptions {
    int ranks = 0;
    std::string mpi = "auto";
    std::string ckpt_dir = "fermata-ckpt";
    std::string job;  // empty = <program>-<pid>
    launch::LauncherName launcher = launch::LauncherName::automatic;
    std::string mpiexec_args;
    std::vector<std::string> launcher_options;  // mpiexec's, given among Fermata's own
    std::string cpu;  // level of the CPUs that the program may use; "" = all that its node has
    std::string protocol = "cc-d";
    image::SaveOptions save_options;
    std::string files = "auto";  // the program's: kept and put back (auto), or not (off)
    std::string key_file;        // images are encrypted with it; empty = they are not
    double interval = 0;         // seconds; < 0 = auto
    double mtbf = 86400;
    level::Levels levels;            // instead of an interval
    std::optional<double> walltime;  // 0 = none, not even what a scheduler gives
    std::optional<unsigned> keep;
    int max_restarts = 0;
    unsigned spares = 0;  // nodes kept free for what is lost
    OfOwn of_own;
    std::string interrupt = "checkpoint";  // what Ctrl-C does first; "program": it is handed on
    bool own_state = false;                // every checkpoint is the program's own work (libfermata)
    root::Limits limits;
    std::vector<std::string> command;  // run
    std::vector<launch::Part> more;    // run: programs behind a ":"
    RestartFrom from;                  // restart
    bool mapped = false;               // restarts
    std::vector<std::string> moved;    // restart: "/old=/new", folders that are elsewhere now
    bool continue_it = false;          // run: continue this command's job if the directory holds one
    std::string allow_owner;           // name or number of one more user whose generations may run here
};

// Makes the launcher Fermata's own, without which a log is of no use. Throws Error when another was asked
// for, or what does not go with a log.
void check_message_log(SubmitOptions& options);

// A number of ranks among the words for srun ("-n 4", "--ntasks=4") is the job's, as if `fermata run` had
// been given it. Throws Error when that is no number, or another one was said.
void take_ranks_of_srun(SubmitOptions& options);

// mpiexec's options as people wrote them, then those of --mpiexec-args, as a shell splits them.
std::string launcher_words(const std::vector<std::string>& options, const std::string& args);
// The programs of a job, as they were asked for.
std::vector<launch::Part> parts_of(const SubmitOptions& options);

}  // namespace fermata::life
