#include "pmi/pmix_link.h"

#include <algorithm>

#include "base/error.h"
#include "base/invariant.h"
#include "base/text.h"

namespace fermata::pmi {

PmixLink::PmixLink(World world, const std::string& directory) : world_(std::move(world)) {
    world_.check();
    if (world_.hosts.size() < world_.placement.nodes())
        fail("{} host names for {} nodes", world_.hosts.size(), world_.placement.nodes());
    for (const RankRange& range : world_.placement.ranks_on(world_.node))
        range.each([this](Rank rank) { stages_.emplace(rank, Stage::silent); });
    tell(helper::Start{helper::kVersion, world_.name, directory, world_.node, world_.universe, world_.cores,
                       world_.placement.blocks(), world_.programs, world_.hosts});
}

void PmixLink::tell(const helper::Message& message) {
    if (!helper_gone_) out(ToHelper{helper::frame(message)});
}

void PmixLink::from_helper(std::string_view bytes) try {
    if (helper_gone_) return;
    decoder_.feed(bytes);
    while (auto message = decoder_.next()) std::visit([this](const auto& one) { take(one); }, *message);
} catch (const Error& error) {
    helper_ended(fmt::format("cannot be understood: {}", error.what()));
}

void PmixLink::helper_ended(const std::string& how) {
    if (std::exchange(helper_gone_, true)) return;
    ready_ = false;
    bool needed = false;
    for (auto& [rank, stage] : stages_) {
        if (stage == Stage::finalized) continue;
        stage = Stage::failed;
        needed = needed || !ended_.count(rank);
    }
    if (!needed) return;
    out(Fault{std::nullopt, fmt::format("node {}: the PMIx helper {}", world_.hosts[world_.node], how)});
    if (broken_.empty()) out(fault({world_.epoch, {}, next_[{}]}, world_.size(), "the PMIx helper " + how));
    broken_ = "the PMIx helper " + how;
}

template <class Message>
void PmixLink::take(const Message&) {
    fail("it sent message {}", int{Message::kType});
}

void PmixLink::take(const helper::Ready& ready) {
    if (ready_) fail("ready twice");
    for (const helper::Environment& of : ready.ranks) {
        if (!is_here(of.rank)) fail("ready with rank {}", of.rank.number());
        for (const helper::Variable& variable : of.variables)
            environments_[of.rank].emplace_back(variable.name, variable.value);
    }
    if (environments_.size() != stages_.size())
        fail("ready with {} of {} ranks", environments_.size(), stages_.size());
    ready_ = true;
}

// Ranks of this node among them; throws Error for what is no list of ranks of the world.
uint32_t PmixLink::here(const Among& among) const {
    if (among.empty()) return static_cast<uint32_t>(stages_.size());
    uint32_t end = 0, here = 0;
    for (const RankRange& range : among) {
        if (range.first().number() < end || range.end() > world_.size())
            fail("a fence among ranks that cannot be");
        end = range.end();
        for (auto at = stages_.lower_bound(range.first()); at != stages_.end() && range.holds(at->first);
             ++at)
            ++here;
    }
    return here;
}

uint32_t PmixLink::size(const Among& among) const {
    uint32_t size = among.empty() ? world_.size() : 0;
    for (const RankRange& range : among) size += range.count();
    return size;
}

Fence PmixLink::fault(FenceName name, uint32_t of, std::string why) const {
    always(!why.empty(), "a fence that has failed without a reason");
    Fence fence;
    fence.name = std::move(name);
    fence.of = of;
    fence.fault = std::move(why);
    return fence;
}

// libpmix goes on without the ranks that it lost.
std::optional<Rank> PmixLink::lost_among(const Among& among) const {
    for (const auto& [rank, stage] : stages_) {
        auto holds = [rank = rank](const RankRange& range) { return range.holds(rank); };
        if (!among.empty() && std::none_of(among.begin(), among.end(), holds)) continue;
        if (ended_.count(rank) || (stage == Stage::running && is_ending && is_ending(rank))) return rank;
    }
    return std::nullopt;
}

void PmixLink::take(const helper::Entered& entered) {
    const Among& among = entered.among;
    Fence fence;
    fence.name = {world_.epoch, among, 0};
    fence.ranks = here(among);
    fence.of = size(among);
    if (fence.ranks == 0) fail("a fence without ranks of this node");
    fence.name.number = next_[among];
    if (open_.count(fence.name)) fail("two fences among the same ranks");
    std::string failed;
    if (auto known = failed_.extract(fence.name)) failed = known.mapped();
    if (auto rank = lost_among(among); rank && failed.empty()) {
        failed = fmt::format("rank {} has ended", rank->number());
        out(fault(fence.name, fence.of, failed));
    }
    if (!failed.empty()) {
        ++next_[among];
        return tell(helper::Fenced{entered.number, {}, failed});
    }
    always(open_.count(fence.name) == 0 && fence.ranks <= fence.of, "a fence that is entered twice");
    open_.emplace(fence.name, entered.number);
    fence.data = entered.data;
    out(std::move(fence));
}

void PmixLink::result(const Fence& whole) {
    const Among& among = whole.name.among;
    if (whole.name.epoch != world_.epoch || !whole.whole() || here(among) == 0) return;
    if (auto open = open_.extract(whole.name)) {
        tell(helper::Fenced{open.mapped(), whole.data, whole.fault});
        next_[among] = whole.name.number + 1;
    } else if (!whole.fault.empty() && whole.name.number == next_[among]) {
        failed_.emplace(whole.name, whole.fault);
    }
}

void PmixLink::take(const helper::Request& request) {
    if (request.rank.number() >= world_.size() || is_here(request.rank))
        fail("it asks for rank {}", request.rank.number());
    out(Ask{world_.epoch, world_.node, request.number, request.rank});
}

void PmixLink::take(const helper::Publication& publication) {
    out(Answer{world_.epoch, publication.to, publication.number, publication.data, publication.fault});
}

void PmixLink::asked(const Ask& ask) {
    auto refuse = [&](std::string why) { out(Answer{ask.epoch, ask.from, ask.number, {}, std::move(why)}); };
    if (ask.epoch != world_.epoch)
        return refuse(fmt::format("epoch {} is asked, this is epoch {}", ask.epoch, world_.epoch));
    if (!is_here(ask.rank))
        return refuse(fmt::format("rank {} is not on node {}", ask.rank.number(), world_.node));
    if (helper_gone_ || stage(ask.rank) == Stage::failed || ended_.count(ask.rank))
        return refuse(fmt::format("rank {} has ended", ask.rank.number()));
    tell(helper::Wanted{ask.from, ask.number, ask.rank});
}

void PmixLink::answered(const Answer& answer) {
    if (answer.epoch == world_.epoch) tell(helper::Given{answer.number, answer.data, answer.fault});
}

void PmixLink::take(const helper::Reached& reached) {
    auto found = stages_.find(reached.rank);
    if (found == stages_.end()) fail("it speaks of rank {}", reached.rank.number());
    if (found->second == Stage::failed) return;
    found->second = reached.stage;
    if (reached.stage != Stage::running) return;
    if (broken_.empty()) return check_start();
    give_up(reached.rank);
}

void PmixLink::take(const helper::Aborted& aborted) {
    auto found = stages_.find(aborted.rank);
    if (found == stages_.end()) fail("it speaks of rank {}", aborted.rank.number());
    found->second = Stage::failed;
    out(Abort{aborted.rank, aborted.code, visible(aborted.text)});
}

void PmixLink::take(const helper::Failed& failed) { helper_ended(visible(failed.line)); }

Stage PmixLink::stage(Rank rank) const {
    auto found = stages_.find(rank);
    return found == stages_.end() ? Stage::silent : found->second;
}

std::vector<std::pair<std::string, std::string>> PmixLink::environment(Rank rank) const {
    auto found = environments_.find(rank);
    if (found == environments_.end()) fail("rank {} has no environment of PMIx", rank.number());
    auto names = found->second;
    auto add = [&](const char* name, uint64_t value) { names.emplace_back(name, std::to_string(value)); };
    const auto place = static_cast<uint64_t>(std::distance(stages_.begin(), stages_.find(rank)));
    // Open MPI's mpiexec sets these, and programs read them.
    add("OMPI_COMM_WORLD_SIZE", world_.size());
    add("OMPI_COMM_WORLD_RANK", rank.number());
    add("OMPI_COMM_WORLD_LOCAL_SIZE", stages_.size());
    add("OMPI_COMM_WORLD_LOCAL_RANK", place);
    add("OMPI_COMM_WORLD_NODE_RANK", place);
    add("OMPI_UNIVERSE_SIZE", world_.universe ? world_.universe : world_.size());
    // Polling ranks without a core of their own give it away between looks (Open MPI 5 is told by the
    // helper).
    if (world_.cores) add("OMPI_MCA_mpi_oversubscribe", stages_.size() > world_.cores);
    // Open MPI 4 asks PMIx only below launchers that it knows: mpiexec, Slurm's srun, and this one of IBM's.
    // Else every rank is a world of one.
    add("JSM_JSRUN_PORT", 1);
    return names;
}

void PmixLink::ended(Rank rank, const std::string& how) {
    auto found = stages_.find(rank);
    if (found == stages_.end()) fail("rank {} is not of node {}", rank.number(), world_.node);
    tell(helper::Ended{rank, how});
    if (found->second == Stage::finalized || !ended_.insert(rank).second) return;
    if (found->second == Stage::silent && never_.empty())
        never_ = fmt::format("rank {} {}", rank.number(), how);
    if (found->second == Stage::running) found->second = Stage::failed;
    check_start();
}

// libpmix waits for a rank that never reached MPI_Init, since it does not know it; ranks that it knows it
// gives up by itself. (Programs without MPI just end.)
void PmixLink::check_start() {
    if (never_.empty() || !broken_.empty()) return;
    if (std::none_of(stages_.begin(), stages_.end(), [](const auto& one) {
            return one.second == Stage::running || one.second == Stage::failed;
        }))
        return;
    out(fault({world_.epoch, {}, next_[{}]}, world_.size(), never_));
    break_start(never_);
}

// No rank comes out of its MPI_Init any more.
void PmixLink::break_start(const std::string& why) {
    if (!broken_.empty()) return;
    broken_ = why;
    for (const auto& [rank, stage] : stages_)
        if (stage == Stage::running) give_up(rank);
}

void PmixLink::give_up(Rank rank) {
    always(is_here(rank) && !broken_.empty(), "a rank that is given up without a reason");
    stages_[rank] = Stage::failed;
    out(Fault{rank, fmt::format("rank {} waits for all ranks, in vain: {}", rank.number(), broken_)});
}

}  // namespace fermata::pmi
