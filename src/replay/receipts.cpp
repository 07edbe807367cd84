// The bounds of the logs: receipts of consumed messages, and sets of instances that all members were told.
#include <algorithm>
#include <utility>

#include "replay/machine.h"

namespace fermata::replay {

// The copy begins with this memory: all that was told or pulled so far is in it.
void Machine::copy(Copy copy) {
    stream_.copy(copy);
    all_touched_ = true;
    pending_.clear();
    for (Incoming& in : in_) in.stable = in.counted(true);
    for (Communicator& on : comms_) on.stable = on.told;
}

void Machine::became_stable(Position up_to) {
    stream_.became_stable(up_to);
    size_t over = 0;
    for (; over < pending_.size() && pending_[over].at <= up_to; over++) {
        Pending& one = pending_[over];
        if (one.consumed) {
            Incoming& in = touch(one.consumed->channel);
            in.stable = std::max(in.stable, one.consumed->count);
        } else if (Communicator* on = comm(one.comm)) {
            on->stable.add(one.instance);
        }
    }
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<ptrdiff_t>(over));
}

// Open receives that are sure to take the next messages of their channel, after a hop, too: those of one
// source and tag, when none of any source that was posted before could take one. (One of that source and any
// tag takes what its sender has sent first, always.) So whoever sends synchronously need not wait until they
// are told. A copy posts them only where nothing is decided otherwise before.
ChannelTable<Machine::Promised> Machine::promises() const {
    ChannelTable<Promised> all;
    if (!may_start_collective()) return all;
    Vec<Pattern> of_any;
    for (const Request& request : requests_) {
        const Receive* receive = request.receive();
        if (!receive || !request.is_open() || receive->named) continue;
        const Pattern& pattern = receive->pattern;
        if (!pattern.source) of_any.push_back(pattern);
        if (!pattern.source || !pattern.tag) continue;
        const Envelope from{*pattern.source, *pattern.tag};
        auto takes = [&](const Pattern& other) { return other.takes(pattern.comm, from); };
        if (rules().have(Rule::promise_order) && std::any_of(of_any.begin(), of_any.end(), takes)) continue;
        all.of(Channel{pattern.comm, from.source, me_, from.tag}).messages++;
    }
    return all;
}

std::optional<Receipt> Machine::receipt_of(const Incoming& in, const ChannelTable<Promised>& open) const {
    const MessageNo count = stream_.has_copy() ? in.stable : in.counted(true);
    // Messages in the queue came behind all that receives have.
    MessageNo taken = in.counted(true);
    for (const Queued& one : queue_)
        if (one.comm == in.channel.comm && one.from == Envelope{in.channel.source, in.channel.tag})
            taken = previous(taken);
    const Promised* promise = taken == in.counted(true) ? open.find(in.channel) : nullptr;
    taken = promise ? static_cast<MessageNo>(value(taken) + promise->messages) : std::min(taken, count);
    if (count == MessageNo{} && taken == MessageNo{}) return {};
    return Receipt{in.channel, count, taken};
}

Vec<Receipt> Machine::receipts() const {
    Vec<Receipt> all;
    if (mode_ != Mode::live) return all;
    const ChannelTable<Promised> open = promises();
    for (const Incoming& in : in_)
        if (auto receipt = receipt_of(in, open)) all.push_back(*receipt);
    for (const Promised& one : open)
        if (!in_.find(one.channel))
            all.push_back(Receipt{one.channel, {}, static_cast<MessageNo>(one.messages)});
    return all;
}

Vec<Receipt> Machine::news() {
    Vec<Receipt> all;
    if (mode_ != Mode::live) return all;
    if (std::exchange(all_touched_, false)) {
        all = receipts();
    } else {
        const ChannelTable<Promised> open = promises();
        for (const Promised& one : open) incoming(one.channel.comm, {one.channel.source, one.channel.tag});
        for (const Channel& channel : touched_)
            if (const Incoming* in = in_.find(channel))  // its communicator may be forgotten
                if (auto receipt = receipt_of(*in, open)) all.push_back(*receipt);
    }
    for (const Channel& channel : touched_)
        if (in_.find(channel)) in_.of(channel).touched = false;
    touched_.clear();
    return all;
}

bool Machine::wants(const Receipt& receipt) const {
    // One that is freed has no log; one that a copy has not made yet gets it later.
    if (!find(receipt.channel.comm) && mode_ == Mode::live) return false;
    const Outgoing* out = out_.find(receipt.channel);
    return !out || receipt.count > out->stable || receipt.taken > out->taken;
}

void Machine::receipt(const Receipt& receipt) {
    if (!wants(receipt)) return;
    Outgoing& out = out_.of(receipt.channel);
    out.stable = std::max(out.stable, receipt.count);
    out.taken = std::max(out.taken, receipt.taken);
    cut(out);
}

const ToldSet& Machine::stable_told(const Communicator& on) const {
    return stream_.has_copy() ? on.stable : on.told;
}

// MPI_Comm_free leaves operations open that were begun before (MPI-4.0, 7.4.3).
bool Machine::is_settled(const Communicator& on) const {
    for (const Request& request : requests_) {
        if (request.stage == Stage::told) continue;
        const Send* send = request.send();
        const Receive* receive = request.receive();
        const Collective* call = request.collective();
        if ((send && send->channel.comm == on.uid) || (receive && receive->pattern.comm == on.uid) ||
            (call && call->comm == on.uid))
            return false;
    }
    for (const Outgoing& out : out_)
        if (out.channel.comm == on.uid && !out.log.empty()) return false;
    for (const Pending& one : pending_)
        if (one.comm == on.uid || (one.consumed && one.consumed->channel.comm == on.uid)) return false;
    return true;
}

ToldSet Machine::told_for_good(const Communicator& on) const {
    const ToldSet& told = stable_told(on);
    if (on.freed_as == Instance{} || !told.has(on.freed_as) || !rules().have(Rule::free_settled) ||
        is_settled(on))
        return told;
    ToldSet before;
    for (Instance i{1}; i < on.freed_as; ++i)
        if (told.has(i)) before.add(i);
    return before;
}

// A copy that plays has not issued its debts yet: the plan is binding.
bool Machine::owes(const Communicator& on, Instance i) const {
    return mode_ == Mode::play && on.planned(i) != nullptr;
}

void Machine::everywhere(Uid uid, const ToldSet& told) {
    Communicator* on = comm(uid);
    if (!on) {
        if (mode_ == Mode::live) return;  // freed
        for (Early& one : early_)
            if (one.comm == uid) return one.everywhere.add_all(told);
        early_.push_back(Early{uid, told});
        return;
    }
    on->everywhere.add_all(told);
    if (!rules().have(Rule::plan_binds)) {
        auto over = [&](const Planned& one) { return on->everywhere.has(one.instance); };
        on->plan.erase(std::remove_if(on->plan.begin(), on->plan.end(), over), on->plan.end());
    }
    cut(*on);
    forget_freed();
}

void Machine::cut(Communicator& on) {
    auto over = [&](const LoggedCall& entry) {
        if (!on.everywhere.has(entry.instance) || entry.in_use || owes(on, entry.instance)) return false;
        use_.leaves(entry);
        return true;
    };
    on.log.erase(std::remove_if(on.log.begin(), on.log.end(), over), on.log.end());
}

// A freed communicator goes when all members' frees are stable: until then a promoted copy of another member
// may still stand before it.
void Machine::forget_freed() {
    for (size_t i = 0; i < comms_.size(); i++) {
        const Communicator& on = comms_[i];
        if (on.freed_as == Instance{}) continue;
        bool over = on.everywhere.has(on.freed_as) && on.log.empty();
        if (!over && rules().have(Rule::free_late)) continue;
        for (Outgoing& out : out_)
            if (out.channel.comm == on.uid) {
                out.stable = out.sent;
                cut(out);
            }
        for (const LoggedCall& entry : on.log) use_.leaves(entry);
        out_.forget(on.uid);
        in_.forget(on.uid);
        comms_.erase(comms_.begin() + static_cast<ptrdiff_t>(i--));
    }
}

const Logged* Machine::logged(const Channel& channel, MessageNo number) {
    return out_.of(channel).find(number);
}
const LoggedCall* Machine::logged(Uid uid, Instance instance) {
    Communicator* on = comm(uid);
    return on ? on->logged(instance) : nullptr;
}

bool Machine::logs_empty() const {
    for (const Outgoing& out : out_)
        if (!out.log.empty()) return false;
    for (const Communicator& on : comms_)
        if (!on.log.empty()) return false;
    return true;
}

void Machine::drained(RequestNo no, Envelope from) {
    Request* request = requests_.find(no);
    always(request && request->receive() && request->is_open(), "a drain completes what is not open");
    Receive& receive = *request->receive();
    receive.got = from;
    receive.drained = true;
    request->stage = Stage::complete;
    incoming(receive.pattern.comm, from).pulled++;
}

void Machine::pulled(Uid uid, const Envelope& from, Bytes bytes) {
    queue_.push_back(Queued{uid, from, std::move(bytes)});
    incoming(uid, from).pulled++;
}

// Cuts nothing: what was pulled is known by receipts, as everything else: a copy of the receiver was not told
// of it. What the library had completed before counts with it: its channel's later messages do.
void Machine::drained_checkpoint() {
    for (Request& request : requests_)
        if (mode_ == Mode::live && request.receive() && request.stage == Stage::below &&
            rules().have(Rule::drain_takes_all))
            drained(request.no, *request.receive()->got);
    if (rules().have(Rule::drain_is_receipts)) return;
    for (Outgoing& out : out_) {
        out.stable = out.sent;
        cut(out);
    }
}

}  // namespace fermata::replay
