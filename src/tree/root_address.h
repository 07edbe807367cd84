// How a node daemon finds the root, or a parent, and proves itself.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tree/channel.h"
#include "wire/auth.h"

namespace fermata::tree {

// "127.0.0.1:4711@HERE,10.0.0.5:4711,[fe..]:4711": every address of this host, loopback first, with the name
// of the place where the loopback leads to this process: another node's leads to whoever listens there.
std::string addresses_of_this_host(uint16_t port);

struct Address {
    sockaddr_storage where{};
    socklen_t size = 0;
};
// Reads the addresses that can lead there from `here`; of another place's loopback, or not readable, none.
std::vector<Address> parse_addresses(const std::string& text, const std::string& here);
// This boot's and this network namespace's name, without a comma or an @.
std::string this_place();

inline constexpr int64_t kHeadStartMs = 250;  // of an address before the next one

// A connection whose other end has proved itself, and has heard this one's proof.
struct Proved {
    Fd socket;
    wire::Handshake shake;
    int tag = 0;  // of the target
};

// Tries addresses side by side, each once, until one answers that knows the key. An address has a deadline of
// its own: one that is silent or slow costs the others its head start, one that refuses costs nothing.
class Connecting {
  public:
    struct Target {
        Address address;
        int64_t head_start_ms = kHeadStartMs;
        int tag = 0;  // the caller's
    };
    Connecting(std::vector<Target> targets, const wire::Key& key);
    Connecting(Connecting&&) noexcept;
    Connecting& operator=(Connecting&&) noexcept;
    ~Connecting();

    void add_to(std::vector<pollfd>& fds);
    // The one that has proved itself; the others are dropped.
    std::optional<Proved> serve_any(const std::vector<pollfd>& fds, size_t first);
    // The same, for messages.
    std::optional<Channel> serve(const std::vector<pollfd>& fds, size_t first);
    int tag() const { return tag_; }
    // True if no address is left to try.
    bool failed() const;
    // A target of this tag has let the connection in, and has not proved itself yet: a process is there, and
    // busy.
    bool let_in(int tag) const;
    // ms that poll may take, at most `otherwise`.
    int rest(int otherwise) const;

  private:
    class Attempt;
    bool under_way() const;
    std::vector<Target> targets_;
    wire::Key key_;
    std::vector<std::unique_ptr<Attempt>> attempts_;  // of the first targets
    size_t polled_ = 0;
    int64_t next_ = 0;  // ms: then the next one begins
    int tag_ = 0;
};

// Tries all addresses, side by side, until one answers that knows the key; again with back-off and jitter.
// `unwanted`: asked before each pause; true: in vain. Throws Error.
Channel connect_to_root(const std::string& addresses, const wire::Key& key, int timeout_ms,
                        const std::function<bool()>& unwanted = {});
// Once, until `timeout_ms` have passed or `given_up` says so. Throws Error; `whom` names the other end in it.
Proved connect_once(const std::string& addresses, const wire::Key& key, int timeout_ms,
                    const std::function<bool()>& given_up, const std::string& whom);
// TCP_NODELAY and keepalive: a node that vanished without a word is noticed within half a minute.
void tune_tcp(int socket);

}  // namespace fermata::tree
