// tell(): how the program hears that operations are complete. All of it is in one record, or none.
#include <algorithm>

#include "replay/machine.h"

namespace fermata::replay {

Incoming& Machine::touch(const Channel& channel) {
    Incoming& in = in_.of(channel);
    if (!in.touched) touched_.push_back(channel);
    in.touched = true;
    return in;
}
Incoming& Machine::incoming(Uid uid, const Envelope& from) {
    return touch(Channel{uid, from.source, me_, from.tag});
}

// The earlier posted open receives that match the message, for each of these the same with its own message:
// after a hop one of them could take it else. MPI has matched all of them already. Returns one that is not
// complete yet.
std::optional<RequestNo> Machine::closure(Uid uid, const Envelope& of, RequestNo before,
                                          Vec<RequestNo>* all) const {
    struct From {
        Uid comm;
        Envelope envelope;
    };
    Vec<From> others;  // rarely any: no memory is taken
    // Of each only earlier ones can be in it, so one walk backwards finds all.
    for (auto at = requests_.end(); at != requests_.begin();) {
        const Request& request = *--at;
        const Receive* receive = request.receive();
        if (request.no >= before || !receive || !request.is_open()) continue;
        auto takes = [&](const From& m) { return receive->pattern.takes(m.comm, m.envelope); };
        if (!takes(From{uid, of}) && std::none_of(others.begin(), others.end(), takes)) continue;
        if (request.stage != Stage::below) return request.no;
        others.push_back(From{receive->pattern.comm, *receive->got});
        if (all) all->push_back(request.no);
    }
    return {};
}

std::optional<RequestNo> Machine::missing(RequestNo no) const {
    const Request* request = requests_.find(no);
    if (!request) return {};
    if (request->stage < Stage::below) return no;
    if (const Send* send = request->send()) {
        bool by_receipt = send->synchronous && rules().have(Rule::ssend_receipt);
        const Outgoing* out = out_.find(send->channel);
        if (by_receipt && out->taken < send->number) return no;
    }
    if (const Collective* call = request->collective(); call && !rules().have(Rule::tell_any_order)) {
        for (const Request& other : requests_)
            if (const Collective* earlier = other.collective(); earlier && earlier->comm == call->comm &&
                                                                earlier->instance < call->instance &&
                                                                other.stage < Stage::told)
                return other.no;
    }
    const Receive* receive = request->receive();
    if (!receive || request->stage != Stage::below || !rules().have(Rule::harvest)) return {};
    return closure(receive->pattern.comm, *receive->got, no, nullptr);
}

std::optional<RequestNo> Machine::missing_for_probe(Uid uid, const Envelope& found) const {
    if (!rules().have(Rule::harvest_probe)) return {};
    return closure(uid, found, static_cast<RequestNo>(UINT64_MAX), nullptr);
}

// Counts the receive's message, and keeps the receive complete over a hop.
void Machine::name(Request& request, Record* record) {
    Receive& receive = *request.receive();
    Incoming& in = incoming(receive.pattern.comm, *receive.got);
    ++in.consumed;
    if (receive.drained && in.pulled > 0) in.pulled--;
    receive.named = true;
    request.stage = Stage::complete;
    if (!receive.pattern.source) record->determinant = true;
    if (!stream_.has_copy()) return;
    MessageItem item{receive.pattern.comm, *receive.got, request.no, {}};
    buffers_.arrived(buffers_.self, request, &item.bytes);
    record->items.push_back(std::move(item));
}

static bool unnamed(const Request& request) {
    const Receive* receive = request.receive();
    return receive && request.stage == Stage::complete && !receive->named;
}

void Machine::name_drained(Record* record) {
    for (Request& request : requests_)
        if (unnamed(request)) name(request, record);
}

Record Machine::tell(Outcome outcome) {
    always(may_tell() && mode_ == Mode::live, "something is told that must not be");
    Record record{call_, std::move(outcome), {}, false};
    CallKind kind = record.outcome.kind;
    record.determinant = kind == CallKind::choice || kind == CallKind::probe || kind == CallKind::value;
    if (rules().have(Rule::name_drained)) name_drained(&record);

    Vec<RequestNo> named;
    for (RequestNo no : record.outcome.told) {
        const Request* request = requests_.find(no);
        const Receive* receive = request->receive();
        if (!receive || receive->named) continue;
        named.push_back(no);
        if (request->stage == Stage::below && rules().have(Rule::harvest))
            closure(receive->pattern.comm, *receive->got, no, &named);
    }
    if (const auto& found = record.outcome.probed; found && rules().have(Rule::harvest_probe))
        closure(found->comm, found->from, static_cast<RequestNo>(UINT64_MAX), &named);
    std::sort(named.begin(), named.end());
    named.erase(std::unique(named.begin(), named.end()), named.end());
    for (RequestNo no : named) name(*requests_.find(no), &record);

    for (RequestNo no : record.outcome.told) finish(*requests_.find(no), &record);
    commit(record);
    return record;
}

void Machine::free_send(RequestNo no) {
    Request* request = requests_.find(no);
    always(request && request->send(), "what is freed while open is no send");
    digest(*request);
    log(*request->send(), *request);
    Requests::tell(*request);
    requests_.sweep();
}

bool Machine::can_harvest() const {
    for (const Request& request : requests_) {
        if (unnamed(request) && rules().have(Rule::name_drained)) return true;
        if (request.receive() && request.stage == Stage::below && !missing(request.no)) return true;
    }
    return false;
}

Record Machine::harvest() {
    always(may_tell() && mode_ == Mode::live, "something is told that must not be");
    Record record{call_, Outcome{.kind = CallKind::harvest}, {}, false};
    if (rules().have(Rule::name_drained)) name_drained(&record);
    Vec<RequestNo> named;
    for (const Request& request : requests_)
        if (request.receive() && request.stage == Stage::below && !missing(request.no))
            named.push_back(request.no);
    for (RequestNo no : named) name(*requests_.find(no), &record);
    commit(record);
    return record;
}

// The program hears of it. `record`: null in a copy that takes what is told from one.
void Machine::finish(Request& request, Record* record) {
    buffers_.told(buffers_.self, request);
    digest(request);
    if (const Send* send = request.send()) log(*send, request);
    if (Collective* call = request.collective()) {
        Communicator& on = *comm(call->comm);
        bool frees = call->arguments.kind == Kind::free;
        on.told.add(call->instance);
        log(on, *call, request);
        if (record && stream_.has_copy()) {
            CollectiveItem item{call->comm, call->instance, request.no, {}, call->made, frees};
            buffers_.arrived(buffers_.self, request, &item.result);
            record->items.push_back(std::move(item));
        }
        if (frees) on.freed_as = call->instance;
        if (call->made) add_comm(*call->made, call->comm, call->instance);  // `on` is no more
    }
    Requests::tell(request);
}

// Where both processes can tell: data, not how communicators are made.
void Machine::digest(const Request& request) {
    if (mode_ == Mode::live && !stream_.has_copy()) return;
    const Collective* call = request.collective();
    if (request.receive() || (call && call->arguments.kind == Kind::create)) return;
    if (call && call->arguments.overwrites && rules().have(Rule::input_copied))
        return digest_.add(call->kept_input);
    Bytes input;
    buffers_.contribution(buffers_.self, request, &input);
    digest_.add(input);
}

void Machine::log(const Send& send, const Request& request) {
    Outgoing& out = out_.of(send.channel);
    if (send.number <= out.stable) return;
    if (!rules().have(Rule::suppressed_logged) && send.number <= out.known) return;
    Logged entry{send.number, send.ord, {}};
    buffers_.contribution(buffers_.self, request, &entry.bytes);
    use_.add(entry.held());
    out.add(std::move(entry));
}

void Machine::log(Communicator& on, const Collective& call, const Request& request) {
    if (on.everywhere.has(call.instance) && !owes(on, call.instance)) return;
    bool passed = mode_ == Mode::live && !way_now(on, request);
    if (passed && !rules().have(Rule::pass_logs)) return;
    LoggedCall entry{call.instance, call.arguments, {}, {}};
    if (call.arguments.overwrites && rules().have(Rule::input_copied))
        entry.input = call.kept_input;
    else
        buffers_.contribution(buffers_.self, request, &entry.input);
    bool same_everywhere = call.arguments.kind == Kind::allreduce || call.arguments.kind == Kind::allgather;
    if (same_everywhere) buffers_.arrived(buffers_.self, request, &entry.result);
    use_.add(entry.held());
    on.log.push_back(std::move(entry));
}

void Machine::commit(Record& record) {
    stream_.add(record.determinant);
    record.digest = digest_.value();
    for (const Item& item : record.items) {
        Pending pending{stream_.end(), {}, {}, {}};
        if (const auto* message = std::get_if<MessageItem>(&item)) {
            const Incoming& in = incoming(message->comm, message->from);
            pending.consumed = Consumed{in.channel, in.consumed};
        } else if (const auto* call = std::get_if<CollectiveItem>(&item)) {
            pending.comm = call->comm;
            pending.instance = call->instance;
        }
        if (stream_.has_copy()) pending_.push_back(std::move(pending));
    }
    requests_.sweep();
    forget_freed();
}

}  // namespace fermata::replay
