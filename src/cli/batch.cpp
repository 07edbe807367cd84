#include "cli/batch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/folder.h"

namespace fermata::cli {
namespace {

constexpr std::pair<const char*, Scheduler> kSchedulers[] = {{"slurm", Scheduler::slurm},
                                                             {"sge", Scheduler::grid_engine},
                                                             {"lsf", Scheduler::lsf},
                                                             {"htcondor", Scheduler::htcondor}};

int64_t whole(double seconds) { return static_cast<int64_t>(std::ceil(seconds)); }

// "48:00:00", as Slurm and Grid Engine take it.
std::string clock_time(double seconds) {
    int64_t all = whole(seconds);
    return fmt::format("{:02}:{:02}:{:02}", all / 3600, all / 60 % 60, all % 60);
}

// LSF counts in minutes.
int64_t minutes(double seconds) { return std::max<int64_t>(1, whole(seconds / 60)); }

std::string quoted(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words)
        line += fmt::format("{}{}", line.empty() ? "" : " ", shell_quoted(word));
    return line;
}

std::string lines_of(const char* before, const std::vector<std::string>& extra) {
    std::string lines;
    for (const std::string& one : extra) lines += fmt::format("{}{}\n", before, one);
    return lines;
}

// The part that all schedulers share which run a shell script: how much of the total is left, the job, and
// its end. The text that turns the scheduler's warning before the end of a slot into SIGTERM for the job.
std::string body(const BatchOptions& o, const char* traps, const std::string& again) {
    std::string text = fmt::format(R"sh(
used={0}  # when each slot began and ended, for the total
)sh",
                                   shell_quoted(o.name + ".fermata-slots"));
    if (o.total > 0)
        text += fmt::format(R"sh(total={0}
spent=$(awk -v most={1} '$1 == "begin" {{ if (b) u += $2 - b < most ? $2 - b : most; b = $2 }}
  $1 == "end" {{ if (b) u += $2 - b; b = 0 }}
  END {{ if (b) u += most; print u + 0 }}' "$used" 2>/dev/null)
left=$((total - ${{spent:-0}}))
if [ "$left" -le 0 ]; then
  echo "the total of $total s is used up; fermata restart goes on from the newest checkpoint" >&2
  exit 1
fi
)sh",
                            whole(o.total), whole(o.most));
    text += fmt::format(R"sh(echo "begin $(date +%s)" >> "$used"
job= stop=
# Before the end of a slot, and when somebody else needs the place: a checkpoint, then the end.
trap 'stop=1; [ "$job" ] && kill -TERM $job && stop=' {0}
# Starts, or goes on from the newest checkpoint. Options further behind count.
fermata run --continue --interval auto --max-restarts 10{1} {2} &
job=$!
[ "$stop" ] && kill -TERM $job # it came before there was a job
until wait $job; code=$?; ! kill -0 $job 2>/dev/null; do :; done # a signal ends a wait, too
echo "end $(date +%s)" >> "$used"
if [ $code != 85 ]; then
  [ $code = 0 ] && rm -f "$used"
  exit $code
fi
{3})sh",
                        traps, o.total > 0 ? " --walltime ${left}s" : "", quoted(o.words), again);
    return text;
}

std::string slurm(const BatchOptions& o) {
    std::string least = o.least < o.most ? fmt::format(" --time-min={}", clock_time(o.least)) : "";
    return fmt::format(R"sh(#!/bin/bash
# Goes on until the program is done: sbatch THIS_FILE
#SBATCH --job-name={} --ntasks={} --time={}{}
#SBATCH --signal=B:TERM@{} --requeue --open-mode=append
{})sh",
                       shell_quoted(o.name), o.ranks, clock_time(o.most), least, whole(o.warning),
                       lines_of("#SBATCH ", o.extra)) +
           body(o, "TERM",
                "scontrol requeue \"$SLURM_JOB_ID\" && sleep 60 # until Slurm ends this slot\nexit 85\n");
}

std::string grid_engine(const BatchOptions& o) {
    return fmt::format(R"sh(#!/bin/bash
# Goes on until the program is done: qsub THIS_FILE
#$ -S /bin/bash -N {} -cwd -j y -r y -notify
#$ -pe mpi {}
#$ -l h_rt={},s_rt={}
{})sh",
                       o.name, o.ranks, clock_time(o.most), clock_time(o.most - o.warning),
                       lines_of("#$ ", o.extra)) +
           // 99: Grid Engine puts the job into its queue again.
           body(o, "TERM USR1 USR2 XCPU", "exit 99\n");
}

std::string lsf(const BatchOptions& o) {
    return fmt::format(R"sh(#!/bin/bash
# Goes on until the program is done: bsub < THIS_FILE
#BSUB -J {}
#BSUB -n {}
#BSUB -W {}
#BSUB -wt {}
#BSUB -wa TERM
#BSUB -r
#BSUB -Q "85"
{})sh",
                       o.name, o.ranks, minutes(o.most), minutes(o.warning), lines_of("#BSUB ", o.extra)) +
           // -Q: LSF puts the job into its queue again.
           body(o, "TERM USR2", "exit 85\n");
}

// Condor's macros begin with a dollar sign, wherever they stand.
std::string without_macros(const std::string& word) {
    std::string text;
    for (char c : word) text += c == '$' ? std::string("$(DOLLAR)") : std::string(1, c);
    return text;
}

// Words within a pair of double quotes: blanks within single quotes, and both quotes doubled.
std::string condor_word(const std::string& word) {
    // Is replaced when a machine has been found, after all that would keep it from that has been taken away.
    if (word.find("$$(") != std::string::npos)
        throw Error(fmt::format("HTCondor replaces $$(…) in '{}': hand it over in a file or by a script "
                                "that runs `fermata run`",
                                visible(word)),
                    ExitCode::usage);
    std::string text;
    for (char c : word) {
        text += c;
        if (c == '\'' || c == '"') text += c;
    }
    bool plain = !word.empty() && text.find_first_of(" '") == std::string::npos;
    return without_macros(plain ? text : fmt::format("'{}'", text));
}

// The checkpoint directory as an entry of transfer_checkpoint_files: a list without quotes, of what lies in
// the job's own directory, under the path that it will have in the next one.
std::string condor_directory(const std::string& directory) {
    auto good = [](unsigned char c) { return std::isalnum(c) || c >= 0x80 || std::strchr("-_.+=@%$/", c); };
    const std::string path = files::absolute_path("/" + directory).substr(1);  // without "." and "//"
    if (path.empty() || directory[0] == '/' || (directory + "/").find("../") != std::string::npos ||
        !std::all_of(path.begin(), path.end(), good))
        throw Error(
            fmt::format("--ckpt-dir {}: HTCondor carries a directory below the job's own, by a path of "
                        "letters, digits and -_.+=@%$/",
                        visible(directory)),
            ExitCode::usage);
    return without_macros(path) +
           (path.find('/') == std::string::npos ? "" : "\npreserve_relative_paths = True");
}

// A line of the submit file that ends where it ends: no backslash and no "@=" has the next ones belong to it.
std::string condor_option(const std::string& option) {
    const size_t equals = option.find('='), last = option.find_last_not_of(' ');
    if ((last != std::string::npos && option[last] == '\\') ||
        (equals != std::string::npos && equals > 0 && option[equals - 1] == '@'))
        throw Error(
            fmt::format("--option {}: HTCondor would take lines behind it for its end", visible(option)),
            ExitCode::usage);
    return option;
}

std::string htcondor(const BatchOptions& o) {
    std::vector<std::string> words = {"fermata",    "run",        "--continue",
                                      "--interval", "auto",       "--max-restarts",
                                      "10",         "--walltime", fmt::format("{}s", whole(o.most))};
    words.insert(words.end(), o.words.begin(), o.words.end());
    std::string arguments;
    for (const std::string& word : words)
        arguments += fmt::format("{}{}", arguments.empty() ? "" : " ", condor_word(word));
    std::vector<std::string> extra;
    for (const std::string& option : o.extra) extra.push_back(condor_option(option));
    return fmt::format(
        R"sh(# Goes on until the program is done: condor_submit THIS_FILE
# 85: its checkpoint is to be kept, and it is started again.
universe = vanilla
executable = /usr/bin/env
transfer_executable = False
arguments = "{}"
request_cpus = {}
checkpoint_exit_code = 85
transfer_checkpoint_files = {}
should_transfer_files = YES
when_to_transfer_output = ON_EXIT_OR_EVICT
kill_sig = SIGTERM
want_graceful_removal = True
job_max_vacate_time = {}
output = {}.out
error = {}.err
log = {}.log
stream_output = False
{}{}queue
)sh",
        arguments, o.ranks, condor_directory(o.ckpt_dir), whole(o.warning), o.name, o.name, o.name,
        o.total > 0 ? fmt::format("periodic_remove = RemoteWallClockTime > {}\n", whole(o.total)) : "",
        lines_of("", extra));
}

// A line's end in a word would begin a line of the script, which the scheduler may read as one of its own.
void refuse_control(const char* what, const std::vector<std::string>& words) {
    for (const std::string& word : words)
        if (std::any_of(word.begin(), word.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }))
            throw Error(
                fmt::format("{} '{}': a job script holds no line ends, tabs and other control characters",
                            what, visible(word)),
                ExitCode::usage);
}

}  // namespace

Scheduler scheduler_named(const std::string& word) {
    std::string names;
    for (auto& [name, scheduler] : kSchedulers) {
        if (word == name) return scheduler;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    }
    throw Error(fmt::format("--scheduler {}: there are {}", visible(word), names), ExitCode::usage);
}

void parse_slot(const std::string& text, BatchOptions& options) {
    size_t dots = text.find("..");
    options.least = parse_duration(text.substr(0, dots), "--slot");
    options.most =
        dots == std::string::npos ? options.least : parse_duration(text.substr(dots + 2), "--slot");
    if (options.least <= 0 || options.most < options.least)
        throw Error(fmt::format("--slot takes a time, or the least and the most of it (2h..48h), not '{}'",
                                visible(text)),
                    ExitCode::usage);
    if (options.least <= 2 * options.warning)
        throw Error(
            fmt::format("--slot: of {} the last {:.0f} s are for the last checkpoint (--warning): nothing "
                        "would be left for the program",
                        visible(text), options.warning),
            ExitCode::usage);
}

std::string batch_script(const BatchOptions& options) {
    refuse_control("--option", options.extra);
    refuse_control("--ckpt-dir", {options.ckpt_dir});
    refuse_control("the word", options.words);
    switch (options.scheduler) {
        case Scheduler::slurm:
            return slurm(options);
        case Scheduler::grid_engine:
            return grid_engine(options);
        case Scheduler::lsf:
            return lsf(options);
        case Scheduler::htcondor:
            return htcondor(options);
    }
    return {};
}

}  // namespace fermata::cli
