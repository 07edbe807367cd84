// All that can happen in a job, and the failures.
#include "job.h"

#include <algorithm>

#include "seat.h"

namespace fermata::replay::test {

Job::Job(const Program& program, const Plan& plan, uint64_t seed)
    : program_(program),
      plan_(plan),
      random_(seed),
      finish_(static_cast<uint32_t>(program.ranks.size()), Rules{plan.away}) {
    Options options{plan.log_bytes, Rules{plan.away}};
    library_ = std::make_shared<Library>(static_cast<int>(program.ranks.size()));
    for (size_t i = 0; i < program.ranks.size(); i++) {
        bool replicated = i < plan.replicated.size() && plan.replicated[i];
        seats_.push_back(std::make_unique<Seat>(*this, Rank(static_cast<uint32_t>(i)), options, replicated));
        seats_.back()->leader->library = library_;
    }
    const Communicator& world = *seats_[0]->leader->machine.find(Uid{1});
    library_->make(world.uid, world.members);
}
Job::~Job() = default;

void Job::trace(const char* what, size_t index) {
    if (!tracing) return;
    printf("%llu: %s %zu |", static_cast<unsigned long long>(out_.steps), what, index);
    for (auto& seat : seats_) {
        printf(" %s%s", seat->leader ? seat->leader->place().c_str() : "dead", seat->frozen ? " frozen" : "");
        if (seat->child) printf(" child %s", seat->child->place().c_str());
        if (seat->follower) printf(", copy %s", seat->follower->place().c_str());
        printf(";");
    }
    printf("\n");
}

Result Job::run() {
    try {
        while (!over()) {
            if (++out_.steps > plan_.step_limit) throw Fault{"no end in sight"};
            planned_event();
            if (pick(static_cast<size_t>(plan_.rarely)) == 0 && event()) continue;
            if (out_.rolled_back) return out_;
            // Some steps are drawn, and may draw nothing.
            bool moved = false;
            for (int tries = 0; tries < 30 && !moved; tries++) moved = advance();
            if (!moved) throw Fault{"nothing can go on"};
            for (const auto& one : {library_, next_})
                if (one && !one->fault.empty()) throw Fault{one->fault};
        }
        check_end();
    } catch (const Fault& fault) {
        out_.fault = fault.what;
    }
    return out_;
}

bool Job::over() const {
    for (const auto& seat : seats_) {
        if (!seat->leader || !seat->leader->released) return false;
        if (!seat->leader->in_finalize()) return false;  // promoted after the release
        if (seat->follower && !seat->follower->in_finalize()) return false;
    }
    return true;
}

bool Job::advance() {
    std::vector<std::pair<Step, size_t>> all, late;
    for (size_t s = 0; s < static_cast<size_t>(Step::kCount); s++)
        for (size_t seat = 0; seat < seats_.size(); seat++) {
            auto step = static_cast<Step>(s);
            bool lazy = plan_.lazy && (step == Step::arrive || step == Step::acknowledge) && pick(8) != 0;
            (lazy ? late : all).emplace_back(step, seat);
        }
    std::shuffle(all.begin(), all.end(), random_);
    all.insert(all.end(), late.begin(), late.end());
    for (auto [step, seat] : all)
        if (take(step, seat)) return true;
    return false;
}

bool Job::take(Step step, size_t index) {
    Seat& seat = *seats_[index];
    bool first = index == 0;
    bool runs = seat.leader && !seat.frozen;
    auto did = [&](bool progress, const char* what) {
        if (progress) trace(what, index);
        return progress;
    };
    switch (step) {
        case Step::leader: {
            // Without its rule a child goes on before all are there.
            bool early = !seat.leader || !seat.leader->machine.rules().have(Rule::nothing_before_go);
            if (early && seat.child && seat.child->machine.mode() == Mode::live)
                return did(seat.child->step(seat.door(false)), "child steps");
            return runs && did(seat.leader->step(seat.door(false)), "steps");
        }
        case Step::follower:
            return seat.follower && did(seat.follower->step(seat.door(true)), "copy steps");
        case Step::link:
            return !seat.link.empty() && seat.leader && did(deliver_link(seat), "hears");
        case Step::background:
            return runs && did(seat.leader->poll_background(), "background");
        case Step::deliver:
            return did(library_->deliver(pick(64)), "delivered");
        case Step::transfer:
            return did(library_->transfer(Rank(static_cast<uint32_t>(index))), "transferred");
        case Step::deliver_next:
            return next_ && did(next_->deliver(pick(64)), "delivered in the next world");
        case Step::transfer_next:
            return next_ && did(next_->transfer(Rank(static_cast<uint32_t>(index))), "transferred there");
        case Step::arrive:
            if (seat.flight.empty()) return false;
            seat.ring.push_back(std::move(seat.flight.front()));
            seat.flight.pop_front();
            seat.arrived++;
            return did(true, "record arrives");
        case Step::acknowledge:
            if (seat.acknowledged == seat.arrived || !seat.leader) return false;
            seat.acknowledged = seat.arrived;
            seat.stable(seat.arrived);
            return did(true, "acknowledged");
        case Step::ring_ended:
            return runs && did(ring_ended(seat), "ring ended");
        case Step::receipt:
            return did(receipts(seat, false), "receipt from");
        case Step::everywhere:
            return first && did(everywhere(), "everywhere");
        case Step::forward:
            return did(forward(seat), "forwarded");
        case Step::notice:
            return seat.dead() && did(notice(seat), "death noticed");
        case Step::exchange:
            return first && did(exchange(), "exchange");
        case Step::rebuild:
            return did(rebuild(index), "rebuild");
        case Step::go:
            return first && did(go(), "go");
        case Step::release:
            return first && did(release(), "release");
        case Step::kCount:
            break;
    }
    return false;
}

bool Job::calm() const {
    if (stage_ != Stage::running || released_) return false;
    for (const auto& seat : seats_)
        if (!seat->leader || seat->frozen || !seat->link.empty() ||
            seat->leader->machine.mode() != Mode::live || !seat->leader->machine.went())
            return false;
    return true;
}

bool Job::event() {
    int all = plan_.kills + plan_.hops + plan_.drains + plan_.clones;
    if (all == 0) return false;
    int which = static_cast<int>(pick(static_cast<size_t>(all)));
    if (which < plan_.kills) return kill();
    if (which < plan_.kills + plan_.drains) return drain();
    if (which < plan_.kills + plan_.drains + plan_.clones) return clone();
    if (!may_hop()) return false;
    plan_.hops--;
    hop("hop");
    return true;
}

bool Job::may_hop() const {
    if (stage_ != Stage::running || released_) return false;
    for (const auto& seat : seats_)
        if (seat->dead()) return false;
    return true;
}

void Job::hop(const char* why) {
    out_.hops++;
    begin_epoch();
    trace(why);
}

void Job::planned_event() {
    while (next_moment_ < plan_.moments.size() && plan_.moments[next_moment_].step <= out_.steps) {
        const Moment& moment = plan_.moments[next_moment_++];
        if (!moment.dies && may_hop()) hop("hop");
        if (moment.dies && seats_[*moment.dies]->leader && seats_[*moment.dies]->follower) die(*moment.dies);
    }
}

void Job::die(size_t victim) {
    out_.kills++;
    seats_[victim]->leader.reset();
    seats_[victim]->child.reset();
    trace("leader dies", victim);
}

bool Job::kill() {
    size_t victim = pick(seats_.size());
    Seat& seat = *seats_[victim];
    if (seat.dead()) return false;
    if (seat.follower && pick(6) == 0) {
        plan_.kills--;
        out_.kills++;
        seat.lose_follower();
        trace("copy dies", victim);
        return true;
    }
    if (!seat.follower) {
        if (released_ || !plan_.rollbacks || pick(40) != 0) return false;
        out_.rolled_back = true;
        return false;
    }
    plan_.kills--;
    die(victim);
    return true;
}

// A rank without a copy gets one.
bool Job::clone() {
    size_t rank = pick(seats_.size());
    Seat& seat = *seats_[rank];
    bool runs = seat.leader && !seat.frozen && !seat.child && !seat.follower && !released_;
    if (!runs || seat.leader->machine.mode() != Mode::live || !seat.leader->machine.went()) return false;
    plan_.clones--;
    out_.clones++;
    seat.follower = seat.leader->clone();
    seat.follower->library.reset();
    seat.follower->machine.follow();
    seat.leader->machine.copy(replay::Copy::follows);
    seat.arrived = seat.acknowledged = value(seat.leader->machine.stream().end());
    seat.kept = seat.out;
    trace("cloned", rank);
    return true;
}

bool Job::drain() {
    if (!calm()) return false;
    plan_.drains--;
    out_.drains++;
    library_->settle();
    for (auto& seat : seats_) seat->leader->drain();
    for (auto& seat : seats_)
        for (Copy* copy : seat->copies()) copy->machine.drained_checkpoint();
    for (auto& seat : seats_) receipts(*seat, true);
    trace("drain");
    if (plan_.hops > 0 && pick(2) == 0) {
        plan_.hops--;
        hop("hop after it");
    }
    return true;
}

bool Job::deliver_link(Seat& seat) {
    Link link = seat.link.front();
    seat.link.pop_front();
    switch (link.word) {
        case Link::Word::freeze:
            seat.frozen = true;
            seat.frozen_at = link.epoch;
            break;
        case Link::Word::go:
            if (seat.child) seat.leader = std::move(seat.child);
            seat.child.reset();
            seat.leader->machine.go(link.epoch);
            seat.frozen = false;
            break;
        case Link::Word::release:
            seat.leader->released = true;
            break;
    }
    return true;
}

bool Job::receipts(Seat& seat, bool all) {
    if (!seat.leader) return false;
    bool any = false;
    auto& said = seat.leader->said;
    for (const Receipt& one : seat.leader->machine.news()) said.insert_or_assign(one.channel, one);
    for (const Receipt& one : seat.leader->machine.receipts()) {
        auto at = said.find(one.channel);
        if (at == said.end() || at->second.count < one.count || at->second.taken < one.taken)
            throw Fault{"a receipt was no news"};
        if (!all && pick(2) == 0) continue;
        for (Copy* copy : seat_of(one.channel.source).copies()) {
            Machine& machine = copy->machine;
            if (!machine.wants(one)) continue;
            if (!all && pick(4) == 0) continue;  // lost
            machine.receipt(one);
            any = true;
        }
    }
    return any;
}

// The instances that all members' present leaders were told for good.
std::optional<ToldSet> Job::everywhere_now(const Communicator& on) const {
    std::optional<ToldSet> all;
    for (Rank member : on.members) {
        const Seat& seat = *seats_[member.index()];
        if (!seat.leader) return {};
        const Machine& machine = seat.leader->machine;
        ToldSet one;
        if (const Communicator* theirs = machine.find(on.uid))
            one = machine.told_for_good(*theirs);
        else if (auto at = everywhere_.find(on.uid); at != everywhere_.end())
            one = at->second;  // forgotten: nobody is behind that
        if (!all)
            all = one;
        else
            all->keep_those_in(one);
    }
    return all;
}

bool Job::everywhere() {
    for (auto& seat : seats_) {
        if (!seat->leader) continue;
        Vec<Uid> uids;
        for (const CommCounts& comm : seat->leader->machine.said({}).comms) uids.push_back(comm.uid);
        for (Uid uid : uids) {
            const Communicator* on = seat->leader->machine.find(uid);
            if (!on) continue;
            auto now = everywhere_now(*on);
            if (!now || everywhere_[uid].has_all_of(*now)) continue;
            everywhere_[uid].add_all(*now);
            Vec<Rank> members = on->members;
            for (Rank member : members)
                for (Copy* copy : seat_of(member).copies()) copy->machine.everywhere(uid, *now);
            return true;
        }
    }
    return false;
}

bool Job::forward(Seat& seat) {
    uint64_t stable = seat.follower ? seat.arrived : UINT64_MAX;
    if (seat.leader && seat.leader->machine.mode() != Mode::live) stable = UINT64_MAX;
    Bytes ready = seat.out.ready(static_cast<Position>(stable), seat.text.size());
    if (ready.empty()) return false;
    seat.text.append(ready.begin(), ready.end());
    seat.out.root_has(seat.text.size());
    if (pick(2) == 0) seat.kept.root_has(seat.text.size());
    return true;
}

}  // namespace fermata::replay::test
