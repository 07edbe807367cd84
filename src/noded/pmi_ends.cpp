#include "noded/pmi_ends.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "files/folder.h"
#include "pmi/engine.h"
#include "pmi/fence_on_wire.h"
#include "pmi/pmix_link.h"
#include "tree/channel.h"
#include "tree/local_socket.h"

namespace fermata::noded {
namespace {

constexpr std::nullopt_t kHelper = std::nullopt;
constexpr int kHelpersEnd = 3;
// A client of PMI-1 asks one question at a time, whose answer is a line: who lets so much wait does not read.
constexpr size_t kMostForRank = 1 << 20;
// In one turn, of one who speaks without end.
constexpr size_t kMostInTurn = 1 << 20;

// Ranks that connect at once, each with a line of this length at most, in this time.
constexpr size_t kMostGuests = 1024, kLongestLine = 100;
constexpr int64_t kGuestMs = 30'000;
constexpr int kHelperEndsMs = 2000;

std::string random_word() {
    uint64_t number[2] = {};
    if (::getrandom(number, sizeof number, 0) != ssize_t(sizeof number))
        fail_errno("cannot get random bytes");
    return fmt::format("{:016x}{:016x}", number[0], number[1]);
}

std::string helper_program() {
    char path[4096];
    ssize_t n = ::readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) fail_errno("cannot read /proc/self/exe");
    std::string self(path, static_cast<size_t>(n));
    return self.substr(0, self.rfind('/')) + "/pmix";
}

std::pair<Fd, Fd> socket_pair() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        fail_errno("cannot create a socket for a rank");
    return {Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

PmiEnds::PmiEnds(const pmi::World& world, const std::string& mpi, const std::string& directory)
    : directory_(directory), socket_name_(fmt::format("pmi.{}", world.epoch)) {
    if (mpi == "openmpi") {
        auto link = std::make_unique<pmi::PmixLink>(world, directory);
        link_ = link.get();
        link_->is_ending = [this](Rank rank) { return is_ending && is_ending(rank); };
        service_ = std::move(link);
        start_helper();
    } else {
        auto engine = std::make_unique<pmi::Engine>(world);
        engine_ = engine.get();
        service_ = std::move(engine);
    }
}

PmiEnds::~PmiEnds() {
    if (listener_) (void)files::Folder::at(directory_).remove_file(socket_name_);
    ends_.clear();  // the helper leaves
    if (helper_ <= 0) return;
    // The job may go on behind this: the daemon does not wait for a helper that does not.
    for (int left = kHelperEndsMs / 10; ::waitpid(helper_, nullptr, WNOHANG) == 0; --left) {
        if (left == 0) ::kill(helper_, SIGKILL);
        ::usleep(10'000);
    }
}

void PmiEnds::start_helper() {
    auto [ours, theirs] = socket_pair();
    std::string program = helper_program();
    if (::access(program.c_str(), X_OK) != 0)
        fail("--launcher own needs {} for Open MPI: install libpmix-dev and build Fermata again", program);
    helper_ = ::fork();
    if (helper_ < 0) fail_errno("cannot start {}", program);
    if (helper_ == 0) {
        if (theirs.get() == kHelpersEnd)
            ::fcntl(kHelpersEnd, F_SETFD, 0);
        else
            ::dup2(theirs.get(), kHelpersEnd);
        ::execl(program.c_str(), program.c_str(), nullptr);
        ::_exit(127);
    }
    ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
    ends_[kHelper].socket = std::move(ours);
}

bool PmiEnds::ready() const { return link_ == nullptr || link_->ready(); }

std::pair<Fd, PmiEnds::Environment> PmiEnds::prepare(Rank rank) {
    std::pair<Fd, Environment> prepared{Fd(), service_->environment(rank)};
    if (engine_ == nullptr) return prepared;
    auto [ours, theirs] = socket_pair();
    ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
    ends_[rank].socket = std::move(ours);
    prepared.second.emplace_back("PMI_FD", std::to_string(theirs.get()));
    prepared.first = std::move(theirs);
    return prepared;
}

PmiEnds::Environment PmiEnds::invite(Rank rank) {
    Environment variables = service_->environment(rank);
    if (engine_ == nullptr) return variables;
    if (!listener_) listener_ = tree::listen_local(directory_, socket_name_);
    std::string& line = lines_[rank];
    line = fmt::format("rank {} {}", rank.number(), random_word());
    variables.emplace_back("FERMATA_PMI", socket_name_);
    variables.emplace_back("FERMATA_PMI_LINE", line);
    return variables;
}

// The directory is this user's alone, and so are they.
void PmiEnds::let_in() {
    for (;;) {
        Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!fd) break;
        if (tree::peer_of(fd.get()).uid == ::geteuid() && guests_.size() < kMostGuests)
            guests_.push_back({std::move(fd), "", tree::now_ms()});
    }
    std::erase_if(guests_, [this](Guest& guest) {
        return introduced(guest) || !guest.socket || tree::now_ms() - guest.since > kGuestMs;
    });
}

// Byte by byte: what follows the line is for the service.
bool PmiEnds::introduced(Guest& guest) {
    char byte = 0;
    ssize_t n = 0;
    while ((n = ::recv(guest.socket.get(), &byte, 1, MSG_DONTWAIT)) == 1) {
        if (byte != '\n') {
            guest.said += byte;
            if (guest.said.size() > kLongestLine) guest.socket.reset();
            if (!guest.socket) return false;
            continue;
        }
        for (auto line = lines_.begin(); line != lines_.end(); ++line)
            if (line->second == guest.said) {
                ends_[line->first].socket = std::move(guest.socket);
                lines_.erase(line);
                return true;
            }
        guest.socket.reset();
        return false;
    }
    if (n == 0) guest.socket.reset();
    return false;
}

bool PmiEnds::from_root(const wire::Message& message) {
    auto* fence = std::get_if<wire::Fence>(&message);
    auto* ask = std::get_if<wire::AskRank>(&message);
    auto* answer = std::get_if<wire::RankAnswer>(&message);
    if (!fence && !ask && !answer) return false;
    others_fault_ = true;
    if (fence) service_->result(pmi::from_wire(*fence));
    if (ask)
        if (auto rank = Rank::of(ask->rank)) service_->asked({ask->epoch, ask->from, ask->number, *rank});
    if (answer) service_->answered({answer->epoch, answer->to, answer->number, answer->data, answer->fault});
    pump();
    others_fault_ = false;
    return true;
}

void PmiEnds::ended(Rank rank, const std::string& how) {
    others_fault_ = true;
    service_->ended(rank, how);
    ends_.erase(rank);
    pump();
    others_fault_ = false;
}

wire::RankEnd PmiEnds::stage(Rank rank) {
    // What it has said before counts, and what the helper has said of it.
    for (Speaker speaker : {Speaker(rank), Speaker()})
        if (auto end = ends_.find(speaker); end != ends_.end()) read(end->first, end->second);
    pump();
    switch (service_->stage(rank)) {
        case pmi::Stage::silent:
            return wire::RankEnd::silent;
        case pmi::Stage::running:
            return wire::RankEnd::running;
        case pmi::Stage::finalized:
            return wire::RankEnd::finalized;
        case pmi::Stage::failed:
            break;
    }
    return wire::RankEnd::failed;
}

void PmiEnds::add_to(std::vector<pollfd>& fds) {
    polled_.clear();
    first_ = fds.size();
    for (auto& [speaker, end] : ends_) {
        polled_.push_back(speaker);
        fds.push_back(
            {end.socket.get(), static_cast<short>(POLLIN | (end.waiting.empty() ? 0 : POLLOUT)), 0});
    }
    fds.push_back({listener_.get(), POLLIN, 0});
    for (const Guest& guest : guests_) fds.push_back({guest.socket.get(), POLLIN, 0});
    added_ = polled_.size() + 1 + guests_.size();
}

void PmiEnds::serve(const std::vector<pollfd>& fds) {
    for (size_t i = 0; i < std::min(added_, polled_.size()); ++i) {
        short revents = fds[first_ + i].revents;
        auto end = ends_.find(polled_[i]);
        if (end == ends_.end() || !revents) continue;
        if (revents & POLLOUT) write(end->second);
        if (revents & (POLLIN | POLLHUP | POLLERR)) read(end->first, end->second);
    }
    if (listener_) let_in();
    pump();
    added_ = 0;
}

void PmiEnds::read(Speaker speaker, End& end) {
    char buffer[65536];
    for (size_t left = kMostInTurn; end.socket && left >= sizeof buffer; left -= sizeof buffer) {
        ssize_t n = ::recv(end.socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) {
            end.socket.reset();
            if (!speaker) link_->helper_ended("has ended");
        } else if (std::string_view bytes(buffer, static_cast<size_t>(n)); !speaker) {
            link_->from_helper(bytes);
        } else {
            engine_->from_rank(*speaker, bytes);
        }
    }
}

void PmiEnds::write(End& end) {
    while (end.socket && !end.waiting.empty()) {
        ssize_t n =
            ::send(end.socket.get(), end.waiting.data(), end.waiting.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0) end.waiting.clear();  // reading finds the end
        if (n > 0) end.waiting.erase(0, static_cast<size_t>(n));
    }
}

void PmiEnds::pump() {
    while (auto event = service_->next()) handle(*event);
}

void PmiEnds::handle(const pmi::Event& event) {
    auto to = [this](Speaker who, const std::string& bytes) {
        auto end = ends_.find(who);
        if (end == ends_.end()) return;
        if (who && !end->second.socket) return;  // ended; more answers to it may be on their way
        end->second.waiting += bytes;
        write(end->second);
        if (!who || end->second.waiting.size() <= kMostForRank) return;
        end->second.waiting = {};
        end->second.socket.reset();
        on_fault(who, fmt::format("rank {} asks its launcher and does not read the answers: it is ended",
                                  who->number()));
    };
    if (auto* said = std::get_if<pmi::ToRank>(&event))
        to(said->rank, said->bytes);
    else if (auto* help = std::get_if<pmi::ToHelper>(&event))
        to(kHelper, help->bytes);
    else if (auto* fence = std::get_if<pmi::Fence>(&event))
        up(pmi::on_wire(*fence));
    else if (auto* ask = std::get_if<pmi::Ask>(&event))
        up(wire::AskRank{ask->epoch, ask->from, ask->number, ask->rank.number()});
    else if (auto* answer = std::get_if<pmi::Answer>(&event))
        up(wire::RankAnswer{answer->epoch, answer->to, answer->number, answer->data, answer->fault});
    else if (auto* abort = std::get_if<pmi::Abort>(&event))
        on_abort(*abort);
    else if (auto* fault = std::get_if<pmi::Fault>(&event); fault && !others_fault_)
        on_fault(fault->rank, fault->line);
}

}  // namespace fermata::noded
