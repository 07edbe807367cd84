// Operations begin here: numbers are given once, and a hop does not change them.
#include "replay/machine.h"

namespace fermata::replay {

Machine::Machine(Rank me, const Buffers& buffers, const Options& options)
    : me_(me), buffers_(buffers), options_(options) {}

Communicator* Machine::comm(Uid uid) {
    for (Communicator& one : comms_)
        if (one.uid == uid) return &one;
    return nullptr;
}

void Machine::add_comm(const Made& made, Uid parent, Instance made_as) {
    Communicator one{};
    one.uid = made.uid;
    one.parent = parent;
    one.made_as = made_as;
    one.members = made.members;
    for (size_t i = 0; i < early_.size(); i++)
        if (early_[i].comm == made.uid) {
            one.everywhere = early_[i].everywhere;
            early_.erase(early_.begin() + static_cast<ptrdiff_t>(i));
            break;
        }
    for (const CommOrders& orphan : orphans_)
        if (orphan.uid == made.uid && rules().have(Rule::orphans_plan)) one.plan = orphan.plan;
    comms_.push_back(std::move(one));
}

void Machine::world(Uid uid, std::span<const Rank> members) {
    add_comm(Made{uid, Vec<Rank>(members.begin(), members.end())}, Uid{}, Instance{});
}

bool Machine::may_send() const { return stream_.determinants_stable() || !rules().have(Rule::commit_send); }
bool Machine::may_start_collective() const {
    return stream_.determinants_stable() || !rules().have(Rule::commit_coll);
}
bool Machine::may_finalize() const {
    return stream_.stable() == stream_.end() || !rules().have(Rule::finalize_stable);
}

const Request& Machine::start_send(const Channel& channel, bool synchronous) {
    Outgoing& out = out_.of(channel);
    ++out.sent;
    ++ord_;
    Request& request = requests_.start(Send{channel, out.sent, ord_, synchronous});
    if (mode_ == Mode::live && out.sent <= out.known && rules().have(Rule::suppress))
        request.stage = Stage::complete;
    return request;
}

const Queued* Machine::queued(const Pattern& pattern) const {
    for (const Queued& one : queue_)
        if (pattern.takes(one.comm, one.from)) return &one;
    return nullptr;
}

const Request& Machine::start_receive(const Pattern& pattern) {
    Request& request = requests_.start(Receive{pattern, {}, false, false});
    if (const Queued* found = queued(pattern)) {
        Receive& receive = *request.receive();
        receive.got = found->from;
        receive.drained = true;
        request.stage = Stage::complete;
        buffers_.deliver(buffers_.self, request, found->bytes);
        incoming(found->comm, found->from);
        queue_.erase(queue_.begin() + (found - queue_.data()));
    }
    return request;
}

const Request& Machine::start_collective(Uid uid, const Arguments& arguments, std::optional<Take>* way) {
    Communicator& on = *comm(uid);
    ++on.entered;
    Request& request = requests_.start(Collective{uid, on.entered, arguments, {}, {}});
    if (arguments.overwrites && rules().have(Rule::input_copied))
        buffers_.contribution(buffers_.self, request, &request.collective()->kept_input);
    way->reset();
    if (mode_ == Mode::live) {
        *way = way_now(on, request);
        if (!*way) request.stage = Stage::complete;
    }
    return request;
}

// The form of a call in this epoch; nothing: it passes.
std::optional<Take> Machine::way_now(const Communicator& on, const Request& request) const {
    const Collective& call = *request.collective();
    const Planned* planned = on.planned(call.instance);
    Way way =
        planned ? planned_way(call.arguments, *planned, me_, rules()) : normal_way(call.arguments, rules());
    if (way == Way::pass) return {};
    return Take{request.no, way, planned && !planned->told.empty() ? planned->told.front() : me_};
}

void Machine::input_of(RequestNo no, Bytes* input) const {
    const Request* request = requests_.find(no);
    const Collective& call = *request->collective();
    if (call.arguments.overwrites && rules().have(Rule::input_copied))
        *input = call.kept_input;
    else
        buffers_.contribution(buffers_.self, *request, input);
}

void Machine::issued(RequestNo no) {
    Request* request = requests_.find(no);
    always(request && request->stage == Stage::outside, "an operation is issued twice");
    request->stage = Stage::issued;
}

void Machine::completed(RequestNo no, std::optional<Made> made) {
    Request* request = requests_.find(no);
    always(request && request->stage == Stage::issued, "an operation is complete that nobody issued");
    request->stage = Stage::below;
    if (Collective* call = request->collective()) call->made = std::move(made);
}

void Machine::received(RequestNo no, Envelope from) {
    Request* request = requests_.find(no);
    always(request && request->stage == Stage::issued, "a receive is complete that nobody posted");
    request->stage = Stage::below;
    request->receive()->got = from;
}

void Machine::sent_from_log(const Channel& channel, MessageNo number) {
    Outgoing& out = out_.of(channel);
    if (Logged* entry = out.find(number)) entry->in_use = false;
    cut(out);
}

void Machine::paid(Uid uid, Instance instance) {
    if (Communicator* on = comm(uid)) {
        if (LoggedCall* entry = on->logged(instance)) entry->in_use = false;
        cut(*on);
    }
    forget_freed();
}

}  // namespace fermata::replay
