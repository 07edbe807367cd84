// The node daemon's connections to its ranks: who is let in, heard, written to and dropped.
#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/invariant.h"
#include "base/log.h"
#include "noded/node.h"
#include "tree/local_socket.h"

namespace fermata::noded {
namespace {

constexpr uint32_t kStrangerPayload = 16384;  // the first messages are short
constexpr size_t kStrangers = 256;
constexpr int64_t kStrangerMs = 10000;  // then he goes
constexpr int64_t kLeastMs = 200;       // before that he does not, for others to come in
constexpr int64_t kStrangersLookMs = 100;
constexpr int kRoundsOfAgents = 16;  // in a turn
constexpr int kLetInAtOnce = 64;
constexpr int64_t kNoFilesMs = 100;

}  // namespace

// Each gets what was said to it in this turn, by one call of the kernel.
void Node::write_to_agents() {
    for (Agent* agent : here_.spoken_to) {
        const bool writes = (agent->channel.events() & POLLOUT) != 0;
        if (writes != agent->writes) here_.crowd.watch_writing(agent->channel.fd(), agent, writes);
        agent->writes = writes;
        agent->spoken_to = false;
        here_.somebody_left = here_.somebody_left || agent->channel.closed();
    }
    here_.spoken_to.clear();
}

void Node::spoke(Agent& agent) {
    if (!std::exchange(agent.spoken_to, true)) here_.spoken_to.push_back(&agent);
}

void Node::say(Agent& agent, const wire::Message& message) {
    agent.channel.put(message);
    spoke(agent);
}

// Answers come one by one, as ranks have time: whoever has spoken meanwhile is served in the same turn.
void Node::serve_agents() {
    for (int round = 0; round < kRoundsOfAgents && !here_.somebody_left; ++round) {
        const auto& ready = here_.crowd.ready();
        if (ready.empty()) return;
        for (const Crowd::One& one : ready) {
            Agent& agent = *static_cast<Agent*>(one.who);
            agent.channel.serve(one.revents);
            while (auto message = agent.channel.receive()) from_agent(agent, std::move(*message));
            here_.somebody_left = here_.somebody_left || agent.channel.closed();
            if (agent.writes) spoke(agent);
        }
    }
}

void Node::drop_who_left() {
    const int64_t now = tree::now_ms();
    if (!here_.somebody_left && now - here_.strangers_looked_at < kStrangersLookMs) return;
    here_.somebody_left = false;
    here_.strangers_looked_at = now;
    for (size_t i = agents_.size(); i-- > 0;)
        if (agents_[i]->channel.closed() || (!agents_[i]->ours && now - agents_[i]->since > kStrangerMs))
            drop(i);
}

// Nobody waits for it or speaks to it any more.
void Node::forget(Agent& agent) {
    here_.crowd.forget(agent.channel.fd());
    std::erase(here_.spoken_to, &agent);
    plays(agent, -1);
}

void Node::plays(Agent& agent, int rank) {
    here_.ranks += (rank >= 0 ? 1u : 0u) - (agent.rank >= 0 ? 1u : 0u);
    agent.rank = rank;
}

void Node::accept_agents() {
    for (int turn = 0; turn < kLetInAtOnce && make_room(); ++turn) {
        Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!fd) {
            if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
                closed_til_ = tree::now_ms() + kNoFilesMs;  // EMFILE: it would be polled for nothing
            return;
        }
        tree::Peer peer = tree::peer_of(fd.get());
        if (peer.uid != ::geteuid()) continue;
        auto agent = std::make_unique<Agent>(tree::Channel(std::move(fd), kStrangerPayload));
        agent->pid = peer.pid;
        agent->since = tree::now_ms();
        agent->id = next_id_++;
        if (!here_.crowd.add(agent->channel.fd(), agent.get())) {
            spdlog::warn("no room to watch a rank's connection: {}", std::strerror(errno));
            closed_til_ = tree::now_ms() + kNoFilesMs;
            return;
        }
        agents_.push_back(std::move(agent));
    }
}

// Whether there is a place for one more stranger; the oldest goes, once he had time to say who he is.
bool Node::make_room() {
    auto stranger = [](const std::unique_ptr<Agent>& agent) { return !agent->ours; };
    if (static_cast<size_t>(std::count_if(agents_.begin(), agents_.end(), stranger)) < kStrangers)
        return true;
    auto oldest = std::find_if(agents_.begin(), agents_.end(), stranger);  // they come in the order of time
    if (tree::now_ms() - (*oldest)->since < kLeastMs) {
        closed_til_ = (*oldest)->since + kLeastMs;
        return false;
    }
    always(oldest != agents_.end() && !(*oldest)->ours, "a rank that goes in the place of a stranger");
    forget(**oldest);
    agents_.erase(oldest);
    return true;
}

void Node::drop(size_t index) {
    always(index < agents_.size(), "an agent that is dropped and not there");
    Agent& agent = *agents_[index];
    if (!agent.channel.error().empty())
        spdlog::warn("rank {} is dropped: {}", agent.rank, agent.channel.error());
    if (agent.rank >= 0) {
        const wire::Gone gone{-1,        tree::Ranks(agent.rank).runs(), ending_, agent.pid, config_.node,
                              agent.code};
        // Which of both it is the end of its process says.
        if (ranks_ && ranks_->somebody_follows(Rank(static_cast<uint32_t>(agent.rank))) && agent.code < 0)
            perhaps_gone_.emplace(agent.rank, gone);
        else
            branch_.say(gone);
    }
    branch_.tally().gone(agent.id);
    if (agent.ours && agent.pid > 0) shared_names_.gone(agent.pid);
    forget(agent);
    agents_.erase(agents_.begin() + static_cast<ptrdiff_t>(index));
    answer_query(false);
}

}  // namespace fermata::noded
