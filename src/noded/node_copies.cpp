// Copies of ranks as the node daemon tells the root of them: which process follows whom, and what became of
// it.
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "noded/node.h"
#include "tree/ranks.h"

namespace fermata::noded {

void Node::stays(Agent& agent, const wire::Stays& message) {
    const auto rank = Rank::of(message.rank);
    if (!introduce(agent, message.job_id)) return;
    if (ranks_ && rank && agent.rank < 0 && agent.follows < 0 && ranks_->stays(*rank, agent.pid)) {
        agent.follows = message.rank;
        copies_lines_.erase(message.rank);
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
    perhaps_gone_.erase(number);
    if (Agent* old = speaker_of(rank)) {  // its end has not been seen here yet
        branch_.tally().gone(old->id);
        old->rank = -1;
        ::shutdown(old->channel.fd(), SHUT_RDWR);
    }
    for (auto& agent : agents_) {
        if (agent->follows != number) continue;
        agent->follows = -1;
        agent->rank = number;
        branch_.say(wire::Promoted{number, pid, config_.node, how});
        return;
    }
    // The copy has ended, too.
    branch_.say(wire::Gone{-1, tree::Ranks(number).runs(), ending_, pid, config_.node, -1});
}

// The rank need not write for it any more.
void Node::copy_ended(Rank rank, pid_t pid, const std::string& how) {
    const auto number = static_cast<int>(rank.number());
    if (Agent* agent = speaker_of(rank)) agent->channel.send(wire::CopyGone{number});
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
        if (agent->pid != order.pid || !agent->process || (agent->rank < 0 && agent->follows < 0)) continue;
        ::syscall(SYS_pidfd_send_signal, agent->process.get(), SIGKILL, nullptr, 0);
        branch_.say(wire::Injected{order.number, order.rank, order.pid, agent->follows >= 0, config_.node});
    }
}

}  // namespace fermata::noded
