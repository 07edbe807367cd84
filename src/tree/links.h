// Links are the connections to the daemons right below this process: at the root, and at every daemon that
// has daemons below it. A process that connects proves the key first (guests.h); one that is not heard for
// too long is cut off.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tree/channel.h"
#include "tree/guests.h"
#include "tree/pulse.h"

namespace fermata::tree {

class Links {
  public:
    enum class End { closed, broken, silent };

    // Listens on a port of the kernel's choice.
    explicit Links(const wire::Key& key);

    uint16_t port() const { return port_; }
    // Called from serve(). A link has a number of its own, never used again.
    std::function<void(int link, const wire::Message& message)> on_message;
    std::function<void(int link, End how)> on_closed;

    void set_rhythm(Rhythm rhythm) { rhythm_ = rhythm; }
    // More are refused.
    void at_most(size_t links) { most_ = links; }

    // Adds what to poll, and serves it afterwards; `first` is the index of the first added entry.
    void add_to(std::vector<pollfd>& fds);
    void serve(const std::vector<pollfd>& fds, size_t first);
    // ms that poll may take, at most `otherwise`.
    int rest(int otherwise) const;

    void send(int link, const wire::Message& message);
    // The same, written with the next that is sent, or before the next poll.
    void put(int link, const wire::Message& message);
    void allow(int link, uint32_t max_payload);
    // Without a word.
    void close(int link);
    void flush(int ms);
    size_t count() const { return links_.size(); }
    // Counts of all connections so far.
    Traffic traffic() const;

  private:
    struct Link {
        Channel channel;
        Pulse pulse;
    };
    void admit(Fd socket, const wire::Handshake& shake);
    void beat();

    uint16_t port_ = 0;  // before guests_, whose listener sets it
    Guests guests_;
    std::map<int, Link> links_;
    std::vector<int> polled_;  // link of each polled channel, in the order of add_to
    int next_ = 0;
    bool fed_ = false;  // a link has come whose first words were heard with the proof, and not yet read
    Traffic ended_;     // of connections that are over
    size_t most_ = SIZE_MAX;
    Rhythm rhythm_;
    Awake awake_;
};

}  // namespace fermata::tree
