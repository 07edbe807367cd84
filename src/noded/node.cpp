#include "noded/node.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/log.h"
#include "tree/local_socket.h"

namespace fermata::noded {
namespace {

constexpr uint32_t kMaxAgentPayload = 16u << 20;
constexpr uint32_t kStrangerPayload = 16384;  // the first messages are short
constexpr size_t kStrangers = 256;
constexpr int64_t kStrangerMs = 10000;  // then he goes
constexpr int64_t kLeastMs = 200;       // before that he does not, for others to come in
constexpr int kLetInAtOnce = 64;
constexpr int64_t kNoFilesMs = 100;
constexpr size_t kMaxLine = 16384;  // of what the root hears from a rank
constexpr int kQueryMs = 5000;      // a rank that does not answer in this time is reported as silent
constexpr int kGraceMs = 5000;      // after the root is gone, for mpiexec to end the ranks itself
constexpr size_t kMaxDiagnosis = 64 << 10;

std::string clipped(const std::string& text) {
    return text.size() <= kMaxLine ? text : text.substr(0, kMaxLine) + " …";
}

}  // namespace

Node::Node(tree::AgentConfig config, tree::RunDir dir, Fd listener, tree::Channel root)
    : config_(std::move(config)),
      dir_(std::move(dir)),
      listener_(std::move(listener)),
      root_(std::move(root)) {
    root_.send(wire::NodeHello{config_.node, ::getpid()});
}

void Node::run() {
    for (;;) {
        turn(root_lost_ || query_end_ ? 100 : 1000);
        int64_t now = tree::now_ms();
        if (query_end_ && now >= query_end_) answer_query(true);
        if (root_.closed() && !root_lost_) {
            spdlog::info("the root is gone");
            root_lost_ = now;
            ending_ = true;
        }
        if (root_lost_ && now - root_lost_ > kGraceMs) kill_ranks();
        // As long as the root lives, so does the job: ranks may come at any time (a slow MPI_Init).
        if (nobody_here() && (root_lost_ || killed_)) break;
    }
    root_.flush(1000);
}

void Node::turn(int timeout_ms) {
    std::vector<pollfd> fds;
    fds.push_back({tree::now_ms() < closed_til_ ? -1 : listener_.get(), POLLIN, 0});
    fds.push_back({root_.closed() ? -1 : root_.fd(), root_.events(), 0});
    for (auto& agent : agents_) fds.push_back({agent->channel.fd(), agent->channel.events(), 0});
    if (::poll(fds.data(), fds.size(), timeout_ms) < 0) return;

    root_.serve(fds[1].revents);
    while (auto message = root_.receive()) from_root(*message);
    for (size_t i = 0; i + 2 < fds.size(); ++i) {
        Agent& agent = *agents_[i];
        agent.channel.serve(fds[i + 2].revents);
        while (auto message = agent.channel.receive()) from_agent(agent, *message);
    }
    int64_t now = tree::now_ms();
    for (size_t i = agents_.size(); i-- > 0;)
        if (agents_[i]->channel.closed() || (!agents_[i]->ours && now - agents_[i]->since > kStrangerMs))
            drop(i);
    if (fds[0].revents) accept_agents();
    if (!joined_.empty()) {
        root_.send(wire::Joined{std::move(joined_)});
        joined_.clear();
    }
    pump_clock();
    send_full_tallies();
    tell_phase();
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
    agents_.erase(oldest);
    return true;
}

bool Node::introduce(Agent& agent, const std::string& job_id) {
    if (job_id != config_.job_id) {
        spdlog::warn("a stranger at the agents' socket: pid {}", agent.pid);
        ::shutdown(agent.channel.fd(), SHUT_RDWR);
        return false;
    }
    if (agent.ours) return true;
    agent.ours = true;
    agent.channel.allow(kMaxAgentPayload);
    if (agent.pid > 0) agent.process = Fd(static_cast<int>(::syscall(SYS_pidfd_open, agent.pid, 0)));
    return true;
}

bool Node::nobody_here() const {
    return std::none_of(agents_.begin(), agents_.end(), [](auto& agent) { return agent->ours; });
}

uint32_t Node::ranks() const {
    return static_cast<uint32_t>(
        std::count_if(agents_.begin(), agents_.end(), [](auto& agent) { return agent->rank >= 0; }));
}

void Node::from_agent(Agent& agent, const wire::Message& message) {
    if (auto* m = std::get_if<wire::Starting>(&message)) {
        if (introduce(agent, m->job_id)) agent.called = m->rank;
        return;
    }
    if (auto* m = std::get_if<wire::InStarter>(&message)) {
        root_.send(*m);
        return;
    }
    if (auto* hello = std::get_if<wire::Hello>(&message)) {
        if (!introduce(agent, hello->job_id)) return;
        if (hello->rank < 0 || agent.rank >= 0) {
            spdlog::warn("pid {} says it is rank {}, and was {}", agent.pid, hello->rank, agent.rank);
            ::shutdown(agent.channel.fd(), SHUT_RDWR);
            return;
        }
        agent.rank = hello->rank;
        agent.rebuilding = !hello->restarted_from.empty();
        joined_.push_back(*hello);
        return;
    }
    if (auto* m = std::get_if<wire::Phase>(&message)) {
        if (agent.ours) phases_.said(&agent, {m->phase, agent.rank >= 0 ? agent.rank : m->rank});
        return;
    }
    if (agent.rank < 0) return;
    spdlog::debug("rank {}: {}", agent.rank, wire::name_of(message));
    // Answers to an older question are late and count no more.
    auto current = [&](uint32_t epoch) { return epoch == tally_.epoch; };
    if (auto* m = std::get_if<wire::Clock>(&message)) {
        if (clock_ && agent.child >= 0 &&
            !clock_->from_child(static_cast<size_t>(agent.child), wire::plain(m->bytes)))
            refuse_clock(fmt::format("rank {}", agent.rank));
    } else if (auto* m = std::get_if<wire::Closed>(&message)) {
        if (current(m->epoch)) ++tally_.closed;
    } else if (auto* m = std::get_if<wire::Frozen>(&message)) {
        if (!current(m->epoch)) return;
        ++tally_.frozen;
        tally_.sent += m->sent;
    } else if (auto* m = std::get_if<wire::Drained>(&message)) {
        if (!current(m->epoch) || m->round != tally_.round) return;
        ++tally_.drained;
        tally_.sent += m->sent;
        tally_.received += m->received;
        tally_.open += m->open;
    } else if (auto* m = std::get_if<wire::Captured>(&message)) {
        if (current(m->epoch)) ++tally_.captured;
    } else if (auto* m = std::get_if<wire::Sized>(&message)) {
        if (current(m->epoch)) tally_.sized.push_back(*m);
    } else if (auto* m = std::get_if<wire::Saved>(&message)) {
        if (!current(m->epoch)) return;
        tally_.saved.push_back(*m);
        tally_.saved.back().error = clipped(m->error);
        // Bad news travels at once.
        if (!m->error.empty()) {
            root_.send(wire::SavedList{m->epoch, {tally_.saved.back()}});
            tally_.saved.clear();
        }
    } else if (auto* m = std::get_if<wire::Resumed>(&message)) {
        if (current(m->epoch)) ++tally_.resumed;
    } else if (auto* m = std::get_if<wire::Restored>(&message)) {
        agent.rebuilding = false;
        if (m->ok) {
            ++tally_.restored;
            phases_.said(&agent, {wire::RestartPhase::go, agent.rank});
        } else {
            root_.send(wire::Restored{false, clipped(m->error), 0});
        }
    } else if (auto* m = std::get_if<wire::Diagnosis>(&message)) {
        if (!query_end_ || agent.answered) return;
        agent.answered = true;
        ++diagnosed_;
        size_t start = 0;
        while (start < m->text.size() && diagnosis_.size() < kMaxDiagnosis) {
            size_t end = std::min(m->text.find('\n', start), m->text.size());
            if (end > start)
                diagnosis_ += fmt::format("rank {} on {}: {}\n", agent.rank, config_.node,
                                          m->text.substr(start, end - start));
            start = end + 1;
        }
        answer_query(false);
    } else if (std::get_if<wire::ArrivedFinalize>(&message)) {
        ++finalized_;
        root_.send(wire::ArrivedFinalize{1});
    } else if (auto* m = std::get_if<wire::Refuse>(&message)) {
        root_.send(wire::Refuse{m->epoch, fmt::format("rank {}: {}", agent.rank, clipped(m->why))});
    } else if (auto* m = std::get_if<wire::Again>(&message)) {
        root_.send(wire::Again{m->epoch, fmt::format("rank {}: {}", agent.rank, clipped(m->why))});
    } else if (auto* m = std::get_if<wire::Warning>(&message)) {
        root_.send(wire::Warning{clipped(m->text), m->epoch});
    } else if (auto* m = std::get_if<wire::Fatal>(&message)) {
        root_.send(wire::Fatal{clipped(m->line), m->code});
    } else {
        spdlog::warn("rank {} sent {}, which is not for agents to send", agent.rank, wire::name_of(message));
    }
}

void Node::from_root(const wire::Message& message) {
    spdlog::debug("root: {}", wire::name_of(message));
    auto question = [&](uint32_t epoch, uint32_t round = 0) {
        auto restored = tally_.restored;
        tally_ = {};
        tally_.restored = restored;
        tally_.epoch = epoch;
        tally_.round = round;
        broadcast(message);
    };
    if (auto* m = std::get_if<wire::Clock>(&message)) {
        if (clock_ && !clock_->from_parent(wire::plain(m->bytes))) refuse_clock("the root");
    } else if (auto* m = std::get_if<wire::Begin>(&message)) {
        int children = 0;
        for (auto& agent : agents_) agent->child = agent->rank >= 0 ? children++ : -1;
        clock_ = std::make_unique<clock::Node>(static_cast<size_t>(children));
        question(m->epoch);
    } else if (auto* m = std::get_if<wire::Freeze>(&message)) {
        question(m->epoch);
    } else if (auto* m = std::get_if<wire::Drain>(&message)) {
        question(m->epoch, m->round);
    } else if (auto* m = std::get_if<wire::Save>(&message)) {
        question(m->epoch);
    } else if (auto* m = std::get_if<wire::PlacedList>(&message)) {
        std::map<int32_t, const wire::Placed*> of_rank;
        for (const wire::Placed& part : m->parts) of_rank[part.rank] = &part;
        for (auto& agent : agents_)
            if (auto part = of_rank.find(agent->rank); part != of_rank.end())
                agent->channel.send(*part->second);
    } else if (auto* m = std::get_if<wire::Resume>(&message)) {
        // Not a new question: with a forked writer Saved comes after this.
        tally_.resumed = 0;
        broadcast(*m);
    } else if (auto* m = std::get_if<wire::Cancel>(&message)) {
        question(m->epoch);
    } else if (std::get_if<wire::Query>(&message)) {
        diagnosis_.clear();
        diagnosed_ = 0;
        query_end_ = tree::now_ms() + kQueryMs;
        for (auto& agent : agents_) agent->answered = false;
        broadcast(message);
        answer_query(false);
    } else if (std::get_if<wire::FinalizeReleased>(&message)) {
        ending_ = true;
        broadcast(message);
    } else if (std::get_if<wire::Go>(&message)) {
        phases_.clear();
        broadcast(message);
    } else if (std::get_if<wire::Take>(&message) || std::get_if<wire::Leave>(&message)) {
        broadcast(message);
    } else if (std::get_if<wire::Kill>(&message)) {
        kill_ranks();
    } else if (auto* m = std::get_if<wire::Stand>(&message)) {
        signal_ranks(m->still ? SIGSTOP : SIGCONT);
    }
}

void Node::broadcast(const wire::Message& message) {
    for (auto& agent : agents_)
        if (agent->rank >= 0) agent->channel.send(message);
}

// A clock message that cannot be: without it the checkpoint would wait for ever.
void Node::refuse_clock(const std::string& from) {
    root_.send(
        wire::Refuse{tally_.epoch, fmt::format("the protocol broke: from {} to the node daemon on {}: {}",
                                               from, config_.node, clock_->error())});
}

void Node::pump_clock() {
    if (!clock_) return;
    clock::Bytes bytes;
    while (clock_->next_up(&bytes)) root_.send(wire::Clock{wire::packed(bytes)});
    while (clock_->next_down(&bytes)) broadcast(wire::Clock{wire::packed(bytes)});
}

void Node::send_full_tallies() {
    uint32_t all = ranks();
    if (all == 0) return;
    auto& t = tally_;
    if (t.closed == all) {
        root_.send(wire::Closed{t.epoch, t.closed});
        t.closed = 0;
    }
    if (t.frozen == all) {
        root_.send(wire::Frozen{t.epoch, t.sent, t.frozen});
        t.frozen = 0, t.sent = 0;
    }
    if (t.drained == all) {
        root_.send(wire::Drained{t.epoch, t.round, t.sent, t.received, t.open, t.drained});
        t.drained = 0, t.sent = t.received = t.open = 0;
    }
    if (t.captured == all) {
        root_.send(wire::Captured{t.epoch, t.captured});
        t.captured = 0;
    }
    if (t.sized.size() == all) {
        root_.send(wire::SizedList{t.epoch, std::move(t.sized)});
        t.sized.clear();
    }
    if (t.saved.size() == all) {
        root_.send(wire::SavedList{t.epoch, std::move(t.saved)});
        t.saved.clear();
    }
    if (t.resumed >= all) {
        root_.send(wire::Resumed{t.epoch, t.resumed});
        t.resumed = 0;
    }
    if (t.restored > 0) {  // not asked for: ranks come one by one, the root adds up
        root_.send(wire::Restored{true, "", t.restored});
        t.restored = 0;
    }
}

// Once a turn: ranks pass the phases together.
void Node::tell_phase() {
    auto phase = phases_.furthest_behind();
    if (phase && phase != told_phase_) root_.send(*phase);
    told_phase_ = phase;
}

void Node::answer_query(bool late) {
    if (!query_end_ || (!late && diagnosed_ < ranks())) return;
    for (auto& agent : agents_) {
        if (agent->rank >= 0 && !agent->answered)
            diagnosis_ += fmt::format(
                "rank {} on {}: {} (pid {})\n", agent->rank, config_.node,
                agent->rebuilding
                    ? "makes its MPI objects again, in a call of the library that waits for others"
                    : "does not answer",
                agent->pid);
        if (agent->rank < 0 && agent->ours)
            diagnosis_ += fmt::format("{} on {}: is in the library's MPI_Init, or loads its image (pid {})\n",
                                      agent->called >= 0 ? fmt::format("rank {}", agent->called) : "a rank",
                                      config_.node, agent->pid);
    }
    root_.send(wire::Diagnosis{diagnosis_, ranks()});
    query_end_ = 0;
}

void Node::drop(size_t index) {
    Agent& agent = *agents_[index];
    if (!agent.channel.error().empty())
        spdlog::warn("rank {} is dropped: {}", agent.rank, agent.channel.error());
    if (agent.rank >= 0) root_.send(wire::RankGone{agent.rank, agent.pid, config_.node, ending_});
    phases_.gone(&agent);
    agents_.erase(agents_.begin() + static_cast<ptrdiff_t>(index));
    answer_query(false);
}

void Node::kill_ranks() {
    ending_ = killed_ = true;
    signal_ranks(SIGKILL);
}

void Node::signal_ranks(int signal) {
    for (auto& agent : agents_)
        if (agent->process) ::syscall(SYS_pidfd_send_signal, agent->process.get(), signal, nullptr, 0);
}

}  // namespace fermata::noded
