// Copies of ranks as the node daemon tells the root of them: which process follows whom, and what became of
// it.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/is_ending.h"
#include "base/log.h"
#include "noded/node.h"
#include "tree/ranks.h"

namespace fermata::noded {

void Node::stays(Agent& agent, const wire::Stays& message) {
    const auto rank = Rank::of(message.rank);
    if (!introduce(agent, message.job_id)) return;
    if (ranks_ && rank && agent.rank < 0 && agent.follows < 0 && ranks_->stays(*rank, agent.pid)) {
        agent.follows = message.rank;
        copies_lines_.erase(message.rank);
        if (ranks_->arrives(agent.pid)) return;  // it will say where its stream is to go
        branch_.say(wire::CopyMade{message.rank, agent.pid, config_.node});
        return;
    }
    branch_.say(
        wire::Warning{fmt::format("process {} on {} is no copy of rank {}, as it says: it is not heard",
                                  agent.pid, config_.node, message.rank),
                      0});
    ::shutdown(agent.channel.fd(), SHUT_RDWR);
}

Node::Agent* Node::speaker_of(Rank rank) {
    for (auto& agent : agents_)
        if (agent->rank == static_cast<int>(rank.number())) return agent.get();
    return nullptr;
}

// The copy's own connection is the rank's from now on.
void Node::promoted(Rank rank, pid_t pid, const std::string& how) {
    const auto number = static_cast<int>(rank.number());
    forget_speaker(rank);
    if (speaks_for(rank)) return branch_.say(wire::Promoted{number, pid, config_.node, how});
    // The copy has ended, too.
    branch_.say(wire::Gone{-1, tree::Ranks(number).runs(), ending_, pid, config_.node, -1});
}

void Node::forget_speaker(Rank rank) {
    perhaps_gone_.erase(static_cast<int>(rank.number()));
    Agent* old = speaker_of(rank);
    if (!old) return;
    branch_.tally().gone(old->id);  // its end has not been seen here yet
    plays(*old, -1);
    ::shutdown(old->channel.fd(), SHUT_RDWR);
}

// False: nobody follows it.
bool Node::speaks_for(Rank rank) {
    const auto number = static_cast<int>(rank.number());
    for (auto& agent : agents_) {
        if (agent->follows != number) continue;
        agent->follows = -1;
        plays(*agent, number);
        return true;
    }
    return false;
}

// ---- copies on other nodes

// A rank that begins one says so while it stands; a copy, when it could follow.
void Node::streams(Agent& agent, const wire::Streams& message) {
    if (!ranks_ || (agent.rank < 0 && agent.follows < 0)) return;
    try {
        const Fd file =
            open_file(fmt::format("/proc/{}/fd/{}", agent.pid, message.descriptor), O_RDWR | O_CLOEXEC);
        auto memory = std::make_shared<transfer::StreamMemory>(file.get());
        if (agent.rank >= 0) return stream_begins(agent, std::move(memory));
        const Rank rank(static_cast<uint32_t>(agent.follows));
        if (!ranks_->takes_in(rank, std::move(memory), key_, branch_.silent_ms())) return;
        say(agent, wire::Go{});
    } catch (const std::exception& error) {
        spdlog::warn("rank {} on {}: {}", message.rank, config_.node, error.what());
        if (agent.rank >= 0) return say(agent, wire::CopyGone{agent.rank});
        no_copy_here(agent.follows, error.what());
        ranks_->end_copies(tree::Ranks(agent.follows));
    }
}

void Node::stream_begins(Agent& agent, std::shared_ptr<transfer::StreamMemory> memory) {
    const Rank rank(static_cast<uint32_t>(agent.rank));
    streams_.add(rank, memory);
    const Ranks::Written written = ranks_->written_by(rank);
    ranks_->stream_begins(rank, memory);
    cloned_.push_back(
        {agent.rank, config_.node, memory_.images(), memory_.streams(), written.output, written.error});
}

void Node::start_copy(const wire::StartCopy& order) {
    try {
        if (!ranks_) fail("its daemon starts no ranks");
        memory_.expect(order);
    } catch (const std::exception& error) {
        no_copy_here(order.rank, error.what());
    }
}

void Node::serve_copies() {
    std::erase_if(cloned_, [this](const wire::Cloned& said) {
        const Rank rank(static_cast<uint32_t>(said.rank));
        if (ranks_ && !ranks_->is_on_its_way(rank, {said.output, said.error})) return false;
        branch_.say(said);
        return true;
    });
    for (Rank rank : streams_.broken())
        branch_.say(wire::CopyEnded{static_cast<int32_t>(rank.number()), 0, config_.node,
                                    "is cut off from its rank", ""});
    if (!ranks_) return;
    while (auto copy = ranks_->has_caught_up())
        branch_.say(wire::CopyMade{static_cast<int32_t>(copy->first.number()), copy->second, config_.node});
    while (auto arrived = memory_.arrived()) {
        std::string why = arrived->why_not;
        try {
            if (why.empty())
                ranks_->start_copy(arrived->order, memory_.directory_of(arrived->order.generation));
        } catch (const std::exception& error) {
            why = error.what();
        }
        if (!why.empty()) no_copy_here(arrived->order.rank, why);
    }
}

void Node::no_copy_here(int32_t rank, const std::string& why) {
    branch_.say(wire::NoCopy{rank, config_.node, why});
}

// The rank was on another node, and is here from now on.
void Node::take_place(const wire::TakePlace& order) {
    const auto rank = Rank::of(order.rank);
    const auto pid = ranks_ && rank ? ranks_->take_place(order) : std::nullopt;
    if (pid && speaks_for(*rank)) {
        wire::Group group;
        group.host = config_.node;
        group.size = static_cast<int32_t>(ranks_->size_of_job());
        group.ranks = {{order.rank, 1}};
        group.pids = {*pid};
        branch_.say(wire::Joined{{group}});
        branch_.say(wire::Promoted{order.rank, *pid, config_.node, order.how});
        return;
    }
    branch_.say(wire::Warning{
        fmt::format("rank {} {}, and its copy on {} has ended, too", order.rank, order.how, config_.node),
        0});
    branch_.say(wire::Gone{-1, {{order.rank, 1}}, ending_, pid.value_or(0), config_.node, -1});
}

// Nothing of it is left here, and the root decides what becomes of it.
void Node::leader_died(Rank rank, pid_t pid, int status) {
    const auto number = static_cast<int32_t>(rank.number());
    forget_speaker(rank);
    branch_.say(wire::Gone{-1, {{number, 1}}, true, pid, config_.node, -1});
    branch_.say(wire::LeaderDied{number, pid, config_.node,
                                 fmt::format("was killed by signal {}", WTERMSIG(status)), status});
}

void Node::copy_gone(const wire::CopyGone& said) {
    const auto rank = Rank::of(said.rank);
    if (!rank || !ranks_) return;
    if (ranks_->streams.copy_is_gone) ranks_->streams.copy_is_gone(*rank);
    if (Agent* agent = speaker_of(*rank)) say(*agent, said);
}

// The rank need not write for it any more.
void Node::copy_ended(Rank rank, pid_t pid, const std::string& how) {
    const auto number = static_cast<int>(rank.number());
    if (Agent* agent = speaker_of(rank)) say(*agent, wire::CopyGone{number});
    auto line = copies_lines_.extract(number);
    if (!ending_ && !how.empty())
        branch_.say(wire::CopyEnded{number, pid, config_.node, how, line ? line.mapped() : std::string()});
}

void Node::no_copy(const Agent& agent, std::string why) {
    if (ranks_) ranks_->gets_no_copy(Rank(static_cast<uint32_t>(agent.rank)));
    branch_.say(wire::NoCopy{agent.rank, config_.node, std::move(why)});
}

void Node::end_copies(const wire::EndCopies& order) {
    const auto of = tree::Ranks::of(order.ranks);
    if (ranks_ && of) ranks_->end_copies(*of);
}

// For tests: the process dies as it would of a fault, and whoever has to notice it does.
void Node::inject(const wire::Inject& order) {
    for (auto& agent : agents_) {
        if (agent->pid != order.pid || !agent->process) continue;
        if (agent->rank != order.rank && agent->follows != order.rank) continue;
        ::syscall(SYS_pidfd_send_signal, agent->process.get(), SIGKILL, nullptr, 0);
        branch_.say(wire::Injected{order.number, order.rank, order.pid, agent->follows >= 0, config_.node});
    }
}

// Connections of a process are closed a moment before it can be waited for.
void Node::say_who_lives(const wire::AskLiving& question) {
    const bool agents = std::none_of(agents_.begin(), agents_.end(), [](auto& agent) {
        return agent->rank >= 0 && agent->pid > 0 && is_ending(agent->pid);
    });
    branch_.say(wire::Living{-1, question.number, agents && (!ranks_ || ranks_->all_live())});
}

void Node::hear_who_lives(const wire::Living& said) {
    if (Agent* agent = speaker_of(Rank(static_cast<uint32_t>(said.rank)))) say(*agent, said);
}

}  // namespace fermata::noded
