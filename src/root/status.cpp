// `fermata status`: what the job does, and who waits where.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/fd.h"
#include "root/control/json.h"
#include "root/root.h"

namespace fermata::root {

using nlohmann::json;

namespace {

// In order, and not all of a very large job: it would be megabytes, for a person or a script that wants to
// know how the job is.
json ranks_json(const tree::Roster& roster, const std::map<int, tree::NodeInfo>& nodes) {
    struct Rank {
        int32_t number, pid;
        const std::string* host;
    };
    std::vector<Rank> all;
    for (auto& [id, place] : roster.places()) {
        auto node = nodes.find(id);
        if (node == nodes.end()) continue;
        auto pid_of = place.pids.begin();
        place.ranks.each([&all, &pid_of, node](int32_t rank) {
            int32_t pid = *pid_of++;
            if (static_cast<size_t>(rank) < kMostListed) all.push_back({rank, pid, &node->second.host});
        });
    }
    std::sort(all.begin(), all.end(), [](const Rank& a, const Rank& b) { return a.number < b.number; });
    json ranks = json::array();
    for (const Rank& rank : all)
        ranks.push_back({{"rank", rank.number}, {"pid", rank.pid}, {"host", *rank.host}});
    return ranks;
}

// Counts what has gone through the root's connections to daemons right below it, since it began.
json tree_json(const tree::Tree& tree) {
    const tree::Traffic all = tree.traffic();
    return {{"children", tree.children()},
            {"messages_in", all.messages_in},
            {"messages_out", all.messages_out},
            {"bytes_in", all.bytes_in},
            {"bytes_out", all.bytes_out}};
}

}  // namespace

void Root::start_query() {
    if (inquiry_.going_on()) return;
    inquiry_.begin();
    tree_.broadcast(wire::Query{});
}

// Asks who waits where, and serves until the ranks have answered, or their time is over.
std::string Root::diagnose() {
    std::string protocol;
    for (int child : checkpoint_.children_not_safe())
        if (auto node = tree_.nodes().find(child); node != tree_.nodes().end())
            protocol += fmt::format("ranks on {} have not reached the safe state\n", node->second.host);
    start_query();
    while (!query_done() && !launcher_end_) serve(50);
    inquiry_.end();
    std::string text = inquiry_.text() + protocol;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

const char* Root::state() const {
    if (signals_seen_.suspended) return "suspended";
    if (checkpoint_.in_progress() && running_) return "checkpointing";
    if (finalize_released_) return "finishing";
    if (losses_.any()) return "broken";
    return running_ ? "running" : "starting";
}

std::string Root::status_json() {
    const std::string state = this->state();
    const bool starting = !running_ && !finalize_released_;
    json nodes = json::array();
    for (auto& [id, node] : tree_.nodes()) nodes.push_back({{"host", node.host}, {"ranks", node.ranks}});
    json ranks = ranks_json(start_.roster(), tree_.nodes());
    json behind;
    if (auto phase = start_.furthest_behind(); phase && starting)
        behind = {{"phase", wire::name_of(phase->phase)},
                  {"rank", phase->rank},
                  {"there", phase->there},
                  {"ranks", phase->ranks}};
    json last;
    if (const Outcome& newest = ended_.newest; !newest.line.empty())
        last = {{"ok", newest.ok}, {"generation", newest.generation.name()}, {"line", newest.line}};
    std::string phase = !checkpoint_.phase().empty() ? checkpoint_.phase()
                        : state == "starting"        ? start_.phase()
                                                     : state;
    return dump({{"done", true},
                 {"code", 0},
                 {"job", settings_.job},
                 {"job_number", fmt::format("{:016x}", settings_.job_number)},
                 {"pid", ::getpid()},
                 {"state", state},
                 {"phase", phase},
                 {"behind", behind},
                 {"size", start_.roster().size()},
                 {"expected", settings_.expected_ranks},
                 {"missing", starting ? start_.who_is_missing() : ""},
                 {"ranks", ranks},
                 {"nodes", nodes},
                 {"tree", tree_json(tree_)},
                 {"mpi", start_.mpi()},
                 {"mpi_version", start_.mpi_version()},
                 {"protocol", settings_.protocol},
                 {"ckpt_dir", settings_.ckpt_dir},
                 {"ckpt_dir_file", file_id(settings_.ckpt_dir)},
                 {"command", store::whole_command(settings_.command, settings_.segments)},
                 {"seconds", static_cast<double>(tree::now_ms() - started_) / 1000},
                 {"checkpoints", checkpoint_.count()},
                 {"restored", settings_.restored.name()},
                 {"trouble", losses_.why()},
                 {"schedule", schedule_json()},
                 {"memory", keeper_.status()},
                 {"own_state", own_state_.used() ? json(own_state_.what()) : json()},
                 {"replicas", copies_json()},
                 {"restarts", settings_.restarts},
                 {"standby", beside_ ? beside_->state() : ""},
                 {"last", last},
                 {"diagnosis", inquiry_.going_on() ? inquiry_.text() : ""},
                 {"diagnosed", inquiry_.going_on() && inquiry_.complete(tree_.nodes().size())}});
}

// When the next checkpoints come by themselves, and from what that follows.
json Root::schedule_json() const {
    json all = json::object();
    const int64_t now = tree::now_ms();
    if (settings_.interval != 0) {
        json interval = {{"seconds", schedule_.interval()}, {"auto", settings_.interval < 0}};
        if (settings_.interval < 0) {
            interval["mtbf"] = settings_.mtbf;
            if (auto cost = schedule_.forecast().cost()) interval["cost"] = *cost;
        }
        all["interval"] = interval;
    }
    if (int64_t end = schedule_.end_of_walltime(); end > 0) {
        json walltime = {{"ends_in", static_cast<double>(end - now) / 1000},
                         {"last_in", static_cast<double>(schedule_.stop_due() - now) / 1000},
                         {"by", settings_.left_in_slot ? "slurm" : "option"}};
        if (auto next = schedule_.forecast().next()) {
            walltime["predicted"] = next->seconds;
            walltime["margin"] = next->margin;
            walltime["bytes"] = next->bytes;
            walltime["bandwidth"] = next->bandwidth;
        }
        all["walltime"] = walltime;
    }
    return all;
}

void Root::give_status() {
    std::string json = status_json();
    inquiry_.end();
    for (int client : std::exchange(status_clients_, {})) {
        control_.say(client, json);
        control_.finish(client);
    }
}

}  // namespace fermata::root
