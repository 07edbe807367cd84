// Relay is what a node daemon is to other daemons: it merges what those below it say with what its own ranks
// say, hands orders down, and remembers what a new parent has to hear. No I/O and no clock: messages in,
// messages out.
//
// When a connection ends, nothing is lost that matters: upwards all that stands (who is there, what was
// answered, what ended the job) is said anew to the new parent, and the old one forgets it with the
// connection; downwards orders are numbered, and a child says which it has heard.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <string>
#include <vector>

#include "tree/orders.h"
#include "tree/ranks.h"
#include "tree/shape.h"
#include "tree/tally.h"
#include "tree/ways.h"

namespace fermata::tree {

class Relay {
  public:
    static constexpr int kUp = -1;
    struct Out {
        int to;  // kUp, or a daemon below
        wire::Message message;
    };

    // What is to be sent, in this order.
    std::vector<Out> take_out() { return std::exchange(out_, {}); }
    int node() const { return node_; }
    Tally& tally() { return tally_; }
    const Tally& tally() const { return tally_; }

    // The root has said where this daemon stands. True: it shall stay where it is, which is below the root.
    bool placed(const wire::Parent& parent);
    // A connection to a parent begins; at a new one (`elsewhere`) this daemon says first who it is.
    void above(bool elsewhere);
    void lost_above() { above_ = false; }
    // An order for this daemon and its ranks, once; none when it was not new.
    std::optional<wire::Message> order(const wire::Order& order);
    // Likewise of what is for one daemon: none when that is another.
    std::optional<wire::Message> to(const wire::To& letter);
    // To all daemons right below.
    void send_down(const wire::Message& message);

    // What this daemon has to say to the root: Joined and Gone of its own ranks, and other things.
    void own(wire::Message message);
    // `ranks`: of this daemon. As Tally::hand_up.
    void hand_up(uint32_t ranks, bool time);

    // Not to be let in: it has come elsewhere since.
    bool overtaken(const wire::Attach& attach) const {
        return attach.stations.empty() || ways_.overtaken(attach.stations[0]);
    }
    // Daemons right below whose answers do not count at the moment. Where that lasts, word of a move was lost
    // with those that carried it: a new connection puts it right.
    std::vector<int> doubted() const { return ways_.doubted(); }
    // A daemon comes, or the connection to it ends.
    void child(int child, const wire::Attach& attach);
    void child_gone(int child, bool silent);
    // False: it is not for the relay (the clock's, a diagnosis).
    bool from_child(int child, const wire::Message& message);
    // Daemons right below, with how many ranks below each; and below all of them.
    std::map<int, uint32_t> children() const;
    uint32_t ranks_below() const { return ranks_below_; }

  private:
    void up(const wire::Message& message);
    void joined(int child, const wire::Group& group);
    void left(const wire::Gone& gone);
    void forget(int node);
    void heed(const Ways::News& news);
    void remember(const wire::Message& message);
    void hand_on(const wire::Message& message);

    int node_ = -1;
    bool above_ = false;
    Tally tally_{Tally::Level::between};
    Orders orders_;
    uint64_t heard_ = 0;
    std::set<int> children_;
    Ways ways_;
    uint32_t turn_ = 0;                               // how often this daemon has come to a parent
    std::map<int, std::vector<wire::Group>> groups_;  // ranks of this daemon and of those below
    uint32_t ranks_below_ = 0;
    // What a new parent has to hear, too.
    std::map<int32_t, wire::InStarter> starters_;  // by rank
    std::optional<wire::Fatal> fatal_;
    std::optional<wire::Gone> unclean_;
    std::vector<wire::Message> waiting_;  // came while there was no parent
    std::vector<Out> out_;
};

}  // namespace fermata::tree
