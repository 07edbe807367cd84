// Strangers at the root's port: whoever has connected and not yet proved that he knows the job's key.
//
// They get little, so that nothing they do costs a job: few places, a bounded part of each turn, and no
// descriptor of those that a checkpoint needs. When all places are taken the oldest guest of the address that
// has most of them goes; but nobody goes before he had time to prove himself, and so long nobody comes in.
#pragma once

#include <poll.h>

#include <array>
#include <deque>
#include <functional>
#include <vector>

#include "base/fd.h"
#include "wire/auth.h"

namespace fermata::tree {

class Guests {
  public:
    Guests(Fd listener, const wire::Key& key);

    // Takes the socket of a guest who has proved himself. Called from serve().
    std::function<void(Fd socket, const wire::Handshake& shake)> on_proof;

    // Adds what to poll, and serves it afterwards; `first` is the index of the first added entry.
    void add_to(std::vector<pollfd>& fds);
    void serve(const std::vector<pollfd>& fds, size_t first);
    // ms until they are to be polled again, at most `otherwise`: they rest after some turns in a row.
    int rest(int otherwise) const;
    size_t count() const { return guests_.size(); }

  private:
    using Host = std::array<unsigned char, 8>;  // IPv4 address, or the network of an IPv6 one
    struct Guest {
        Fd socket;
        wire::Handshake shake;
        Host host;
        int64_t since;
        int reads;  // left to him: a handshake takes two or three
    };
    enum class Stay { yes, no, proved };

    void let_in();
    bool make_room();
    Stay serve(Guest& guest);

    Fd listener_;
    wire::Key key_;
    std::deque<Guest> guests_;  // the oldest first
    size_t places_;
    int files_;               // descriptors from this one on are not for guests
    int64_t next_ = 0;        // ms: before that, nobody here is served
    int64_t closed_til_ = 0;  // ms: before that, nobody is let in
    bool polled_ = false, door_polled_ = false;
    size_t polled_guests_ = 0;
};

}  // namespace fermata::tree
