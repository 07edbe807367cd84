#include "root/start/start.h"

#include <fmt/core.h>

#include <algorithm>

#include "tree/channel.h"

namespace fermata::root {
namespace {

constexpr int64_t kLauncherMs = 2000;  // from the loss of a node daemon to the launcher's end

}  // namespace

// The ranks' own phases are of a restart: the first one that not every rank has left.
template <wire::RestartPhase phase>
bool Start::all_beyond(const Start& start) {
    auto behind = start.furthest_behind();
    return behind && behind->phase > phase;
}

const Start::Phase Start::kFirst[] = {
    {"launcher", [](const Start& start) { return !start.tree_.nodes().empty(); }},
    {"ranks", [](const Start& start) { return start.roster_.complete(); }},
};

const Start::Phase Start::kAgain[] = {
    {"launcher", [](const Start& start) { return !start.tree_.nodes().empty(); }},
    {"ranks", [](const Start& start) { return start.furthest_behind().has_value(); }},
    {"load", all_beyond<wire::RestartPhase::load>},
    {"adopt", all_beyond<wire::RestartPhase::adopt>},
    {"threads", all_beyond<wire::RestartPhase::threads>},
    {"process", all_beyond<wire::RestartPhase::process>},
    {"rebuild", all_beyond<wire::RestartPhase::rebuild>},
};

const char* Start::phase() const {
    auto first_not_over = [this](const auto& phases) {
        for (const Phase& phase : phases)
            if (!phase.over(*this)) return phase.name;
        return "go";
    };
    return restored_ ? first_not_over(kAgain) : first_not_over(kFirst);
}

bool Start::complete() const {
    return restored_ ? ranks() > 0 && tally_.answers().restored.ranks == ranks() : roster_.complete();
}

std::optional<wire::Phase> Start::furthest_behind() const {
    auto behind = tally_.furthest_behind();
    auto all = static_cast<uint32_t>(std::max(roster_.size(), expected_));
    return behind && behind->ranks >= all ? behind : std::nullopt;
}

std::string Start::joined(int node, const wire::Group& group) {
    bool first = roster_.size() == 0;
    if (std::string why = roster_.join(node, group); !why.empty()) return why;
    if (first) {
        mpi_ = group.mpi;
        mpi_version_ = group.mpi_version;
        if (expected_ > 0 && restored_ && roster_.size() != expected_)
            return fmt::format("generation {} has {} ranks, but mpiexec started {}", restored_.name(),
                               expected_, roster_.size());
    }
    auto ranks = tree::Ranks::of(group.ranks);
    for (auto starter = starters_.begin(); starter != starters_.end();) {
        if (!ranks->contains(starter->first)) {
            ++starter;
            continue;
        }
        // The same process has become the program (exec): nothing is left that waits for it.
        if (starter->second.pid != group.pids[ranks->place_of(starter->first)])
            waiting_starter_ = starter->second.program;
        starter = starters_.erase(starter);
        starters_since_ = tree::now_ms();
    }
    return {};
}

void Start::moved(const wire::Moved& said) {
    roster_.moved(said.rank, said.pid);
    mpi_ = said.mpi;
    mpi_version_ = said.mpi_version;
}

void Start::in_starter(const wire::InStarter& said, int64_t now) {
    starters_[said.rank] = {said.pid, said.program};
    starters_since_ = now;
}

void Start::daemon_gone(const std::string& line, int64_t now) {
    if (!gone_.empty()) return;
    gone_ = line;
    gone_at_ = now;
}

std::string Start::given_up(int64_t now) const { return now - gone_at_ > kLauncherMs ? gone_ : ""; }

std::string Start::who_is_missing() const {
    if (!starters_.empty()) return who_is_in_a_starter();
    if (auto behind = furthest_behind()) {
        std::string who = behind->there > 1
                              ? fmt::format("{} and {} more are", behind->rank, behind->there - 1)
                              : fmt::format("{} is", behind->rank);
        return fmt::format("of {} ranks, rank {} in phase {}", behind->ranks, who,
                           wire::name_of(behind->phase));
    }
    if (roster_.size() == 0)
        return expected_ > 0 ? fmt::format("none of {} ranks has reported", expected_)
                             : "no rank has reported";
    if (roster_.complete())
        return fmt::format("{} of {} ranks have loaded their image", tally_.answers().restored.ranks,
                           roster_.size());
    return fmt::format("{} of {} ranks have not reported: {}", roster_.size() - roster_.here(),
                       roster_.size(), roster_.missing(200));
}

std::string Start::who_is_in_a_starter() const {
    auto& [rank, starter] = *starters_.begin();
    std::string who = starters_.size() > 1
                          ? fmt::format("rank {} and {} more are", rank, starters_.size() - 1)
                          : fmt::format("rank {} is", rank);
    return fmt::format("{} started an MPI program yet: {} in {} (pid {})",
                       roster_.size() == 0 ? "no rank has" : "not every rank has", who, starter.program,
                       starter.pid);
}

}  // namespace fermata::root
