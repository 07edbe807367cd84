#include "launch/own/own.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "launch/launcher_options.h"
#include "launch/launcher_process.h"
#include "launch/own/usable.h"
#include "launch/programs.h"
#include "launch/rank_environment.h"
#include "launch/slurm.h"
#include "pmi/fence_on_wire.h"

namespace fermata::launch::own {
namespace {

constexpr int64_t kTermMs = 1000;  // from SIGTERM to SIGKILL, as Open MPI has it
constexpr uint64_t kOutputOfAll = 64u << 20, kLeastOutput = 65536, kMostOutput = 1u << 20;

const char* variable(const char* name) {
    const char* value = std::getenv(name);
    return value && *value ? value : nullptr;
}

int code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

// "" = it ended as programs do.
std::string why_failed(const wire::RankEnded& said) {
    if (WIFSIGNALED(said.status))
        return fmt::format("was killed by signal {} ({})", WTERMSIG(said.status),
                           ::strsignal(WTERMSIG(said.status)));
    int code = WEXITSTATUS(said.status);
    if (said.stage == wire::RankEnd::running)
        return fmt::format("ended with exit code {} without MPI_Finalize", code);
    if (said.stage == wire::RankEnd::silent && code != 0) return fmt::format("ended with exit code {}", code);
    if (said.stage == wire::RankEnd::failed) return "could not go on";
    return "";
}

}  // namespace

Own::Own(LaunchPlan plan, std::optional<TerminalInput> input)
    : plan_(std::move(plan)),
      library_(plan_.library),
      starters_(plan_),
      feed_(std::move(input), plan_.no_input) {
    parts_.push_back(plan_);
    parts_.insert(parts_.end(), plan_.more.begin(), plan_.more.end());
    for (const Part& part : parts_) words_.push_back(understand(split_words(part.mpiexec_args)));
    wishes_.ranks = static_cast<uint32_t>(plan_.all_ranks());
    for (const Words& words : words_) wishes_.oversubscribe = wishes_.oversubscribe || words.oversubscribe;
    wishes_.per_node = words_[0].per_node;
    wishes_.by_node = words_[0].by_node.value_or(false);
    choose_hosts();
}

void Own::choose_hosts() {
    const Words& words = words_[0];
    for (const Words& other : words_)
        if (&other != &words && (!other.hosts.empty() || !other.hostfile.empty()))
            throw Error("hosts are said once, before the first program", ExitCode::usage);
    if (!words.hosts.empty()) {
        wishes_.hosts = hosts_in_list(words.hosts);
    } else if (!words.hostfile.empty()) {
        Fd file = open_file(words.hostfile, O_RDONLY | O_CLOEXEC);
        wishes_.hosts = hosts_in_file(read_rest(file.get(), words.hostfile, 16u << 20), words.hostfile);
    } else if (variable("SLURM_JOB_ID") && variable("SLURM_JOB_NODELIST")) {
        in_allocation_ = true;
        const char* tasks = variable("SLURM_TASKS_PER_NODE");
        if (!tasks) tasks = variable("SLURM_JOB_CPUS_PER_NODE");
        if (!tasks) fail("Slurm does not say how many tasks fit on a node (SLURM_TASKS_PER_NODE)");
        const std::vector<uint32_t> counts = slurm_counts(tasks);
        const std::vector<std::string> names = hosts_in(variable("SLURM_JOB_NODELIST"));
        named_ = names.size() == counts.size();
        for (size_t node = 0; node < counts.size(); ++node)
            wishes_.hosts.push_back(
                {named_ ? names[node] : fmt::format("node {} of the allocation", node), counts[node], true});
    } else {
        wishes_.hosts = {{"localhost", 0, false}};
    }
    leave_out();
}

// Leaves out hosts that an earlier life has lost, and those that are kept for later ones.
void Own::leave_out() {
    std::vector<std::string> silent;
    if (!plan_.suspects.empty() && (!in_allocation_ || named_)) {
        std::vector<std::string> asked = to_be_asked(wishes_.hosts, plan_.suspects);
        silent = in_allocation_ ? silent_nodes(in_path("srun"), asked) : silent_hosts(asked);
    }
    if (plan_.spares > 0 && in_allocation_ && !named_)
        fail("--spares: Slurm does not name the nodes of this allocation (SLURM_JOB_NODELIST)");
    fewer_ = !silent.empty() || plan_.spares > 0;
    if (!silent.empty()) say(fmt::format("going on without {}: no answer in time", fmt::join(silent, ", ")));
    wishes_.hosts = usable(std::move(wishes_.hosts), silent, plan_.spares);
}

std::vector<std::string> Own::unreached() const {
    std::vector<std::string> names;
    for (size_t node = 0; node < nodes_.size() && !launched_; ++node)
        if (nodes_[node].needed && nodes_[node].daemon < 0) names.push_back(nodes_[node].name);
    return names;
}

void Own::start() {
    warn_of_unused_variables();
    for (const Host& host : wishes_.hosts) nodes_.push_back({host.name});
    bool known = std::all_of(wishes_.hosts.begin(), wishes_.hosts.end(), [](auto& h) { return h.slots > 0; });
    if (known) place_ranks();
    start_daemons();
}

void Own::start_daemons() {
    if (in_allocation_) {
        std::vector<std::string> names;
        for (const Node& node : nodes_)
            if (fewer_) names.push_back(node.name);
        return starters_.by_srun(static_cast<uint32_t>(nodes_.size()), names);
    }
    std::vector<uint32_t> others;
    for (uint32_t node = 0; node < nodes_.size(); ++node) {
        if (!nodes_[node].needed) continue;
        if (is_here(nodes_[node].name))
            starters_.here(node);
        else
            others.push_back(node);
    }
    fan_ = Fan(std::move(others), daemons_->width());
    for (uint32_t node : fan_.by_root()) starters_.by_ssh(node, nodes_[node].name);
}

// A daemon that has come starts those below it.
void Own::start_below(uint32_t node) {
    std::vector<wire::HostToStart> hosts;
    for (uint32_t below : fan_.by(node)) hosts.push_back({below, nodes_[below].name});
    if (!hosts.empty()) to_node_of(node, starters_.order(std::move(hosts)));
}

// Its host may be reached from here: what is said by the one that ends the job is the root's own.
void Own::not_started(const wire::NotStarted& said) {
    if (said.node >= nodes_.size() || nodes_[said.node].daemon >= 0 || launched_ || ending_) return;
    spdlog::warn("{} is started from here: {}", nodes_[said.node].name, said.why);
    starters_.by_ssh(said.node, nodes_[said.node].name);
}

void Own::place_ranks() {
    placement_ = place(wishes_);
    for (uint32_t node = 0; node < nodes_.size(); ++node) {
        uint32_t ranks = 0;
        for (const RankRange& range : placement_->ranks_on(node)) ranks += range.count();
        nodes_[node].ranks = nodes_[node].running = ranks;
        nodes_[node].needed = in_allocation_ || ranks > 0;
    }
}

// ---- the daemons come

bool Own::heard(const wire::Message& message) {
    if (auto* said = std::get_if<wire::Ready>(&message)) {
        ready(*said);
    } else if (auto* unstarted = std::get_if<wire::NotStarted>(&message)) {
        not_started(*unstarted);
    } else if (auto* output = std::get_if<wire::Output>(&message)) {
        (output->error ? error_ : output_).add(output->node, output->text);
    } else if (auto* fence = std::get_if<wire::Fence>(&message)) {
        this->fence(*fence);
    } else if (auto* ask = std::get_if<wire::AskRank>(&message)) {
        if (auto rank = Rank::among(ask->rank, placement_ ? placement_->ranks() : 0))
            to_node_of(placement_->node_of(*rank), message);
    } else if (auto* answer = std::get_if<wire::RankAnswer>(&message)) {
        to_node_of(answer->to, message);
    } else if (auto* ended = std::get_if<wire::RankEnded>(&message)) {
        rank_ended(*ended);
    } else if (auto* taken = std::get_if<wire::InputTaken>(&message)) {
        feed_.taken(taken->bytes, taken->closed);
    } else if (auto* aborted = std::get_if<wire::Aborted>(&message)) {
        cause_.aborted(aborted->rank,
                       {aborted->code, fmt::format("rank {} on {} called MPI_Abort with {}", aborted->rank,
                                                   aborted->host, aborted->code)},
                       monotonic_ms());
    } else {
        return false;
    }
    return true;
}

void Own::ready(const wire::Ready& said) {
    if (said.node >= nodes_.size() || nodes_[said.node].daemon >= 0 || launched_) {
        say(fmt::format("a node daemon too many has come, from {}", said.host));
        return;
    }
    Node& node = nodes_[said.node];
    node.daemon = said.daemon;
    start_below(said.node);
    node.name = said.host;
    if (wishes_.hosts[said.node].slots == 0) wishes_.hosts[said.node].slots = std::max(said.cores, 1u);
    if (std::all_of(nodes_.begin(), nodes_.end(), [](auto& n) { return n.daemon >= 0 || !n.needed; }))
        launch();
}

std::string Own::missing() const {
    std::string names;
    size_t count = 0;
    for (const Node& node : nodes_)
        if (node.needed && node.daemon < 0 && ++count <= 20) names += (names.empty() ? "" : ", ") + node.name;
    if (count == 0 || launched_) return {};
    return fmt::format("no node daemon has come from {}{}", names,
                       count > 20 ? fmt::format(" and {} more", count - 20) : "");
}

void Own::launch() {
    if (!placement_) place_ranks();
    launched_ = true;
    if (ending_) return;
    expect_world(0);
    wire::Launch launch;
    launch.mpi = plan_.library.mpi;
    launch.world = "fermata-" + plan_.environment.at("FERMATA_JOB_ID");
    launch.blocks = blocks_on_wire();
    uint32_t left = placement_->ranks();
    for (size_t i = 0; i < parts_.size(); ++i) {
        uint32_t ranks = parts_.size() == 1 ? left : static_cast<uint32_t>(parts_[i].ranks);
        launch.parts.push_back(part_on_wire(parts_[i], words_[i], ranks));
    }
    for (const Node& node : nodes_) launch.hosts.push_back(node.name);
    launch.universe = std::max(sum_of_slots(wishes_.hosts), placement_->ranks());
    launch.bind = words_[0].bind != Bind::none;
    launch.window = std::clamp(kOutputOfAll / nodes_.size(), kLeastOutput, kMostOutput);
    for (const Node& node : nodes_)
        if (node.daemon >= 0) daemons_->expect(node.daemon, placement_->ranks());
    daemons_->broadcast(launch);
    if (!stands_by_) feed_.begin();
}

void Own::take_up(std::optional<TerminalInput> input) {
    stands_by_ = false;
    feed_ = Feed(std::move(input), plan_.no_input);
    if (launched_) feed_.begin();
}

wire::LaunchPart Own::part_on_wire(const Part& part, const Words& words, uint32_t ranks) const {
    wire::LaunchPart said;
    said.ranks = ranks;
    said.words = rank_command(part, plan_);
    said.directory = std::filesystem::absolute(words.directory.empty() ? "." : words.directory).string();
    said.environment = words.for_all;
    for (const Words& other : words_)
        said.environment.insert(said.environment.end(), other.for_all.begin(), other.for_all.end());
    said.environment.insert(said.environment.end(), words.environment.begin(), words.environment.end());
    return said;
}

// ---- what ranks exchange while they start

void Own::expect_world(uint32_t world) {
    fences_.try_emplace(world, pmi::FenceMerge::Level::root, world, placement_->ranks());
}

wire::Renew Own::renew(uint32_t world) {
    expect_world(world);
    wire::Renew order = library_.order(world);
    if (moved_) order.blocks = blocks_on_wire();
    return order;
}

std::vector<wire::LaunchBlock> Own::blocks_on_wire() const {
    std::vector<wire::LaunchBlock> blocks;
    for (const pmi::Block& block : placement_->blocks())
        blocks.push_back({block.first_node, block.nodes, block.ranks_per_node});
    return blocks;
}

void Own::rank_moved(Rank rank, int daemon) {
    auto to =
        std::find_if(nodes_.begin(), nodes_.end(), [daemon](auto& node) { return node.daemon == daemon; });
    if (to == nodes_.end() || !placement_)
        fail("rank {} moves to a node that no launcher knows", rank.number());
    Node& from = nodes_.at(placement_->node_of(rank));
    --from.ranks;
    if (from.running > 0) --from.running;
    ++to->ranks;
    ++to->running;
    placement_ = placement_->moved(rank, static_cast<uint32_t>(to - nodes_.begin()));
    moved_ = true;
}

// Nobody is left in the worlds before.
void Own::renewed() {
    library_.taken();
    fences_.erase(fences_.begin(), std::prev(fences_.end()));
}

void Own::fence(const wire::Fence& part) {
    if (fences_.empty()) return;
    // A part of no world is of none that the newest knows: it says so.
    auto known = fences_.find(part.epoch);
    auto whole =
        (known != fences_.end() ? known : std::prev(fences_.end()))->second.add(pmi::from_wire(part));
    if (!whole) return;
    daemons_->broadcast(pmi::on_wire(*whole));
}

void Own::to_node_of(uint32_t node, const wire::Message& message) {
    if (node < nodes_.size() && nodes_[node].daemon >= 0) daemons_->send(nodes_[node].daemon, message);
}

// ---- the end

void Own::rank_ended(const wire::RankEnded& said) {
    for (Node& node : nodes_)
        if (node.daemon == said.daemon && node.running > 0) --node.running;
    if (int code = code_of(said.status); code != 0 && !failed_ && said.stage == wire::RankEnd::finalized)
        failed_ = code;
    std::string why = why_failed(said);
    std::string line = fmt::format("rank {} on {} (pid {}) {}", said.rank, said.host, said.pid,
                                   why.empty() ? "has ended" : why);
    int code = code_of(said.status);
    if (!why.empty() && !cause_.is_news(said.rank)) return;
    if (!why.empty()) return failed(code != 0 ? code : 1, line);
    if (auto rank = Rank::of(said.rank)) out_of_fences(*rank, line);
}

// Nobody waits for it in a fence any more. (Where a rank has died, all are ended.)
void Own::out_of_fences(Rank rank, const std::string& line) {
    for (auto& [world, fences] : fences_)
        for (const pmi::Fence& fence : fences.lost(rank, line)) daemons_->broadcast(pmi::on_wire(fence));
}

void Own::failed(int code, const std::string& line) {
    cause_.told();
    if (!failed_) failed_ = code;
    if (!ending_) daemons_->rank_died(line);
}

void Own::lost(int daemon) {
    for (Node& node : nodes_) {
        if (node.daemon != daemon || node.lost) continue;
        node.lost = true;
        if (node.running == 0 || !launched_) continue;  // no rank was there: the root says what is lost
        node.running = 0;
        const std::string line =
            fmt::format("the node daemon of {} is gone, and its ranks with it", node.name);
        failed(128 + SIGKILL, line);
    }
}

std::optional<int> Own::ended() {
    if (over_) return failed_.value_or(0);
    if (auto why = starters_.failure(); why && !launched_ && !ending_) {
        say("error: " + *why + " before the ranks were started");
        failed_ = 1;
        over_ = true;
    }
    bool none_runs = std::all_of(nodes_.begin(), nodes_.end(), [](auto& node) { return node.running == 0; });
    if (auto abort = cause_.due(monotonic_ms(), none_runs)) failed(abort->code, abort->line);
    if (launched_ ? none_runs && output_.empty() && error_.empty() : ending_) over_ = true;
    if (!over_) return std::nullopt;
    if (!launched_ && !failed_) failed_ = 128 + SIGTERM;
    return failed_.value_or(0);
}

void Own::ask_to_end() {
    if (std::exchange(ending_, true) || !launched_) return;
    daemons_->broadcast(wire::Signal{SIGCONT, true});
    daemons_->broadcast(wire::Signal{SIGTERM, true});
    kill_at_ = monotonic_ms() + kTermMs;
}

void Own::kill() {
    ending_ = over_ = true;
    if (launched_) daemons_->broadcast(wire::Signal{SIGKILL, true});
    output_.drop();
    error_.drop();
}

// Ctrl-Z and its end come to the ranks as wire::Stand.
void Own::hand_on(int signal, bool to_all) {
    if (signal == SIGTSTP || signal == SIGCONT || signal == SIGWINCH) return;
    if (launched_) daemons_->broadcast(wire::Signal{signal, to_all});
    if (signal != SIGINT && signal != SIGHUP && signal != SIGQUIT) return;
    ending_ = true;
    kill_at_ = monotonic_ms() + kTermMs;
}

// ---- one turn

void Own::add_to(std::vector<pollfd>& fds) {
    output_.add_to(fds);
    error_.add_to(fds);
    feed_.add_to(fds);
}

void Own::serve(const std::vector<pollfd>& fds, size_t first) {
    output_.serve(fds[first].revents);
    error_.serve(fds[first + 1].revents);
    hand_out(output_);
    hand_out(error_);
    if (auto piece = feed_.serve(fds, first + 2); piece && placement_) {
        uint32_t node = placement_->node_of(Rank(0));
        to_node_of(node, wire::Input{node, piece->text, piece->end});
    }
    if (kill_at_ != 0 && monotonic_ms() > kill_at_) {
        kill_at_ = 0;
        daemons_->broadcast(wire::Signal{SIGKILL, true});
    }
}

void Own::hand_out(Outlet& outlet) {
    for (const Outlet::Written& written : outlet.written())
        to_node_of(written.node, wire::OutputTaken{written.node, written.bytes});
}

}  // namespace fermata::launch::own
