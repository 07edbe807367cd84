#include "launch/mpiexec.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/fd.h"
#include "launch/launcher_options.h"
#include "launch/library_at.h"

namespace fermata::launch {
namespace {

// Open MPI counts cores, not hardware threads, as slots.
int cores() {
    std::set<std::string> seen;
    for (int cpu = 0; cpu < 4096; ++cpu) {
        std::string path = fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu);
        if (::access(path.c_str(), R_OK) != 0) continue;
        try {
            seen.insert(read_file(path));
        } catch (const Error&) {
        }
    }
    cpu_set_t mine;
    int allowed = ::sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 1;
    return seen.empty() ? allowed : std::min<int>(static_cast<int>(seen.size()), allowed);
}

// Another authority than the local machine says how many ranks fit.
bool slots_are_given(const std::vector<std::string>& args) {
    for (const char* name : {"SLURM_JOB_ID", "PBS_NODEFILE", "LSB_JOBID", "PE_HOSTFILE"})
        if (std::getenv(name)) return true;
    for (const std::string& arg : args)
        for (const char* word : {"host", "--map-by", "-map-by", "rankfile", "oversubscribe"})
            if (arg.find(word) != std::string::npos) return true;
    return false;
}

// One program's words, and those that every rank needs.
void add_part(std::vector<std::string>& words, const Part& part, const LaunchPlan& plan) {
    const LauncherKind& kind = kind_of(plan.library.mpi);
    if (part.ranks > 0) {
        words.push_back("-n");
        words.push_back(std::to_string(part.ranks));
    }
    std::vector<std::string> given = split_words(part.mpiexec_args);
    words.insert(words.end(), given.begin(), given.end());
    // By name only: the values stand in the environment, where other users cannot read them.
    if (kind.export_option)
        for (auto& [name, value] : plan.environment) {
            words.push_back(kind.export_option);
            words.push_back(name);
        }
    std::vector<std::string> rank = rank_command(part, plan);
    words.insert(words.end(), rank.begin(), rank.end());
}

}  // namespace

std::vector<std::string> command_of(const LaunchPlan& plan) {
    const LauncherKind& kind = kind_of(plan.library.mpi);
    std::vector<std::string> words = {plan.library.mpiexec};
    // Open MPI 5's does not ask the variables that Open MPI 4's does.
    if (kind.as_root && !plan.library.root.empty() && ::geteuid() == 0) words.push_back(kind.as_root);
    bool given = slots_are_given(split_words(plan.mpiexec_args));
    for (const Part& part : plan.more) given = given || slots_are_given(split_words(part.mpiexec_args));
    if (kind.oversubscribe && plan.all_ranks() > cores() && !given) words.push_back(kind.oversubscribe);
    add_part(words, plan, plan);
    for (const Part& part : plan.more) {
        words.push_back(":");
        add_part(words, part, plan);
    }
    return words;
}

CommandLine Mpiexec::command_line() const {
    const std::string& mpiexec = plan().library.mpiexec;
    CommandLine command{mpiexec, command_of(plan()), {}, {}};
    // A library that a module would have put into LD_LIBRARY_PATH, too, and that only so finds its parts.
    if (!plan().library.root.empty() && !says_its_version(plan().library))
        command.libraries = place_of(plan().library).folder;
    // Open MPI takes a launcher that is named by its path for --prefix: it would put folders of its own in
    // front of the ranks' PATH and LD_LIBRARY_PATH. Hydra looks for its other half beside itself, by that
    // path.
    if (plan().library.mpi == "openmpi") command.words[0] = mpiexec.substr(mpiexec.rfind('/') + 1);
    return command;
}

}  // namespace fermata::launch
