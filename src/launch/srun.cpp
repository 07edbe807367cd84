#include "launch/srun.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <string_view>

#include "base/error.h"
#include "launch/launcher_options.h"
#include "launch/programs.h"
#include "launch/slurm.h"

namespace fermata::launch {
namespace {

struct Needs {
    const char* mpi;
    const char* people_say;
    const char* plugin;  // with or without a version behind it, "pmix_v4"
};
// Open MPI 4 and 5 of their packages know PMIx alone, MPICH 4 and 5 and Intel MPI PMI-1 and PMI-2.
constexpr Needs kNeeds[] = {{"openmpi", "Open MPI", "pmix"}, {"mpich", "MPICH", "pmi2"}};

const Needs& needs_of(const std::string& mpi) {
    for (const Needs& needs : kNeeds)
        if (mpi == needs.mpi) return needs;
    fail("no MPI library is called {}", mpi);
}

// The value that the user gives by "--mpi=X" or "--mpi X"; empty: none. The last one counts, as with srun.
std::string value_of(const std::vector<std::string>& words, const std::string& option) {
    std::string value;
    for (size_t at = 0; at < words.size(); ++at) {
        if (words[at].starts_with(option + "=")) value = words[at].substr(option.size() + 1);
        if (words[at] == option && at + 1 < words.size()) value = words[at + 1];
    }
    return value;
}

bool has(const std::vector<std::string>& words, std::initializer_list<std::string_view> any) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
        return std::any_of(any.begin(), any.end(), [&](std::string_view one) {
            return word == one || word.starts_with(std::string(one) + "=");
        });
    });
}

unsigned processors_per_rank(const std::vector<std::string>& words) {
    std::string said;
    for (const char* option : {"-c", "--cpus-per-task"})
        if (std::string value = value_of(words, option); !value.empty()) said = value;
    if (const char* site = std::getenv("SLURM_CPUS_PER_TASK"); said.empty() && site) said = site;
    unsigned number = 1;
    std::from_chars(said.data(), said.data() + said.size(), number);
    return std::max(1u, number);
}

void refuse_what_cannot_be(const std::vector<std::string>& words) {
    if (std::string only = value_of(words, "--export");
        !only.empty() && only.find("ALL") == std::string::npos)
        throw Error(
            fmt::format("--export={} would keep the job's own variables from the ranks: --export=ALL,…",
                        only),
            ExitCode::usage);
}

// All programs of the job as one: each rank finds its own by its number (lower/command.h).
std::vector<std::string> command_of_parts(const LaunchPlan& plan) {
    std::vector<const Part*> parts = {&plan};
    for (const Part& part : plan.more) parts.push_back(&part);
    if (plan.program.empty() || parts.size() == 1) return rank_command(plan, plan);
    const std::vector<std::string> lower = rank_command({}, plan);
    const auto same = static_cast<ptrdiff_t>(lower.size());
    std::string lengths;
    std::vector<std::string> behind;
    for (const Part* part : parts) {
        std::vector<std::string> mine = rank_command(*part, plan);
        lengths +=
            fmt::format("{}{}:{}", lengths.empty() ? "" : ",", part->ranks, mine.end() - mine.begin() - same);
        behind.insert(behind.end(), mine.begin() + same, mine.end());
    }
    std::vector<std::string> words = lower;
    words.insert(words.end(), {"--parts", lengths});
    words.insert(words.end(), behind.begin(), behind.end());
    return words;
}

}  // namespace

std::string plugin_for(const std::string& mpi, const std::vector<std::string>& plugins) {
    std::string wanted = needs_of(mpi).plugin;
    if (std::find(plugins.begin(), plugins.end(), wanted) != plugins.end()) return wanted;
    auto versioned = std::find_if(plugins.begin(), plugins.end(),
                                  [&](const std::string& one) { return one.starts_with(wanted + "_v"); });
    return versioned == plugins.end() ? "" : *versioned;
}

Srun::Srun(LaunchPlan plan, std::optional<TerminalInput> input)
    : LauncherProcess(std::move(plan), std::move(input)), srun_(in_path("srun")) {
    const LaunchPlan& p = this->plan();
    given_ = srun_words(split_words(p.mpiexec_args));
    if (srun_.empty())
        throw Error(
            "--launcher srun: there is no srun in PATH; load Slurm's module, or take --launcher mpiexec",
            ExitCode::usage);
    refuse_what_cannot_be(given_);
    for (const Part& part : p.more)
        if (!part.mpiexec_args.empty())
            throw Error(
                fmt::format("srun starts all programs of a job with the same options: {} stands before "
                            "the first program, or --launcher mpiexec",
                            part.mpiexec_args),
                ExitCode::usage);
    const Needs& needs = needs_of(p.library.mpi);
    std::vector<std::string> plugins = mpi_plugins(srun_);
    std::string asked = value_of(given_, "--mpi");
    plugin_ = asked.empty() ? plugin_for(p.library.mpi, plugins)
              : std::find(plugins.begin(), plugins.end(), asked) == plugins.end() ? ""
                                                                                  : asked;
    if (plugin_.empty())
        throw Error(
            fmt::format("srun has no plugin {}, by which the ranks of {} find each other (srun --mpi=list: "
                        "{}): --launcher mpiexec starts them without",
                        asked.empty() ? needs.plugin : asked, needs.people_say,
                        plugins.empty() ? "none" : fmt::format("{}", fmt::join(plugins, ", "))),
            ExitCode::usage);
    avoid_ = silent_nodes(srun_, p.suspects);
    for (std::string& spare : spare_nodes(avoid_, p.spares)) avoid_.push_back(std::move(spare));
    // Without this, srun would say it only among its other lines.
    std::map<std::string, unsigned> nodes = nodes_left(avoid_);
    unsigned room = 0;
    for (auto& [name, processors] : nodes) room += processors;
    const auto ranks = static_cast<unsigned>(std::max(0, p.all_ranks()));
    if (nodes.empty() && !avoid_.empty() && !nodes_left({}).empty())
        fail("no node of the allocation is left: {} cannot be used any more", fmt::join(avoid_, ", "));
    bool too_many = !nodes.empty() && ranks * processors_per_rank(given_) > room;
    crowded_ = has(given_, {"-O", "--overcommit", "-s", "--oversubscribe"});
    if (too_many && !crowded_)
        fail("{} ranks do not fit on the {} processors of {}: --oversubscribe lets them share", ranks, room,
             nodes.size() == 1 ? nodes.begin()->first : fmt::format("{} nodes", nodes.size()));
}

CommandLine Srun::command_line() const {
    const LaunchPlan& p = plan();
    CommandLine line{srun_, {"srun"}, {}, {}};
    std::vector<std::string>& words = line.words;
    // Another count of nodes than the allocation had is no mistake then.
    if (!avoid_.empty() || p.again)
        line.unset = {"SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_NTASKS_PER_NODE"};
    // --wait: the site may have set a time after which the first rank that ends takes the others with it. A
    // single SIGINT would only make srun write a page.
    words.insert(words.end(),
                 {"--mpi=" + plugin_, "--no-kill", "--kill-on-bad-exit=0", "--wait=0", "--quit-on-interrupt",
                  "--quiet", "--export=ALL", p.no_input ? "--input=none" : "--input=0"});
    // A step that cannot be ended, of an earlier life, keeps its processors; so does the step that this
    // process is in.
    if (p.again || std::getenv("SLURM_STEP_ID")) words.push_back("--overlap");
    if (!avoid_.empty()) words.push_back(fmt::format("--exclude={}", fmt::join(avoid_, ",")));
    if (crowded_) words.push_back("--overcommit");
    if (int ranks = p.all_ranks(); ranks > 0) words.insert(words.end(), {"-n", std::to_string(ranks)});
    for (size_t at = 0; at < given_.size(); ++at) {
        if (given_[at] == "--mpi") ++at;
        if (given_[at] != "--oversubscribe" && given_[at] != "-s" && !given_[at].starts_with("--mpi="))
            words.push_back(given_[at]);
    }
    std::vector<std::string> command = command_of_parts(p);
    words.insert(words.end(), command.begin(), command.end());
    return line;
}

// srun's own way to say it is N jobs of one rank, each complete.
std::string Srun::why_alone() const {
    const Needs& needs = needs_of(plan().library.mpi);
    return fmt::format("{} did not find the other ranks by srun --mpi={}{}", needs.people_say, plugin_,
                       plugin_.starts_with(needs.plugin) ? ": was this library built without it?"
                                                         : fmt::format(": it needs --mpi={}", needs.plugin));
}

}  // namespace fermata::launch
