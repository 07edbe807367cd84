// A fresh lower half: what it has to be given, in an order in which receivers and other members can take it.
#include <algorithm>

#include "replay/machine.h"

namespace fermata::replay {

// Counts as if the record had been played.
void Machine::count_items(const Record& record, Vec<CommCounts>* comms, ChannelTable<Incoming>* in) const {
    for (const Item& item : record.items) {
        if (const auto* message = std::get_if<MessageItem>(&item)) {
            count_item(in->of(Channel{message->comm, message->from.source, me_, message->from.tag}));
        } else if (const auto* call = std::get_if<CollectiveItem>(&item)) {
            for (CommCounts& one : *comms)
                if (one.uid == call->comm) one.told.add(call->instance);
            if (call->made)
                comms->push_back(
                    CommCounts{call->made->uid, call->comm, call->instance, call->made->members, {}, {}});
        }
    }
}

Said Machine::said(std::span<const Record> ring) const {
    Said said{me_, {}, {}};
    for (const Communicator& on : comms_)
        said.comms.push_back(CommCounts{on.uid, on.parent, on.made_as, on.members, on.told, on.entered});
    ChannelTable<Incoming> in = in_;
    if (mode_ != Mode::live && rules().have(Rule::count_ring))
        for (const Record& record : ring) count_items(record, &said.comms, &in);
    for (const Incoming& one : in) {
        MessageNo count = one.counted(rules().have(Rule::count_pulled));
        if (count != MessageNo{}) said.consumed.push_back(Consumed{one.channel, count});
    }
    if (!rules().have(Rule::told_is_a_set))
        for (CommCounts& one : said.comms)
            for (Instance i{1}; i <= one.told.last(); ++i) one.told.add(i);
    return said;
}

Vec<Action> Machine::recover(const Orders& orders) {
    epoch_ = orders.epoch;
    went_ = false;
    all_touched_ = true;
    if (mode_ == Mode::follow) mode_ = Mode::play;
    if (mode_ == Mode::play) stream_.copy(Copy::none);
    for (Outgoing& out : out_) {
        if (rules().have(Rule::replace_known)) out.known = MessageNo{};
        for (Logged& entry : out.log) entry.in_use = false;
    }
    for (const Consumed& one : orders.known) {
        Outgoing& out = out_.of(one.channel);
        out.known = std::max(out.known, one.count);
        if (!rules().have(Rule::cut_by_receipt)) out.stable = std::max(out.stable, out.known);
    }
    for (Outgoing& out : out_) cut(out);
    remembered_.clear();
    for (const CommOrders& one : orders.comms) remembered_.push_back(one.uid);
    orphans_.clear();
    for (const CommOrders& one : orders.comms)
        if (!comm(one.uid)) orphans_.push_back(one);
    for (Communicator& on : comms_) {
        on.plan.clear();
        for (const CommOrders& one : orders.comms)
            if (one.uid == on.uid) on.plan = one.plan;
        for (LoggedCall& entry : on.log) {
            entry.in_use = false;
            if (!rules().have(Rule::cut_by_everywhere) && !on.planned(entry.instance))
                on.everywhere.add(entry.instance);
        }
        cut(on);
    }
    // What the old library had, it takes along; what was complete only because of the last exchange, too.
    for (Request& request : requests_) {
        if (request.stage == Stage::told || (request.receive() && request.stage == Stage::complete)) continue;
        request.stage = Stage::outside;
        if (Receive* receive = request.receive()) receive->got.reset();
        if (Collective* call = request.collective()) call->made.reset();
    }
    if (mode_ == Mode::live) return resume();
    Vec<Action> actions;  // nothing below before the ring's end
    if (!rules().have(Rule::ring_first))
        for (Communicator& on : comms_)
            for (const Numbered& one : debts(on)) actions.push_back(one.action);
    return actions;
}

Vec<Action> Machine::ring_ended() {
    always(mode_ == Mode::play && may_tell(), "a copy is live before its time");
    mode_ = Mode::live;
    all_touched_ = true;
    return resume();
}

// The word that all are through with a freed communicator has reached a member, and nobody says it again.
void Machine::hear_who_has_forgotten() {
    for (Communicator& on : comms_) {
        bool remembered = std::find(remembered_.begin(), remembered_.end(), on.uid) != remembered_.end();
        if (remembered || on.freed_as == Instance{}) continue;
        on.everywhere.add_all(on.told);
        cut(on);
    }
    forget_freed();
}

Vec<Action> Machine::resume() {
    Vec<Action> actions;
    hear_who_has_forgotten();
    resume_sends(&actions);
    resume_receives(&actions);
    for (Communicator& on : comms_) {
        resume_collectives(on, &actions);
        cut(on);
    }
    forget_freed();
    return actions;
}

void Machine::resume_sends(Vec<Action>* actions) {
    struct Again {
        Ord ord;
        Tag tag;
        bool open;
        Action action;
    };
    Vec<Again> all;
    for (Outgoing& out : out_)
        for (Logged& entry : out.log) {
            if (entry.number <= out.known || !rules().have(Rule::resend)) continue;
            entry.in_use = true;
            all.push_back(Again{entry.ord, out.channel.tag, false, SendLogged{out.channel, entry.number}});
        }
    for (Request& request : requests_) {
        const Send* send = request.send();
        if (!send || request.stage != Stage::outside) continue;
        if (send->number <= out_.of(send->channel).known && rules().have(Rule::suppressed_open))
            request.stage = Stage::complete;
        else
            all.push_back(Again{send->ord, send->channel.tag, true, SendOpen{request.no}});
    }
    auto before = [&](const Again& a, const Again& b) {
        if (!rules().have(Rule::by_ord) && a.tag != b.tag) return a.tag < b.tag;
        if (!rules().have(Rule::interleaved) && a.open != b.open) return b.open;
        return a.ord < b.ord;
    };
    std::sort(all.begin(), all.end(), before);
    for (const Again& one : all) actions->push_back(one.action);
}

void Machine::resume_receives(Vec<Action>* actions) {
    for (const Request& request : requests_)
        if (request.receive() && request.stage == Stage::outside) actions->push_back(Post{request.no});
}

Vec<Machine::Numbered> Machine::debts(Communicator& on) {
    Vec<Numbered> all;
    for (const Planned& planned : on.plan) {
        if (!planned.was_told(me_)) continue;
        if (!rules().have(Rule::ring_first) && !on.told.has(planned.instance)) continue;
        LoggedCall* entry = on.logged(planned.instance);
        always(entry, "a debt whose input is gone");
        Way way = planned_way(entry->arguments, planned, me_, rules());
        if (way == Way::pass || entry->in_use) continue;
        entry->in_use = true;
        all.push_back(Numbered{planned.instance, Pay{on.uid, planned.instance, way, planned.told.front()}});
    }
    return all;
}

void Machine::resume_collectives(Communicator& on, Vec<Action>* actions) {
    Vec<Numbered> all = debts(on);
    for (Request& request : requests_) {
        const Collective* call = request.collective();
        if (!call || call->comm != on.uid || request.stage != Stage::outside) continue;
        if (auto way = way_now(on, request))
            all.push_back(Numbered{call->instance, *way});
        else
            request.stage = Stage::complete;
    }
    std::sort(all.begin(), all.end(),
              [](const Numbered& a, const Numbered& b) { return a.instance < b.instance; });
    for (const Numbered& one : all) actions->push_back(one.action);
}

}  // namespace fermata::replay
