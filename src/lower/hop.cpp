#include "lower/hop.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/environment.h"
#include "base/error.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "base/sys.h"
#include "image/image.h"
#include "lower/mutex_areas.h"
#include "lower/program_children.h"
#include "lower/second_life.h"
#include "lower/services.h"
#include "lower/stay.h"
#include "split/fds/descriptors.h"
#include "split/hop/second_half.h"
#include "split/memory/memory.h"
#include "split/partition/partition.h"
#include "split/process/child.h"
#include "split/process/children.h"
#include "split/threads/stop.h"
#include "tree/local_socket.h"

namespace fermata::lower {
namespace {

using Words = std::vector<std::string>;

// Variables that only a first start or a restart needs, and those that belong to the program.
constexpr std::string_view kLeftOut[] = {
    "FERMATA_RESTORE=", "FERMATA_GENERATION=", "FERMATA_CHOICE=",  "FERMATA_SEAL=", "FERMATA_INPUT=",
    "FERMATA_MAPPED=",  "FERMATA_RESTARTS=",   "FERMATA_PRELOAD=", "LD_PRELOAD=",   "FERMATA_PMI_LINE="};

// The rank's own end of the server of its new world; none where MPI finds it by the environment alone.
Fd reach_server(const Words& environment, const std::string& directory) {
    const std::string name = value_in(environment, "FERMATA_PMI");
    if (name.empty()) return {};
    Fd socket = tree::connect_local(directory, name);
    const std::string line = value_in(environment, "FERMATA_PMI_LINE") + "\n";
    if (!socket || ::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL) != ssize_t(line.size()))
        fail_errno("cannot reach the node daemon at {}/{}", directory, name);
    return Fd(split::raise_descriptor(socket.release()));
}

Words environment_of_child(const Words& given, uint32_t restarts, int server) {
    Words words;
    for (const std::string& word : given) {
        bool left_out = false;
        for (std::string_view name : kLeftOut) left_out |= word.starts_with(name);
        if (!left_out) words.push_back(word);
    }
    if (std::string below = value_in(given, "FERMATA_LOWER_PRELOAD"); !below.empty())
        words.push_back("LD_PRELOAD=" + below);
    words.push_back(fmt::format("FERMATA_RESTARTS={}", restarts));
    if (server >= 0) words.push_back(fmt::format("PMI_FD={}", server));
    return words;
}

}  // namespace

Hop::Hop(const SavedRank& who, const MpiFacts& facts, const tree::AgentConfig& config,
         const wire::Renew& order, const wire::Bytes& orders)
    : Together(order.epoch, who.rank),
      who_(who),
      facts_(facts),
      config_(config),
      order_(order),
      orders_(reinterpret_cast<const char*>(orders.data()), orders.size()) {
    if (orders_.empty()) meet();
}

Hop::~Hop() {
    if (stays_) the_upper()->log_copy_gone();  // the child has not come to lead
    if (process_) ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
}

void Hop::help() { the_upper()->before_save(); }

Words Hop::start(const tree::AgentLink& link) {
    try {
        if (int code = orders_.empty() ? the_upper()->before_save() : 0)
            fail("files or windows cannot be kept at this moment (MPI error class {}, e.g. an open epoch)",
                 code);
        make_child(link);
    } catch (const std::exception& error) {
        note(error.what());
    }
    return std::move(warnings_);
}

// A child of this process's parent takes its place: nobody else may wait for this one's end.
void Hop::check_parent(const tree::AgentLink& link) {
    const pid_t parent = ::getppid(), daemon = tree::peer_of(link.fd()).pid;
    if (parent != daemon)
        fail("process {} has started the program, and would take the end of this process for the program's",
             parent);
}

void Hop::make_child(const tree::AgentLink& link) {
    check_parent(link);
    warnings_ = split::threads::describe_stopped_threads();
    // Children that run are refused by prepare_child().
    if (std::string line = note_children(who_.node, split::process::children(), false); !line.empty())
        warnings_.push_back(line);
    const split::process::ForChild rest = split::process::prepare_child(process_limits());
    warnings_.insert(warnings_.end(), rest.warnings.begin(), rest.warnings.end());
    waiting_ = rest.waiting;
    prepare_to_stay();
    const split::MemoryTable memory = split::collect_memory().table;
    // The child's threads have other ids.
    split::threads::MutexSearch held(mutex_areas(memory), {});
    held.in_shared_memory();
    held.in_own_memory();

    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail_errno("cannot create a socket");
    Fd ours(split::raise_descriptor(ends[0])), theirs(split::raise_descriptor(ends[1]));
    const Fd server = reach_server(order_.environment, config_.node_dir());

    SecondLife life;
    life.epoch = order_.epoch;
    life.anchors = anchors_here();
    life.program = who_.program;
    life.many_threads = facts_.many_threads;
    life.memory = split::encode(memory);
    life.layout = split::layout_notes();
    life.process_state = rest.state;
    life.process_notes = rest.notes;
    life.speaks_through = theirs.get();
    life.link = link.fd();
    life.orders = orders_;

    split::hop::Wanted wanted{.program = order_.lower,
                              .arguments = {fmt::format("lower-{}", order_.mpi)},
                              .environment = environment_of_child(order_.environment, config_.restarts + 1,
                                                                  server ? server.get() : -1),
                              .handed_over = life.to_text(),
                              .descriptors = rest.descriptors};
    for (int fd : {theirs.get(), link.fd(), server.get()}) wanted.descriptors.push_back(fd);
    split::hop::SecondHalf second(wanted);

    child_ = std::make_unique<tree::AgentLink>(config_, std::move(ours));
    int process = -1;
    split::let_fork_copy(memory, true);
    const long pid = sys(SYS_clone, CLONE_PARENT | CLONE_PIDFD, nullptr, &process, nullptr, 0);
    if (pid == 0) {
        kill_point("child.forked");
        second.enter();
    }
    split::let_fork_copy(memory, false);
    if (pid < 0) fail("no process for a second lower half: {}", std::strerror(static_cast<int>(-pid)));
    pid_ = static_cast<pid_t>(pid);
    process_ = Fd(split::raise_descriptor(process));
}

bool Hop::child_done() {
    while (auto message = child_->receive()) {
        if (auto* m = std::get_if<wire::Restored>(&*message)) {
            if (!m->ok) note(m->error);
            return true;
        }
        if (auto* m = std::get_if<wire::Fatal>(&*message)) note(m->line);
        if (auto* m = std::get_if<wire::Hello>(&*message)) library_ = {m->mpi, m->mpi_version};
    }
    if (!child_->closed()) return false;
    note("its second lower half has ended before it could go on");
    return true;
}

wire::Saved Hop::conclude() {
    saved_.checksum = image::Checksum{}.hex();
    return saved_;
}

void Hop::prepare_to_stay() {
    if (order_.copies.empty()) return;
    no_copy_ = why_not_stay();
    if (no_copy_.empty())
        if (const char* upper = the_upper()->log_begin_copy()) no_copy_ = upper;
    stays_ = no_copy_.empty();
}

void Hop::hand_over(tree::AgentLink& link) {
    link.send(wire::Moved{static_cast<int32_t>(rank_.number()), pid_, library_.name, library_.version});
    child_->send(wire::Waiting{split::process::take_signals_since(waiting_, the_upper()->ids)});
    kill_point("hop.moved");
    child_->send(wire::Go{});
    const std::string rest = link.rest();
    size_t at = 0;
    while (at < rest.size()) {
        ssize_t n = ::send(child_->fd(), rest.data() + at, rest.size() - at, MSG_NOSIGNAL);
        if (n > 0) at += static_cast<size_t>(n);
        if (n < 0 && errno != EINTR && errno != EAGAIN) break;
    }
}

void Hop::let_go(tree::AgentLink& link) {
    hand_over(link);
    for (;;) sys(SYS_exit_group, 0);
}

std::unique_ptr<tree::AgentLink> Hop::let_go_and_stay(tree::AgentLink& link) {
    std::unique_ptr<tree::AgentLink> own;
    try {
        own = stay_behind(config_);
    } catch (const std::exception& error) {  // as without a copy
        link.send(wire::NoCopy{static_cast<int32_t>(rank_.number()), "", error.what()});
        the_upper()->log_copy_gone();
        let_go(link);
    }
    hand_over(link);
    // After that: the daemon knows by then that this process has left the rank.
    own->send(wire::Stays{config_.job_id, static_cast<int32_t>(rank_.number())});
    process_.reset();
    stays_ = false;
    return own;
}

}  // namespace fermata::lower
