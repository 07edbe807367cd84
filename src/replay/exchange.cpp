// The plan: every instance that some members were told and some not.
#include "replay/exchange.h"

#include <algorithm>

namespace fermata::replay {

const Said* Exchange::of(Rank rank) const {
    for (const Said& said : said_)
        if (said.rank == rank) return &said;
    return nullptr;
}

const CommCounts* Exchange::at(Rank rank, Uid uid) const {
    const Said* said = of(rank);
    if (said)
        for (const CommCounts& comm : said->comms)
            if (comm.uid == uid) return &comm;
    return nullptr;
}

// Was the rank told the creation (and perhaps has forgotten the communicator since)?
bool Exchange::made_at(Rank rank, const CommCounts& comm) const {
    if (at(rank, comm.uid)) return true;
    if (const CommCounts* parent = at(rank, comm.parent)) return parent->told.has(comm.made_as);
    // It has not the parent either. That is forgotten where all members' frees of it are stable, and they
    // made what they made on it before; or it was not told that creation either, and anybody who was knows
    // it.
    for (const Said& said : said_)
        if (const CommCounts* parent = at(said.rank, comm.parent)) return made_at(rank, *parent);
    return true;
}

bool Exchange::forgotten_by_one(const CommCounts& comm) const {
    for (Rank member : comm.members)
        if (!at(member, comm.uid) && made_at(member, comm)) return true;
    return false;
}

Vec<Uid> Exchange::made_by(Uid parent, Instance i) const {
    Vec<Uid> made;
    for (const Said& said : said_)
        for (const CommCounts& comm : said.comms) {
            bool known = std::find(made.begin(), made.end(), comm.uid) != made.end();
            if (comm.parent == parent && comm.made_as == i && !known) made.push_back(comm.uid);
        }
    return made;
}

CommOrders Exchange::orders(const CommCounts& comm) const {
    CommOrders result{comm.uid, comm.parent, comm.made_as, comm.members, {}};
    Instance last{}, all = static_cast<Instance>(UINT64_MAX);
    for (Rank member : comm.members) {
        const CommCounts* one = at(member, comm.uid);
        Instance reached = !one ? Instance{} : rules_.have(Rule::only_told) ? one->told.last() : one->entered;
        last = std::max(last, reached);
        all = std::min(all, one ? one->told.prefix() : Instance{});
    }
    for (Instance i = next(all); i <= last; ++i) {
        Planned planned{i, {}, made_by(comm.uid, i)};
        for (Rank member : comm.members)
            if (const CommCounts* one = at(member, comm.uid); one && one->told.has(i))
                planned.told.push_back(member);
        std::sort(planned.told.begin(), planned.told.end());
        bool nobody = planned.told.empty() && rules_.have(Rule::only_told);
        if (!nobody && planned.told.size() < comm.members.size()) result.plan.push_back(std::move(planned));
    }
    return result;
}

Orders Exchange::orders_for(Rank rank) const {
    Orders result;
    result.epoch = epoch_;
    for (const Said& said : said_) {
        for (const Consumed& one : said.consumed)
            if (one.channel.source == rank) result.known.push_back(one);
        for (const CommCounts& comm : said.comms) {
            auto is_it = [&](const CommOrders& known) { return known.uid == comm.uid; };
            bool known = std::any_of(result.comms.begin(), result.comms.end(), is_it);
            bool member = std::find(comm.members.begin(), comm.members.end(), rank) != comm.members.end();
            if (!rules_.have(Rule::orphans) && std::any_of(comm.members.begin(), comm.members.end(),
                                                           [&](Rank m) { return !at(m, comm.uid); }))
                continue;
            if (!known && member && !forgotten_by_one(comm)) result.comms.push_back(orders(comm));
        }
    }
    std::sort(result.comms.begin(), result.comms.end(),
              [](const CommOrders& a, const CommOrders& b) { return a.uid < b.uid; });
    return result;
}

}  // namespace fermata::replay
