#include "noded/node.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/invariant.h"
#include "base/log.h"
#include "tree/local_socket.h"

namespace fermata::noded {
namespace {

constexpr uint32_t kMaxAgentPayload = 16u << 20;
constexpr size_t kMaxLine = 16384;  // of what the root hears from a rank
constexpr int kGraceMs = 5000;      // after the root is gone, for mpiexec to end the ranks itself
constexpr int kLeaveMs = 4000;      // after Kill, for the daemons below
constexpr size_t kMaxDiagnosis = 64 << 10;

template <class... Types>
bool is_one_of(const wire::Message& message) {
    return (std::holds_alternative<Types>(message) || ...);
}

// Handed on as they are.
bool is_for_agents(const wire::Message& message) {
    return is_one_of<wire::Freeze, wire::Take, wire::Drain, wire::AskLog, wire::Save, wire::Resume,
                     wire::Cancel, wire::FinalizeReleased, wire::Go, wire::Leave, wire::AskProgram>(message);
}

// The levels want to know whose ranks they are.
bool is_of_ranks(const wire::Message& message) { return is_one_of<wire::MakeRoom, wire::AskCopies>(message); }

std::string clipped(const std::string& text) {
    return text.size() <= kMaxLine ? text : text.substr(0, kMaxLine) + " …";
}

}  // namespace

Node::Node(tree::AgentConfig config, tree::RunDir dir, Fd listener, tree::Channel root, const wire::Key& key)
    : config_(std::move(config)),
      key_(key),
      dir_(std::move(dir)),
      shared_names_(files::Folder::at(dir_.path())),
      listener_(std::move(listener)),
      branch_(std::move(root), key, config_.root, config_.node),
      neighbours_(key, [this](const wire::Message& message) { branch_.say(message); }),
      memory_({config_.job_number(), config_.node, config_.ckpt_dir, config_.image_key, key, &streams_,
               [this] { return branch_.silent_ms(); }},
              [this](const wire::Message& message) { branch_.say(message); }) {
    branch_.on_message = [this](const wire::Message& message) { from_root(message); };
    branch_.on_child = [this](int child, const wire::Message& message) { from_below(child, message); };
    branch_.on_child_gone = [this](int child) {
        asked_.erase(child);
        answer_query(false);
    };
}

void Node::start_ranks_as(uint32_t number) {
    ranks_ =
        std::make_unique<Ranks>(Ranks::Place{number, config_.node, config_.node_dir(), config_.message_log},
                                [this](const wire::Message& message) { branch_.say(message); });
    ranks_->refuse = [this](const std::string& why) { refuse_renewal(why); };
    ranks_->left = [this](pid_t old) { shared_names_.gone(old); };
    ranks_->promoted = [this](Rank rank, pid_t pid, const std::string& how) { promoted(rank, pid, how); };
    ranks_->copy_ended = [this](Rank rank, pid_t pid, const std::string& how) { copy_ended(rank, pid, how); };
    ranks_->leader_died = [this](Rank rank, pid_t pid, int status) { leader_died(rank, pid, status); };
    ranks_->streams.copy_is_elsewhere = [this](Rank rank) {
        const auto stream = streams_.find(rank);
        return stream && !stream->is_closed();
    };
    ranks_->streams.stream_has_ended = [this](Rank rank) {
        const auto stream = streams_.find(rank);
        return !stream || stream->is_closed() || stream->is_broken() ||
               stream->arrived() == stream->written();
    };
    ranks_->streams.copy_is_gone = [this](Rank rank) { streams_.forget(rank); };
    ranks_->ended = [this](Rank rank) {
        auto gone = perhaps_gone_.extract(static_cast<int>(rank.number()));
        if (gone) branch_.say(gone.mapped());
    };
    ranks_->world = [this](Rank rank, wire::Renew order) {
        order.epoch = branch_.tally().epoch();
        for (auto& agent : agents_)
            if (agent->rank == static_cast<int>(rank.number())) say(*agent, order);
    };
}

void Node::run() {
    for (;;) {
        turn(branch_.lost_since() || query_end_ || killed_ ? 100 : 1000);
        int64_t now = tree::now_ms();
        if (query_end_ && now >= query_end_) answer_query(true);
        if (!killed_ && branch_.lost_since() &&
            (ranks_ || now - branch_.lost_since() > kGraceMs)) {  // its own do not come back to the root
            spdlog::info("the root is gone");
            if (ranks_) ranks_->root_is_gone();  // no launcher ends them
            kill_ranks();
            branch_.to_children(wire::Kill{});
        }
        // As long as the root lives, so does the job: ranks may come at any time (a slow MPI_Init). Daemons
        // below leave first, so that those above know that nothing is left there.
        bool nobody = nobody_here() && (!ranks_ || ranks_->over());
        if (killed_ && nobody && (branch_.alone() || now - killed_ > kLeaveMs)) break;
    }
    shared_names_.all_gone();
    shared_names_.remove_unused();
    branch_.flush(1000);
}

void Node::turn(int timeout_ms) {
    write_to_agents();
    std::vector<pollfd> fds;
    fds.push_back({tree::now_ms() < closed_til_ ? -1 : listener_.get(), POLLIN, 0});
    fds.push_back({here_.crowd.fd(), POLLIN, 0});
    branch_.add_to(fds);
    memory_.add_to(fds);
    neighbours_.add_to(fds);
    const size_t ranks_at = fds.size();
    if (ranks_) ranks_->add_to(fds);
    int rest = branch_.rest(ranks_ ? ranks_->rest(timeout_ms) : timeout_ms);
    if (::poll(fds.data(), fds.size(), rest) < 0) return;

    branch_.serve(fds);
    if (fds[1].revents) serve_agents();
    // Messages that ranks sent before they went are taken before that.
    hand_up();
    drop_who_left();
    if (fds[0].revents) accept_agents();
    pump_clock();
    hand_up();
    memory_.serve();
    neighbours_.serve();
    if (ranks_) ranks_->serve(fds, ranks_at);
    serve_copies();
    shared_names_.remove_unused();
}

// Ranks that are new, then what they say.
void Node::hand_up() {
    if (!joined_.empty()) branch_.say(tree::joined(std::exchange(joined_, {})));
    branch_.hand_up(ranks());
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

// Takes messages that may come before a rank has said Hello.
bool Node::from_stranger(Agent& agent, const wire::Message& message) {
    if (auto* m = std::get_if<wire::Starting>(&message)) {
        if (introduce(agent, m->job_id)) agent.called = m->rank;
    } else if (auto* m = std::get_if<wire::InStarter>(&message)) {
        starters_ = true;
        branch_.say(*m);
    } else if (auto* m = std::get_if<wire::Stays>(&message)) {
        stays(agent, *m);
    } else if (auto* m = std::get_if<wire::Streams>(&message)) {
        streams(agent, *m);
    } else if (auto* m = std::get_if<wire::NoCopy>(&message); m && agent.rank < 0) {
        if (ranks_ && ranks_->arrives(agent.pid)) no_copy_here(m->rank, clipped(m->why));
    } else if (auto* hello = std::get_if<wire::Hello>(&message)) {
        if (!introduce(agent, hello->job_id)) return true;
        if (hello->rank < 0 || agent.rank >= 0) {
            spdlog::warn("pid {} says it is rank {}, and was {}", agent.pid, hello->rank, agent.rank);
            ::shutdown(agent.channel.fd(), SHUT_RDWR);
            return true;
        }
        plays(agent, hello->rank);
        agent.rebuilding = static_cast<bool>(hello->restarted_from);
        joined_.push_back(*hello);
    } else if (std::get_if<wire::Phase>(&message)) {
        if (agent.ours) {
            if (agent.rank < 0) agent.loads = std::get<wire::Phase>(message).rank;
            branch_.tally().take(agent.id, checked(agent, message));
        }
    } else {
        return false;
    }
    return true;
}

void Node::from_agent(Agent& agent, wire::Message message) {
    if (from_stranger(agent, message)) return;
    if (agent.rank < 0) {
        auto* last_word = std::get_if<wire::Warning>(&message);
        if (last_word != nullptr && agent.follows >= 0) {
            copies_lines_[agent.follows] = clipped(last_word->text);
            branch_.say(wire::Warning{clipped(last_word->text), last_word->epoch});
        }
        return;
    }
    spdlog::debug("rank {}: {}", agent.rank, wire::name_of(message));
    if (ranks_ && std::holds_alternative<wire::Saved>(message))
        ranks_->stands(Rank(static_cast<uint32_t>(agent.rank)));
    if (auto* m = std::get_if<wire::Clock>(&message)) {
        if (clock_ && agent.child >= 0 &&
            !clock_->from_child(static_cast<size_t>(agent.child), wire::plain(m->bytes)))
            refuse_clock(fmt::format("rank {}", agent.rank));
    } else if (auto* m = std::get_if<wire::Diagnosis>(&message)) {
        diagnosis(agent, *m);
    } else if (auto* m = std::get_if<wire::Wrote>(&message)) {
        if (ranks_)
            ranks_->copy_wrote(Rank(static_cast<uint32_t>(agent.rank)), agent.pid, m->output, m->error);
    } else if (auto* m = std::get_if<wire::Leaving>(&message)) {
        agent.code = m->code;
    } else if (auto* m = std::get_if<wire::Moved>(&message)) {
        moved(agent, *m);
    } else if (auto* m = std::get_if<wire::NoCopy>(&message)) {
        no_copy(agent, clipped(m->why));
    } else if (auto* m = std::get_if<wire::Fatal>(&message)) {
        branch_.say(wire::Fatal{clipped(m->line), m->code});
    } else if (auto* m = std::get_if<wire::LogSize>(&message)) {
        branch_.say(wire::LogSize{agent.rank, m->held, m->spilled});
    } else if (auto* m = std::get_if<wire::AskLiving>(&message)) {
        branch_.say(wire::AskLiving{agent.rank, m->number});
    } else if (auto* m = std::get_if<wire::OwnState>(&message)) {
        wire::OwnState said = *m;
        said.text = clipped(said.text);
        branch_.say(std::move(said));
    } else {
        answer_of(agent, std::move(message));
    }
}

void Node::answer_of(Agent& agent, wire::Message message) {
    const wire::Message answer = checked(agent, std::move(message));
    if (is_one_of<wire::Images, wire::Sizes, wire::LogsSaid>(answer) ||
        !branch_.tally().take(agent.id, answer)) {
        spdlog::warn("rank {} sent {}, which is not for agents to send", agent.rank, wire::name_of(answer));
    } else if (auto* m = std::get_if<wire::Restored>(&answer)) {
        agent.rebuilding = false;
        if (m->ok) branch_.tally().take(agent.id, wire::Phase{wire::RestartPhase::go, agent.rank});
    }
}

// The process that speaks for the rank from now on has the connection already.
void Node::moved(Agent& agent, const wire::Moved& moved) {
    if (!ranks_ || !ranks_->moved(Rank(static_cast<uint32_t>(agent.rank)), agent.pid, moved.pid)) {
        spdlog::warn("rank {} says it is process {}, which is not this daemon's", agent.rank, moved.pid);
        return;
    }
    agent.pid = moved.pid;
    agent.process = Fd(static_cast<int>(::syscall(SYS_pidfd_open, agent.pid, 0)));
    branch_.say(wire::Moved{agent.rank, moved.pid, clipped(moved.mpi), clipped(moved.mpi_version)});
}

// A rank speaks for itself alone, and in lines of some length.
wire::Message Node::checked(const Agent& agent, wire::Message message) const {
    if (auto* m = std::get_if<wire::Refuse>(&message))
        m->why = fmt::format("rank {}: {}", agent.rank, clipped(m->why));
    else if (auto* m = std::get_if<wire::Again>(&message))
        m->why = fmt::format("rank {}: {}", agent.rank, clipped(m->why));
    else if (auto* m = std::get_if<wire::Warning>(&message))
        m->text = clipped(m->text);
    else if (auto* m = std::get_if<wire::Saved>(&message))
        m->rank = agent.rank, m->error = clipped(m->error);
    else if (auto* m = std::get_if<wire::Sized>(&message))
        m->rank = agent.rank;
    else if (auto* m = std::get_if<wire::LogSaid>(&message))
        m->rank = agent.rank;
    else if (auto* m = std::get_if<wire::Phase>(&message))
        m->rank = agent.rank >= 0 ? agent.rank : m->rank, m->there = 1;
    std::visit(
        [](auto& m) {
            if constexpr (requires { m.ranks = 1u; }) m.ranks = 1;
        },
        message);
    if (auto* m = std::get_if<wire::Restored>(&message)) m->error = clipped(m->error);
    return message;
}

void Node::from_root(const wire::Message& message) {
    spdlog::debug("root: {}", wire::name_of(message));
    if (auto* m = std::get_if<wire::Renew>(&message)) return renew(*m);
    if (ranks_ && is_one_of<wire::Resume, wire::Cancel>(message))
        ranks_->renewed(std::holds_alternative<wire::Resume>(message));
    if (auto* m = std::get_if<wire::StartCopy>(&message)) return start_copy(*m);
    if (auto* m = std::get_if<wire::StartDaemons>(&message)) return neighbours_.start(*m);
    if (auto* m = std::get_if<wire::EndCopies>(&message)) return end_copies(*m);
    if (auto* m = std::get_if<wire::Inject>(&message)) return inject(*m);
    if (auto* m = std::get_if<wire::TakePlace>(&message)) return take_place(*m);
    if (auto* m = std::get_if<wire::CopyGone>(&message)) return copy_gone(*m);
    if (auto* m = std::get_if<wire::AskLiving>(&message)) return say_who_lives(*m);
    if (auto* m = std::get_if<wire::Living>(&message)) return hear_who_lives(*m);
    if (ranks_ && ranks_->from_root(message)) return;
    if (memory_.from_root(message, is_of_ranks(message) ? ranks_here(message) : MemoryLevel::Ranks{})) return;
    branch_.tally().ask(message);
    if (auto* m = std::get_if<wire::Clock>(&message)) {
        if (clock_ && !clock_->from_parent(wire::plain(m->bytes))) refuse_clock("the root");
    } else if (std::get_if<wire::Begin>(&message)) {
        begin_clock();
        broadcast(message);
    } else if (auto* m = std::get_if<wire::Places>(&message)) {
        hand_out(*m);
    } else if (auto* m = std::get_if<wire::LogOrders>(&message)) {
        hand_out(*m);
    } else if (std::get_if<wire::Chosen>(&message)) {
        for (auto& agent : agents_)
            if (agent->ours && agent->rank < 0) say(*agent, memory_.filled(message));
    } else if (auto* m = std::get_if<wire::Query>(&message)) {
        diagnosis_.clear();
        below_ = {"", 0, 0};
        diagnosed_ = 0;
        query_end_ = tree::now_ms() + m->patience_ms;
        for (auto& agent : agents_) agent->diagnosed = false;
        asked_.clear();
        for (auto& [child, ranks] : branch_.relay().children()) asked_.insert(child);
        broadcast(message);
        answer_query(false);
    } else if (std::get_if<wire::Kill>(&message)) {
        kill_ranks();
    } else if (std::get_if<wire::Depart>(&message)) {
        ending_ = true;
        leave_directory();
        broadcast(message);
    } else if (auto* m = std::get_if<wire::Stand>(&message)) {
        signal_ranks(m->still ? SIGSTOP : SIGCONT);
    } else if (is_for_agents(message)) {
        if (std::get_if<wire::FinalizeReleased>(&message)) {
            ending_ = true;
            if (ranks_) ranks_->end_copies();  // each rank ends its program itself now
            leave_directory();
        }
        if (std::get_if<wire::Go>(&message)) branch_.tally().forget_phases();
        broadcast(filled(message));
    }
}

// Ranks get their environment from who starts them.
void Node::renew(const wire::Renew& order) {
    branch_.tally().ask(order);
    try {
        if (!ranks_) fail("only ranks that `fermata run --launcher own` has started get new libraries");
        ranks_->renew(order);
    } catch (const std::exception& error) {
        refuse_renewal(error.what());
    }
}

void Node::refuse_renewal(const std::string& why) {
    const std::string line = fmt::format("on {}: {}", config_.node, why);
    branch_.tally().take(-1, wire::Refuse{branch_.tally().epoch(), line});
}

// Fills in what only this daemon knows of its node.
wire::Message Node::filled(wire::Message message) const {
    if (auto* m = std::get_if<wire::Save>(&message))
        for (auto& agent : agents_)
            if (agent->rank >= 0 && (m->lowest < 0 || agent->rank < m->lowest)) m->lowest = agent->rank;
    return memory_.filled(std::move(message));
}

// Those that the message speaks of.
MemoryLevel::Ranks Node::ranks_here(const wire::Message& message) const {
    MemoryLevel::Ranks here;
    auto* room = std::get_if<wire::MakeRoom>(&message);
    const auto of = room && !room->ranks.empty() ? tree::Ranks::of(room->ranks) : std::nullopt;
    for (auto& agent : agents_) {
        if (of && !of->contains(agent->rank)) continue;
        if (agent->ours && agent->pid > 0) here.pids.push_back(agent->pid);
        if (agent->rank < 0 && agent->loads >= 0) here.waiting.push_back(agent->loads);
    }
    return here;
}

// Counts who takes part: the ranks that are here, and the daemons that have ranks below them.
void Node::begin_clock() {
    size_t children = 0;
    for (auto& agent : agents_) agent->child = agent->rank >= 0 ? static_cast<int>(children++) : -1;
    clock_child_.clear();
    for (auto& [child, ranks] : branch_.relay().children())
        if (ranks > 0) clock_child_[child] = children++;
    always(clock_child_.size() <= children, "more daemons that take part than children");
    clock_ = std::make_unique<clock::Node>(children);
}

// Takes messages that daemons hand on hop by hop.
void Node::from_below(int child, const wire::Message& message) {
    if (auto* m = std::get_if<wire::Clock>(&message)) {
        auto at = clock_child_.find(child);
        if (clock_ && at != clock_child_.end() && !clock_->from_child(at->second, wire::plain(m->bytes)))
            refuse_clock(fmt::format("daemon {}", child));
    } else if (auto* m = std::get_if<wire::Diagnosis>(&message)) {
        if (below_.text.size() < kMaxDiagnosis) below_.text += m->text;
        below_.ranks += m->ranks;
        below_.nodes += m->nodes;
        asked_.erase(child);
        if (query_end_)
            answer_query(false);
        else  // later than others could wait
            branch_.to_parent(std::exchange(below_, {"", 0, 0}));
    }
}

// Each rank its own place.
void Node::hand_out(const wire::Places& places) {
    auto ranks = tree::Ranks::of(places.ranks);
    if (!ranks || places.begins.size() != ranks->count()) return;
    for (auto& agent : agents_)
        if (ranks->contains(agent->rank))
            say(*agent, wire::Placed{places.epoch, agent->rank, places.begins[ranks->place_of(agent->rank)]});
}

void Node::hand_out(const wire::LogOrders& all) {
    auto ranks = tree::Ranks::of(all.ranks);
    if (!ranks || all.orders.size() != ranks->count()) return;
    for (auto& agent : agents_)
        if (ranks->contains(agent->rank))
            say(*agent, wire::LogOrder{all.epoch, agent->rank, all.orders[ranks->place_of(agent->rank)]});
}

// Slurm may kill this daemon with the node's last rank (docs/internals/slurm.md): so its directory goes
// before the ranks do, and those of daemons that Slurm has killed in earlier lives. A program that a script
// starts behind its own would still look for the directory.
void Node::leave_directory() {
    if (!std::getenv("SLURM_STEP_ID") || starters_) return;
    shared_names_.all_gone();  // their notes go with it
    dir_ = {};
    tree::sweep(config_.run_dir);
}

// Written with what else is said in this turn.
void Node::broadcast(const wire::Message& message) {
    const wire::Bytes frame = wire::encode(message);
    for (auto& agent : agents_)
        if (agent->rank >= 0) agent->channel.put(frame), spoke(*agent);
}

// A clock message that cannot be: without it the checkpoint would wait for ever.
void Node::refuse_clock(const std::string& from) {
    branch_.tally().take(
        -1, wire::Refuse{branch_.tally().epoch(),
                         fmt::format("the protocol broke: from {} to the node daemon on {}: {}", from,
                                     config_.node, clock_->error())});
}

void Node::pump_clock() {
    if (!clock_) return;
    clock::Bytes bytes;
    while (clock_->next_up(&bytes)) branch_.to_parent(wire::Clock{wire::packed(bytes)});
    while (clock_->next_down(&bytes)) {
        wire::Clock message{wire::packed(bytes)};
        broadcast(message);
        branch_.to_children(message);
    }
}

void Node::diagnosis(Agent& agent, const wire::Diagnosis& said) {
    if (!query_end_ || agent.diagnosed) return;
    agent.diagnosed = true;
    ++diagnosed_;
    size_t start = 0;
    while (start < said.text.size() && diagnosis_.size() < kMaxDiagnosis) {
        size_t end = std::min(said.text.find('\n', start), said.text.size());
        if (end > start)
            diagnosis_ += fmt::format("rank {} on {}: {}\n", agent.rank, config_.node,
                                      said.text.substr(start, end - start));
        start = end + 1;
    }
    answer_query(false);
}

void Node::answer_query(bool late) {
    if (!query_end_ || (!late && (diagnosed_ < ranks() || !asked_.empty()))) return;
    for (auto& agent : agents_) {
        if (agent->rank >= 0 && !agent->diagnosed)
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
    branch_.to_parent(wire::Diagnosis{diagnosis_ + below_.text, ranks() + below_.ranks, 1 + below_.nodes});
    below_ = {"", 0, 0};
    query_end_ = 0;
}

void Node::kill_ranks() {
    ending_ = true;
    if (!killed_) killed_ = tree::now_ms();
    signal_ranks(SIGKILL);
    if (ranks_) ranks_->signal(SIGKILL, true);
}

void Node::signal_ranks(int signal) {
    for (auto& agent : agents_)
        if (agent->process) ::syscall(SYS_pidfd_send_signal, agent->process.get(), signal, nullptr, 0);
}

}  // namespace fermata::noded
