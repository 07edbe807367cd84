// The root's part in a recovery, and the end of a job. What ranks say and hear goes through its wire form.
#include <algorithm>

#include "replay/wire_form.h"
#include "seat.h"

namespace fermata::replay::test {

bool Job::notice(Seat& seat) {
    if (!seat.follower) throw Fault{"a rank is lost that had a copy"};
    // The fence: what is on its way from the dead is thrown away.
    seat.flight.clear();
    seat.link.clear();
    seat.leader = std::move(seat.follower);
    seat.out = seat.kept;
    seat.frozen = false;
    out_.promotions++;
    if (released_)
        seat.link.push_back(Link{Link::Word::release, {}});
    else
        begin_epoch();
    return true;
}

void Job::begin_epoch() {
    ++epoch_;
    out_.epochs++;
    for (auto& seat : seats_) {
        if (stage_ == Stage::rebuilding) seat->child.reset();
        seat->ready = false;
        seat->link.push_back(Link{Link::Word::freeze, epoch_});
    }
    next_.reset();
    stage_ = Stage::stopping;
}

bool Job::exchange() {
    if (stage_ != Stage::stopping) return false;
    for (const auto& seat : seats_)
        if (seat->dead() || !seat->frozen || seat->frozen_at != epoch_) return false;
    const auto ranks = static_cast<uint32_t>(seats_.size());
    Exchange exchange(epoch_, Rules{plan_.away});
    for (const auto& seat : seats_) {
        std::vector<Record> ring;
        if (seat->leader->machine.mode() != Mode::live)
            for (const Entry& entry : seat->ring) ring.push_back(entry.record);
        exchange.add(*said_from(wire_form(seat->leader->machine.said(ring)), ranks));
    }
    orders_.clear();
    next_ = std::make_shared<Library>(static_cast<int>(seats_.size()));
    for (const auto& seat : seats_) {
        orders_.push_back(*orders_from(wire_form(exchange.orders_for(seat->leader->machine.me())), ranks));
        for (const CommOrders& comm : orders_.back().comms) {
            if (!next_->has(comm.uid)) next_->make(comm.uid, comm.members);
            out_.orphans += !seat->leader->machine.find(comm.uid);
        }
    }
    stage_ = Stage::rebuilding;
    return true;
}

bool Job::rebuild(size_t rank) {
    Seat& seat = *seats_[rank];
    if (stage_ != Stage::rebuilding || seat.dead() || seat.ready) return false;
    seat.child = seat.leader->clone();
    seat.child->library = next_;
    Vec<Action> actions = seat.child->machine.recover(orders_[rank]);
    for (const Action& action : actions) {
        out_.resent += std::holds_alternative<SendLogged>(action);
        out_.debts += std::holds_alternative<Pay>(action);
    }
    seat.child->carry_out(actions);
    seat.ready = true;
    return true;
}

bool Job::go() {
    if (stage_ != Stage::rebuilding) return false;
    for (const auto& seat : seats_)
        if (seat->dead() || !seat->ready) return false;
    for (auto& seat : seats_) seat->link.push_back(Link{Link::Word::go, epoch_});
    library_ = next_;
    next_.reset();
    stage_ = Stage::running;
    return true;
}

bool Job::release() {
    bool recovering = stage_ != Stage::running;
    for (const auto& seat : seats_) recovering = recovering || seat->dead();
    if (released_ || !finish_.may_release(recovering)) return false;
    released_ = true;
    for (auto& seat : seats_) seat->link.push_back(Link{Link::Word::release, {}});
    return true;
}

bool Job::ring_ended(Seat& seat) {
    Machine& machine = seat.leader->machine;
    if (machine.mode() != Mode::play || !machine.may_tell() || !seat.ring.empty()) return false;
    Vec<Action> actions = machine.ring_ended();
    for (const Action& action : actions) {
        out_.resent += std::holds_alternative<SendLogged>(action);
        out_.debts += std::holds_alternative<Pay>(action);
    }
    seat.leader->carry_out(actions);
    out_.played++;
    return true;
}

void Job::check_end() {
    for (auto& seat : seats_) {
        if (seat->frozen) throw Fault{"released while others stand still"};
        while (seat->leader->poll_background()) {
        }
        seat->arrived = seat->acknowledged = seat->arrived + seat->flight.size();
        while (!seat->flight.empty()) {
            seat->ring.push_back(seat->flight.front());
            seat->flight.pop_front();
        }
        seat->stable(seat->arrived);
        if (!seat->ring.empty() && seat->follower)
            throw Fault{"a copy has come to the end before its records"};
        while (forward(*seat)) {
        }
        if (seat->text != seat->leader->history.printed)
            throw Fault{"output is not what the rank has printed"};
    }
    for (bool more = true; more;) {
        more = everywhere();
        for (auto& seat : seats_) more = receipts(*seat, true) || more;
    }
    bool all_live = true;  // a copy promoted after the release sends no receipts any more: nobody needs them
    for (auto& seat : seats_) all_live = all_live && seat->leader->machine.mode() == Mode::live;
    for (auto& seat : seats_)
        for (Copy* copy : seat->copies())
            if (all_live && !copy->machine.logs_empty()) throw Fault{"a log is not empty at the end"};
    check_messages();
    check_collectives();
}

// Every message once, in order, and as its sender's history has it.
void Job::check_messages() {
    std::map<Channel, size_t> counts;
    for (auto& seat : seats_)
        for (const auto& [channel, values] : seat->leader->history.sent) counts[channel] = values.size();
    for (auto& seat : seats_)
        for (auto [channel, consumed] : seat->leader->history.consumed) {
            std::sort(consumed.begin(), consumed.end(),
                      [](const auto& a, const auto& b) { return a.request < b.request; });
            const auto& sent = seat_of(channel.source).leader->history.sent[channel];
            if (consumed.size() != sent.size()) throw Fault{"messages are lost or doubled"};
            for (size_t i = 0; i < consumed.size(); i++) {
                if (consumed[i].content.number != i + 1)
                    throw Fault{"a message overtakes, or comes twice: on communicator " +
                                std::to_string(value(channel.comm) - 1) + " from " +
                                std::to_string(channel.source.number()) + " to " +
                                std::to_string(channel.destination.number()) + ", request " +
                                std::to_string(value(consumed[i].request)) + " has " +
                                std::to_string(consumed[i].content.number)};
                if (consumed[i].content.value != sent[i])
                    throw Fault{"a message is not what its sender sent"};
            }
            counts.erase(channel);
        }
    check_order();
    for (const auto& [channel, count] : counts)
        if (count != 0) throw Fault{"messages are lost"};
}

// Between tags: of two receives that both take both messages the first has the one sent first.
void Job::check_order() {
    for (auto& seat : seats_)
        for (const auto& [one, first] : seat->leader->history.consumed)
            for (const auto& [other, second] : seat->leader->history.consumed) {
                if (one.comm != other.comm || one.source != other.source || one.tag == other.tag) continue;
                for (const auto& a : first)
                    for (const auto& b : second)
                        if (a.request < b.request && a.content.ord > b.content.ord &&
                            a.pattern.takes(other.comm, Envelope{other.source, other.tag}))
                            throw Fault{"a receive of any tag has a message that was sent later"};
            }
}

// Every result as the inputs of all histories give it, in the normal form.
void Job::check_collectives() {
    for (auto& seat : seats_) {
        Rank me = seat->leader->machine.me();
        for (const auto& [key, call] : seat->leader->history.calls) {
            Library::Part part{call.arguments.kind, key.second, normal_way(call.arguments, Rules{}), 0,
                               call.arguments.root, 0};
            std::map<Rank, uint64_t> inputs;
            Kind kind = part.kind;
            for (auto& other : seats_) {
                Rank rank = other->leader->machine.me();
                auto theirs = other->leader->history.calls.find(key);
                if (theirs == other->leader->history.calls.end()) continue;
                bool root_only = kind == Kind::bcast || kind == Kind::scatter;
                if (root_only && rank != *part.root) continue;
                if (kind == Kind::scan && rank > me) continue;
                inputs[rank] = theirs->second.input;
            }
            bool leaf = (kind == Kind::reduce || kind == Kind::gather) && me != *part.root;
            if (leaf || kind == Kind::barrier || kind == Kind::free || kind == Kind::create) continue;
            if (evaluate(part, me, inputs) != call.result) throw Fault{"a collective's result is wrong"};
        }
    }
}

}  // namespace fermata::replay::test
