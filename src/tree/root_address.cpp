#include "tree/root_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <random>
#include <vector>

#include "base/error.h"
#include "base/host_name.h"
#include "base/log.h"

namespace fermata::tree {
namespace {

constexpr int64_t kAttemptMs = 10000;  // of one address, all in all
constexpr size_t kMostAddresses = 64;

bool is_loopback(const Address& address) {
    if (address.where.ss_family == AF_INET6) {
        const in6_addr& a = reinterpret_cast<const sockaddr_in6&>(address.where).sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(&a) || (IN6_IS_ADDR_V4MAPPED(&a) && a.s6_addr[12] == 127);
    }
    return (ntohl(reinterpret_cast<const sockaddr_in&>(address.where).sin_addr.s_addr) >> 24) == 127;
}

}  // namespace

// One connection to what may be the root, or a parent. Nothing here waits.
class Connecting::Attempt {
  public:
    enum class State { connecting, talking, proved, failed };

    Attempt(const Address& address, const wire::Key& key)
        : sock_(::socket(address.where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
          shake_(wire::Role::node, key),
          end_(now_ms() + kAttemptMs) {
        const auto* where = reinterpret_cast<const sockaddr*>(&address.where);
        if (sock_ && ::connect(sock_.get(), where, address.size) == 0)
            greet();
        else if (!sock_ || errno != EINPROGRESS)
            state_ = State::failed;
    }

    int tag = 0;

    State state() const { return state_; }
    int64_t end() const { return end_; }
    pollfd poll() const {
        return {state_ == State::failed ? -1 : sock_.get(),
                static_cast<short>(state_ == State::connecting ? POLLOUT : POLLIN), 0};
    }
    // The root has proved itself: the others can go before it hears our own proof, so that it hears one.
    State serve(short revents) {
        if (now_ms() >= end_) return state_ = State::failed;
        if (!revents || state_ == State::failed) return state_;
        if (state_ == State::connecting) {
            int error = 0;
            socklen_t size = sizeof error;
            if (::getsockopt(sock_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
                return state_ = State::failed;
            return greet();
        }
        char buffer[4096];
        ssize_t n = ::recv(sock_.get(), buffer, sizeof buffer, 0);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) return state_;
        if (n <= 0) return state_ = State::failed;
        proof_ = shake_.feed(buffer, static_cast<size_t>(n));
        if (shake_.failed()) {
            spdlog::info("{}", shake_.error());
            return state_ = State::failed;
        }
        return state_ = shake_.done() ? State::proved : State::talking;
    }
    // Once proved.
    std::optional<Proved> result() {
        if (!say(proof_)) return std::nullopt;
        return Proved{std::move(sock_), shake_, tag};
    }

  private:
    State greet() {
        tune_tcp(sock_.get());
        return state_ = say(shake_.hello()) ? State::talking : State::failed;
    }
    // Less than one packet into an empty socket buffer: never partial.
    bool say(const std::string& text) {
        return ::send(sock_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(text.size());
    }

    Fd sock_;
    wire::Handshake shake_;
    std::string proof_;
    State state_ = State::connecting;
    int64_t end_;
};

Connecting::Connecting(std::vector<Target> targets, const wire::Key& key)
    : targets_(std::move(targets)), key_(key) {}
Connecting::Connecting(Connecting&&) noexcept = default;
Connecting& Connecting::operator=(Connecting&&) noexcept = default;
Connecting::~Connecting() = default;

bool Connecting::under_way() const {
    return std::any_of(attempts_.begin(), attempts_.end(),
                       [](const auto& one) { return one->state() != Attempt::State::failed; });
}

bool Connecting::let_in(int tag) const {
    return std::any_of(attempts_.begin(), attempts_.end(), [tag](const auto& one) {
        return one->tag == tag && one->state() == Attempt::State::talking;
    });
}

bool Connecting::failed() const { return attempts_.size() == targets_.size() && !under_way(); }

// The next one begins when all before have failed, or have had their head start.
void Connecting::add_to(std::vector<pollfd>& fds) {
    int64_t now = now_ms();
    while (attempts_.size() < targets_.size() && (!under_way() || now >= next_)) {
        const Target& target = targets_[attempts_.size()];
        attempts_.push_back(std::make_unique<Attempt>(target.address, key_));
        attempts_.back()->tag = target.tag;
        next_ = now + target.head_start_ms;
    }
    polled_ = attempts_.size();
    for (const auto& one : attempts_) fds.push_back(one->poll());
}

std::optional<Proved> Connecting::serve_any(const std::vector<pollfd>& fds, size_t first) {
    for (size_t i = 0; i < polled_; ++i) {
        if (attempts_[i]->serve(fds[first + i].revents) != Attempt::State::proved) continue;
        std::unique_ptr<Attempt> proved = std::move(attempts_[i]);
        attempts_.clear();
        targets_.clear();
        polled_ = 0;
        tag_ = proved->tag;
        return proved->result();
    }
    polled_ = 0;
    return std::nullopt;
}

std::optional<Channel> Connecting::serve(const std::vector<pollfd>& fds, size_t first) {
    auto proved = serve_any(fds, first);
    if (!proved) return std::nullopt;
    Channel made(std::move(proved->socket), wire::kMaxPayload, proved->shake.outgoing(),
                 proved->shake.incoming());
    made.feed(proved->shake.rest());
    return made;
}

int Connecting::rest(int otherwise) const {
    int64_t now = now_ms(), wake = now + otherwise;
    if (attempts_.size() < targets_.size()) wake = std::min(wake, next_);
    for (const auto& one : attempts_)
        if (one->state() != Attempt::State::failed) wake = std::min(wake, one->end());
    return static_cast<int>(std::max<int64_t>(0, wake - now));
}

namespace {

std::optional<Channel> try_all(const std::vector<Address>& all, const wire::Key& key, int64_t end) {
    std::vector<Connecting::Target> targets;
    for (const Address& address : all) targets.push_back({address, kHeadStartMs, 0});
    Connecting connecting(std::move(targets), key);
    while (now_ms() < end && !connecting.failed()) {
        std::vector<pollfd> fds;
        connecting.add_to(fds);
        ::poll(fds.data(), fds.size(), connecting.rest(static_cast<int>(end - now_ms())));
        if (auto channel = connecting.serve(fds, 0)) return channel;
    }
    return std::nullopt;
}

constexpr int kLookMs = 100;  // so often for a caller that has given up

}  // namespace

Proved connect_once(const std::string& addresses, const wire::Key& key, int timeout_ms,
                    const std::function<bool()>& given_up, const std::string& whom) {
    std::vector<Connecting::Target> targets;
    for (const Address& address : parse_addresses(addresses, this_place()))
        targets.push_back({address, kHeadStartMs, 0});
    Connecting connecting(std::move(targets), key);
    const int64_t end = now_ms() + timeout_ms;
    while (now_ms() < end && !connecting.failed()) {
        if (given_up()) fail("connecting to {} was given up", whom);
        std::vector<pollfd> fds;
        connecting.add_to(fds);
        ::poll(fds.data(), fds.size(),
               connecting.rest(static_cast<int>(std::clamp<int64_t>(end - now_ms(), 0, kLookMs))));
        if (auto proved = connecting.serve_any(fds, 0)) return std::move(*proved);
    }
    fail("cannot reach {} at {}: is a firewall between the nodes?", whom, addresses);
}

void tune_tcp(int socket) {
    auto set = [&](int level, int option, int value) {
        ::setsockopt(socket, level, option, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set(IPPROTO_TCP, TCP_KEEPCNT, 4);
}

std::string this_place() {
    std::string boot;
    try {
        boot = read_file("/proc/sys/kernel/random/boot_id");
    } catch (const Error&) {
    }
    std::erase_if(boot, [](unsigned char c) { return !std::isxdigit(c); });
    struct stat network {};
    if (boot.empty() || ::stat("/proc/self/ns/net", &network) != 0) {
        std::string name = host_name();
        std::erase_if(name, [](char c) { return c == ',' || c == '@'; });
        return name;
    }
    return fmt::format("{}-{}", boot, network.st_ino);
}

std::vector<Address> parse_addresses(const std::string& text, const std::string& here) {
    std::vector<Address> all;
    for (size_t at = 0; at < text.size() && all.size() < kMostAddresses;) {
        size_t end = std::min(text.find(',', at), text.size());
        std::string one = text.substr(at, end - at), place;
        at = end + 1;
        if (size_t mark = one.find('@'); mark != std::string::npos) {
            place = one.substr(mark + 1);
            one.resize(mark);
        }
        size_t colon = one.rfind(':');
        if (colon == std::string::npos) continue;
        std::string host = one.substr(0, colon), port = one.substr(colon + 1);
        if (host.size() > 2 && host.front() == '[' && host.back() == ']')
            host = host.substr(1, host.size() - 2);
        uint16_t number = 0;
        auto [last, error] = std::from_chars(port.data(), port.data() + port.size(), number);
        if (error != std::errc{} || last != port.data() + port.size() || number == 0) continue;
        addrinfo hints{}, *found = nullptr;
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
        hints.ai_socktype = SOCK_STREAM;
        if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) continue;
        Address a;
        std::memcpy(&a.where, found->ai_addr, found->ai_addrlen);
        a.size = found->ai_addrlen;
        ::freeaddrinfo(found);
        if (is_loopback(a) && place != here) continue;
        all.push_back(a);
    }
    return all;
}

std::string addresses_of_this_host(uint16_t port) {
    std::string all = fmt::format("127.0.0.1:{}@{}", port, this_place());
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return all;
    for (ifaddrs* i = list; i; i = i->ifa_next) {
        if (!i->ifa_addr || (i->ifa_flags & IFF_LOOPBACK) || !(i->ifa_flags & IFF_UP)) continue;
        int family = i->ifa_addr->sa_family;
        // Link-local IPv6 addresses mean nothing on another node.
        if (family == AF_INET6 &&
            IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6*>(i->ifa_addr)->sin6_addr))
            continue;
        char host[NI_MAXHOST];
        socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        if ((family != AF_INET && family != AF_INET6) ||
            ::getnameinfo(i->ifa_addr, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0)
            continue;
        all += family == AF_INET ? fmt::format(",{}:{}", host, port) : fmt::format(",[{}]:{}", host, port);
    }
    ::freeifaddrs(list);
    return all;
}

Channel connect_to_root(const std::string& addresses, const wire::Key& key, int timeout_ms,
                        const std::function<bool()>& unwanted) {
    std::vector<Address> all = parse_addresses(addresses, this_place());
    int64_t end = now_ms() + timeout_ms;
    std::minstd_rand random(std::random_device{}());
    for (int pause = 20; now_ms() < end && !all.empty(); pause = std::min(pause * 2, 2000)) {
        if (auto channel = try_all(all, key, end)) return std::move(*channel);
        if (unwanted && unwanted()) fail("whoever wanted the root at {} is gone", addresses);
        ::usleep(static_cast<useconds_t>(1000 * (pause / 2 + static_cast<int>(random() % pause))));
    }
    fail("cannot reach the root of this job at {} from this node: is a firewall between the nodes?",
         addresses);
}

}  // namespace fermata::tree
