// A recovery puts this together while all stand still: each rank says what it has consumed and was told
// (Counts), and hears what that means for its sends and collectives (Orders). Nothing of one attempt is used
// in the next one.
#pragma once

#include "replay/collective.h"
#include "replay/told_set.h"

namespace fermata::replay {

struct Consumed {
    Channel channel;
    MessageNo count;
};
// A communicator that a rank has and has not forgotten.
struct CommCounts {
    Uid uid;
    Uid parent;  // where it was made, by the creation `made_as`; of MPI_COMM_WORLD none
    Instance made_as;
    Vec<Rank> members;
    ToldSet told;
    Instance entered{};  // for a test that takes a rule away
};
struct Said {
    Rank rank;
    Vec<Consumed> consumed;
    Vec<CommCounts> comms;
};

struct CommOrders {
    Uid uid;
    Uid parent;
    Instance made_as;
    Vec<Rank> members;
    Vec<Planned> plan;  // ascending instances
};
struct Orders {
    Epoch epoch{};
    Vec<Consumed> known;  // of the channels on which this rank sends; none: 0
    // All that get a real object, in the same order in all members; also those whose creation this member was
    // not told yet.
    Vec<CommOrders> comms;
};

// Above the ranks.
class Exchange {
  public:
    Exchange(Epoch epoch, Rules rules = {}) : epoch_(epoch), rules_(rules) {}
    // Once for each rank.
    void add(Said said) { said_.push_back(std::move(said)); }
    Orders orders_for(Rank rank) const;

  private:
    const Said* of(Rank rank) const;
    const CommCounts* at(Rank rank, Uid uid) const;
    bool made_at(Rank rank, const CommCounts& comm) const;
    bool forgotten_by_one(const CommCounts& comm) const;
    Vec<Uid> made_by(Uid parent, Instance i) const;
    CommOrders orders(const CommCounts& comm) const;

    Epoch epoch_;
    Rules rules_;
    Vec<Said> said_;
};

}  // namespace fermata::replay
