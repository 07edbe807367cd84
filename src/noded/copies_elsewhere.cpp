// Copies that are on other nodes than their ranks: a rank that dies here and goes on there, and the other way
// round.
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/environment.h"
#include "base/error.h"
#include "base/log.h"
#include "noded/ranks.h"
#include "tree/channel.h"

namespace fermata::noded {
namespace {

constexpr int64_t kStreamMs = 2000;  // for the rest of the stream to leave, after the rank's end

// More than any life of the rank has had: what a front keeps of a library is the library's by this number.
uint32_t restarts_of(const std::vector<std::string>& environment, uint32_t world) {
    const std::string before = value_in(environment, "FERMATA_RESTARTS");
    return static_cast<uint32_t>(std::strtoul(before.c_str(), nullptr, 10)) + world;
}

// Over what there is of that name.
void set_in(std::vector<std::string>& environment, const std::string& word) {
    const std::string name = word.substr(0, word.find('=') + 1);
    std::erase_if(environment, [&](const std::string& one) { return one.starts_with(name); });
    environment.push_back(word);
}

}  // namespace

Ranks::Started* Ranks::here(Rank who) const {
    for (auto& rank : ranks_)
        if (rank->rank == who) return rank.get();
    return nullptr;
}

// Its number among the ranks of this node.
size_t Ranks::ranks_before(Rank who) const {
    return static_cast<size_t>(
        std::count_if(ranks_.begin(), ranks_.end(), [who](auto& rank) { return rank->rank < who; }));
}

bool Ranks::somebody_follows(Rank rank) const {
    return has_copy(rank) || (streams.copy_is_elsewhere && streams.copy_is_elsewhere(rank));
}

// ---- a rank of this node

// As with a copy on this node: a rank that has ended by itself would do so again.
bool Ranks::goes_on_elsewhere(const Started& rank, int status) const {
    return WIFSIGNALED(status) && !nobody_hears_ && !copies_end_ && streams.copy_is_elsewhere &&
           streams.copy_is_elsewhere(rank.rank);
}

// Once everything of theirs is on its way: nothing of them is waited for here afterwards.
void Ranks::tell_who_left() {
    const int64_t now = tree::now_ms();
    std::erase_if(ranks_, [&](auto& rank) {
        if (!rank->leaves) return false;
        if (now - rank->ended < kStreamMs && !streams.stream_has_ended(rank->rank)) return false;
        rank->output.forget_what_waits();
        rank->error.forget_what_waits();
        if (!rank->output.over() || !rank->error.over()) return false;
        left(rank->child.pid);
        leader_died(rank->rank, rank->child.pid, *rank->status);
        return true;
    });
}

Ranks::Written Ranks::written_by(Rank rank) {
    Started* one = here(rank);
    return one ? Written{one->output.written(), one->error.written()} : Written();
}

bool Ranks::is_on_its_way(Rank rank, const Written& written) const {
    const Started* one = here(rank);
    return one && one->output.handed_up() >= written.output && one->error.handed_up() >= written.error;
}

void Ranks::stream_begins(Rank rank, const std::shared_ptr<transfer::StreamMemory>& stream) {
    Started* one = here(rank);
    if (!one) return;
    one->output.waits_for(stream);
    one->error.waits_for(stream);
}

// ---- a copy on this node

void Ranks::start_copy(const wire::StartCopy& order, const std::string& directory) {
    const auto rank = Rank::among(order.rank, order.ranks);
    if (!launch_ || !rank || order.ranks != size_of_job()) fail("no copy of rank {} can be here", order.rank);
    if (here(*rank) || remote_copies_.count(*rank) > 0 || arrivals_.count(*rank) > 0)
        fail("rank {} is here already", order.rank);
    pmi::World world;
    world.epoch = order.world;
    world.name = fmt::format("{}-copy-{}-{}", launch_->world, order.rank, order.world);
    world.placement = pmi::Placement::on_one_node(1);
    world.programs = {1};
    world.universe = 1;
    world.cores = 1;
    world.hosts = {place_.name};
    world.check();
    Arrival arrival{order, directory, std::make_unique<PmiEnds>(world, launch_->mpi, place_.directory)};
    PmiEnds& alone = *arrival.world;
    alone.up = [&alone](const wire::Message& message) {
        // A part of a fence of one rank is all of it.
        if (std::holds_alternative<wire::Fence>(message)) alone.from_root(message);
    };
    alone.is_ending = [](Rank) { return false; };
    alone.on_abort = [](const pmi::Abort&) {};
    alone.on_fault = [this, who = *rank](std::optional<Rank>, const std::string& why) {
        spdlog::warn("a copy of rank {}: {}", who.number(), why);
        if (auto copy = remote_copies_.find(who); copy != remote_copies_.end())
            ::syscall(SYS_pidfd_send_signal, copy->second.child.process.get(), SIGKILL, nullptr, 0);
    };
    arrivals_.emplace(*rank, std::move(arrival));
}

std::vector<PmiEnds*> Ranks::copys_servers() const {
    std::vector<PmiEnds*> all;
    for (auto& [rank, arrival] : arrivals_) all.push_back(arrival.world.get());
    for (auto& [rank, copy] : remote_copies_)
        if (copy.world) all.push_back(copy.world.get());
    return all;
}

bool Ranks::is_copys_helper(pid_t pid) const {
    const auto all = copys_servers();
    return std::any_of(all.begin(), all.end(), [pid](PmiEnds* one) { return one->is_helper(pid); });
}

// Those whose libraries' servers are there by now.
void Ranks::start_arrived() {
    if (copies_end_) arrivals_.clear();
    for (auto at = arrivals_.begin(); at != arrivals_.end();) {
        if (!at->second.world->ready()) {
            ++at;
            continue;
        }
        const Rank rank = at->first;
        Arrival arrival = std::move(at->second);
        at = arrivals_.erase(at);
        Elsewhere copy;
        copy.order = arrival.order;
        try {
            auto [socket, variables] = arrival.world->prepare(Rank(0));
            const wire::LaunchPart& part = part_of(rank);
            Fd null = open_file("/dev/null", O_RDONLY | O_CLOEXEC);
            Fd output = copy.output.make(), error = copy.error.make();
            SpawnSpec spec;
            spec.words = part.words;
            if (!lower_.empty()) spec.words[0] = lower_;
            spec.directory = part.directory;
            spec.environment = environment_of(rank, 0, 1, launch_->mpi, variables);
            for (const std::string& word :
                 {"FERMATA_RESTORE=" + arrival.directory,
                  fmt::format("FERMATA_GENERATION={}", arrival.order.generation.number()),
                  fmt::format("FERMATA_COPY_OF={}/{}", arrival.order.rank, arrival.order.ranks),
                  fmt::format("FERMATA_RESTARTS={}", restarts_of(spec.environment, arrival.order.world))})
                set_in(spec.environment, word);
            spec.input = null.get();
            spec.output = output.get();
            spec.error = error.get();
            spec.kept = socket.get();
            copy.child = spawn(spec);
            confirm(copy.child, spec.words[0], spec.directory);
            copy.world = std::move(arrival.world);
            remote_copies_.emplace(rank, std::move(copy));
        } catch (const std::exception& why) {
            up_(wire::NoCopy{arrival.order.rank, place_.name, why.what()});
        }
    }
}

std::optional<std::pair<Rank, pid_t>> Ranks::has_caught_up() {
    for (auto& [rank, copy] : remote_copies_) {
        if (copy.told || !copy.inflow) continue;
        // Its rank, or that one's node, is gone, or has given it up.
        if (!copy.inflow->has_caught_up() && copy.inflow->is_over())
            ::syscall(SYS_pidfd_send_signal, copy.child.process.get(), SIGKILL, nullptr, 0);
        if (!copy.inflow->has_caught_up()) continue;
        copy.told = true;
        return std::pair(rank, copy.child.pid);
    }
    return {};
}

std::optional<Rank> Ranks::arrives(pid_t pid) const {
    for (auto& [rank, copy] : remote_copies_)
        if (copy.child.pid == pid) return rank;
    return {};
}

bool Ranks::takes_in(Rank rank, std::shared_ptr<transfer::StreamMemory> memory, const wire::Key& key,
                     int64_t silent_ms) {
    auto at = remote_copies_.find(rank);
    if (at == remote_copies_.end() || at->second.inflow) return false;
    const wire::StartCopy& order = at->second.order;
    at->second.inflow = std::make_unique<transfer::Inflow>(
        transfer::Inflow::Source{order.stream, {order.host, Medium::memory}, order.generation, rank}, key,
        std::move(memory), silent_ms);
    return true;
}

std::optional<pid_t> Ranks::take_place(const wire::TakePlace& order) {
    const auto rank = Rank::of(order.rank);
    auto at = rank ? remote_copies_.find(*rank) : remote_copies_.end();
    if (at == remote_copies_.end() || copies_end_ || here(*rank)) return std::nullopt;
    Elsewhere copy = std::move(at->second);
    remote_copies_.erase(at);
    copy.inflow.reset();  // what has not come by now is nothing that others know of
    auto now = std::make_unique<Started>(*rank);
    now->child = std::move(copy.child);
    now->group = now->child.pid;
    now->output = std::move(copy.output);
    now->error = std::move(copy.error);
    now->output.goes_on_after(order.output);
    now->error.goes_on_after(order.error);
    now->known = false;
    // Its library would not live without, until it has another one.
    if (copy.world) earlier_worlds_.push_back(std::move(copy.world));
    const pid_t pid = now->child.pid;
    ranks_.push_back(std::move(now));
    return pid;
}

}  // namespace fermata::noded
