// Relay is what a node daemon is to other daemons: it merges what those below it say with what its own ranks
// say, and hands orders down. No I/O and no clock: messages in, messages out.
//
// Nothing is lost that matters when a connection ends. Upwards, the root calls the roll (roll_call.h), and
// all that stands (who is there, what was answered, what ended the job) is said anew with the answer to that
// call. Downwards, orders are numbered, and who comes to another parent says which it has heard.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tree/orders.h"
#include "tree/roll_call.h"
#include "tree/tally.h"

namespace fermata::tree {

class Relay {
  public:
    static constexpr int kUp = -1;
    struct Out {
        int to;  // kUp, or a daemon below
        wire::Message message;
    };

    // Messages that are to be sent, in this order.
    std::vector<Out> take_out() { return std::exchange(out_, {}); }
    int node() const { return node_; }
    Tally& tally() { return tally_; }
    const Tally& tally() const { return tally_; }

    // The root has said where this daemon stands.
    void placed(const wire::Parent& parent);
    // A connection to another parent begins: this daemon says who it is. Or the connection has ended.
    void above();
    void lost_above() { here_ = false; }
    // The parent calls the roll.
    void roll(const wire::Roll& call);
    // An order for this daemon and its ranks, once; none when it was not new.
    std::optional<wire::Message> order(const wire::Order& order);
    // Takes what is for one daemon: none when that is another.
    std::optional<wire::Message> to(const wire::To& letter);

    // Takes what this daemon has to say to the root: Joined and Gone of its own ranks, and other things.
    void own(wire::Message message);
    // `ranks`: of this daemon. As Tally::hand_up.
    void hand_up(uint32_t ranks, bool time);

    // A daemon comes, or the connection to it ends.
    void child(const wire::Attach& attach);
    void child_gone(int child, bool silent);
    // False: it is not for the relay (the clock's, a diagnosis).
    bool from_child(int child, const wire::Message& message);
    // Daemons right below, with how many ranks below each; and below all of them.
    std::map<int, uint32_t> children() const { return calls_.children(); }
    uint32_t ranks_below() const { return calls_.ranks(); }

  private:
    void up(const wire::Message& message);
    void up_here(const wire::Here& here);
    void hand_on(const wire::Message& message);
    void invite(int child);
    void sign(wire::Message& message) const;
    void left(const wire::Gone& gone);
    void moved(int32_t rank, int32_t pid);

    int node_ = -1;
    bool here_ = false;  // this daemon has answered the newest call by way of the parent that it has now
    RollCall calls_;
    Tally tally_{Tally::Level::between};
    Orders orders_;
    uint64_t heard_ = 0;
    // Messages that this daemon says again at every call.
    std::vector<wire::Group> groups_;              // its own ranks
    std::map<int32_t, wire::InStarter> starters_;  // likewise, by rank
    std::map<size_t, wire::Message> of_memory_;    // the newest of each kind that a node says of its memory
    std::optional<wire::Fatal> fatal_;             // the first that was heard here, also from below
    std::optional<wire::Gone> unclean_;
    std::vector<wire::Message> waiting_;  // came while nobody above would have counted it; said once
    std::vector<Out> out_;
};

}  // namespace fermata::tree
