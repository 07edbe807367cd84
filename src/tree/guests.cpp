#include "tree/guests.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/invariant.h"
#include "base/log.h"
#include "tree/channel.h"
#include "tree/root_address.h"

namespace fermata::tree {
namespace {

constexpr size_t kPlaces = 256;
constexpr int64_t kHandshakeMs = 10000;  // then he goes
constexpr int64_t kLeastMs = 200;        // before that he does not, for others to come in
constexpr int64_t kRestMs = 10;          // after a turn
constexpr int64_t kSavedMs = 100;        // of such rest may be put off: a start is a few turns, a flood many
constexpr int kLetInAtOnce = 32;         // of one turn
constexpr int kReads = 16;
constexpr int64_t kNoFilesMs = 100;
constexpr rlim_t kReserve = 64;  // descriptors: generations, the control socket, mpiexec

std::array<unsigned char, 8> host_of(const sockaddr_storage& where) {
    std::array<unsigned char, 8> host{};
    if (where.ss_family == AF_INET) {
        std::memcpy(host.data(), &reinterpret_cast<const sockaddr_in&>(where).sin_addr, 4);
    } else if (where.ss_family == AF_INET6) {
        const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(where).sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(&address))
            std::memcpy(host.data(), address.s6_addr + 12, 4);
        else
            std::memcpy(host.data(), address.s6_addr, 8);
    }
    return host;
}

}  // namespace

Guests::Guests(Fd listener, const wire::Key& key) : listener_(std::move(listener)), key_(key) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = 1024;
    rlim_t all = std::min<rlim_t>(limit.rlim_cur, 1 << 30);
    files_ = static_cast<int>(all - std::min(kReserve, all / 2));
    places_ = std::clamp<size_t>(all / 4, 8, kPlaces);
}

int Guests::rest(int otherwise) const {
    int64_t now = now_ms();
    return now >= next_ ? otherwise : static_cast<int>(std::min<int64_t>(otherwise, next_ - now));
}

void Guests::add_to(std::vector<pollfd>& fds) {
    int64_t now = now_ms();
    polled_ = now >= next_;
    door_polled_ = polled_ && now >= closed_til_;
    polled_guests_ = polled_ ? guests_.size() : 0;
    if (door_polled_) fds.push_back({listener_.get(), POLLIN, 0});
    for (size_t i = 0; i < polled_guests_; ++i) fds.push_back({guests_[i].socket.get(), POLLIN, 0});
}

void Guests::serve(const std::vector<pollfd>& fds, size_t first) {
    int64_t now = now_ms();
    while (!guests_.empty() && !polled_ && now - guests_.front().since > kHandshakeMs) guests_.pop_front();
    if (!polled_) return;
    always(first + (door_polled_ ? 1 : 0) + polled_guests_ <= fds.size(), "guests that were not polled");
    bool busy = door_polled_ && fds[first].revents;
    size_t at = first + (door_polled_ ? 1 : 0);
    std::deque<Guest> stay;
    for (size_t i = 0; i < guests_.size(); ++i) {
        Guest& guest = guests_[i];
        Stay what = Stay::yes;
        if (i < polled_guests_ && fds[at + i].revents) {
            busy = true;
            what = serve(guest);
        }
        if (what == Stay::proved) on_proof(std::move(guest.socket), guest.shake);
        if (what == Stay::yes && now - guest.since <= kHandshakeMs) stay.push_back(std::move(guest));
    }
    guests_ = std::move(stay);
    if (door_polled_ && fds[first].revents) let_in();
    if (busy) next_ = std::max(next_, now_ms() - kSavedMs) + kRestMs;
}

void Guests::let_in() {
    for (int turn = 0; turn < kLetInAtOnce && make_room(); ++turn) {
        sockaddr_storage where{};
        socklen_t size = sizeof where;
        Fd sock(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&where), &size,
                          SOCK_CLOEXEC | SOCK_NONBLOCK));
        bool no_files = !sock && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
        if (no_files || sock.get() >= files_) {
            spdlog::warn("no descriptors left for those who connect to the root");
            closed_til_ = now_ms() + kNoFilesMs;
            return;
        }
        if (!sock && errno != ECONNABORTED && errno != EINTR) return;
        if (!sock) continue;
        tune_tcp(sock.get());
        guests_.push_back(
            {std::move(sock), wire::Handshake(wire::Role::root, key_), host_of(where), now_ms(), kReads});
        // A node daemon speaks at once: most have by now.
        Stay what = serve(guests_.back());
        if (what == Stay::proved) on_proof(std::move(guests_.back().socket), guests_.back().shake);
        if (what != Stay::yes) guests_.pop_back();
    }
}

// Whether there is a place for one more; if not now, the door stays closed until there can be.
bool Guests::make_room() {
    if (guests_.size() < places_) return true;
    std::map<Host, size_t> count;
    for (const Guest& guest : guests_) ++count[guest.host];
    size_t most = 0;
    for (auto& [host, guests] : count) most = std::max(most, guests);
    auto oldest = std::find_if(guests_.begin(), guests_.end(),
                               [&](const Guest& guest) { return count[guest.host] == most; });
    if (now_ms() - oldest->since < kLeastMs) {
        closed_til_ = oldest->since + kLeastMs;
        return false;
    }
    guests_.erase(oldest);
    return true;
}

Guests::Stay Guests::serve(Guest& guest) {
    char buffer[4096];
    ssize_t n = ::recv(guest.socket.get(), buffer, sizeof buffer, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Stay::yes;
    if (n <= 0) return Stay::no;
    std::string answer = guest.shake.feed(buffer, static_cast<size_t>(n));
    if (guest.shake.failed()) {
        spdlog::warn("a connection is refused: {}", guest.shake.error());
        return Stay::no;
    }
    // Less than one packet into an empty socket buffer: never partial.
    if (!answer.empty() && ::send(guest.socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL) !=
                               static_cast<ssize_t>(answer.size()))
        return Stay::no;
    if (guest.shake.done()) return Stay::proved;
    return --guest.reads > 0 ? Stay::yes : Stay::no;
}

}  // namespace fermata::tree
