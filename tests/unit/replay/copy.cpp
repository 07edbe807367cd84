// The interpreter calls the machine as wrappers of the front will.
#include "copy.h"

#include <algorithm>

namespace fermata::replay::test {

static Uid uid_of(int comm) { return static_cast<Uid>(comm + 1); }

Copy::Copy(Rank me, const Program& program, const Options& options)
    : machine(me, Buffers{}, options), program_(&program), state_(mix(7, me.number())) {
    Vec<Rank> all;
    for (size_t i = 0; i < program.ranks.size(); i++) all.push_back(Rank(static_cast<uint32_t>(i)));
    machine.world(uid_of(0), all);
    synchronous = program.sends_synchronously();
    attach();
}

std::unique_ptr<Copy> Copy::clone() const {
    std::unique_ptr<Copy> other(new Copy(*this));
    other->background_.clear();
    other->attach();
    return other;
}

void Copy::attach() {
    Buffers buffers{};
    buffers.self = this;
    buffers.contribution = [](void* self, const Request& request, Bytes* out) {
        auto& copy = *static_cast<Copy*>(self);
        auto at = copy.buffers_.find(request.no);
        if (request.send())
            *out = bytes_of(at->second.content);
        else
            *out = bytes_of(Content{at == copy.buffers_.end() ? copy.next_input_ : at->second.input});
    };
    buffers.arrived = [](void* self, const Request& request, Bytes* out) {
        *out = bytes_of(static_cast<Copy*>(self)->buffers_[request.no].content);
    };
    buffers.deliver = [](void* self, const Request& request, const Bytes& bytes) {
        static_cast<Copy*>(self)->buffers_[request.no].content = content_of(bytes);
    };
    buffers.told = [](void* self, const Request& request) {
        auto& copy = *static_cast<Copy*>(self);
        const Buffer& buffer = copy.buffers_[request.no];
        if (const Receive* receive = request.receive()) {
            Channel channel{receive->pattern.comm, receive->got->source, copy.machine.me(),
                            receive->got->tag};
            copy.history.consumed[channel].push_back({request.no, receive->pattern, buffer.content});
            copy.state_ = mix(copy.state_, mix(buffer.content.value, receive->got->source.number()));
        }
        if (const Collective* call = request.collective()) {
            copy.history.calls[{call->comm, call->instance}] = {call->arguments, buffer.original,
                                                                buffer.content.value};
            copy.state_ = mix(copy.state_, buffer.content.value);
        }
    };
    machine.buffers(buffers);
}

std::string Copy::place() const {
    const char* modes[] = {"live", "follow", "play"};
    return std::string(modes[static_cast<int>(machine.mode())]) + " at " + std::to_string(pc_) +
           (started_ ? " (begun)" : "") + (machine.went() ? "" : " before Go");
}

void Copy::next() {
    pc_++;
    entered_ = started_ = false;
}

bool Copy::blocks(const Op& op) const { return op.handle < 0; }

Pattern Copy::pattern(const Op& op) const {
    Pattern pattern{uid_of(op.comm), {}, {}};
    if (op.peer >= 0) pattern.source = Rank(static_cast<uint32_t>(op.peer));
    if (op.peer == kProbed) pattern.source = probed_;
    if (op.tag >= 0) pattern.tag = static_cast<Tag>(op.tag);
    return pattern;
}

bool Copy::step(Door& door) {
    if (live() && !machine.may_tell()) return false;
    const Op& op = this->op();
    if (!entered_) machine.enter();
    entered_ = true;
    if (attempt(door, op)) return true;
    bool records = op.what != Do::finalize && op.what != Do::print && op.what != Do::drop && blocks(op);
    return live() && synchronous && records && harvest(door);
}

bool Copy::attempt(Door& door, const Op& op) {
    switch (op.what) {
        case Do::print: {
            std::string line = std::to_string(machine.me().number()) + ":" + std::to_string(state_) + "\n";
            door.print(machine.stream().end(), line);
            history.printed += line;
            next();
            return true;
        }
        case Do::finalize:
            return finalize(door);
        case Do::drop:
            machine.free_send(handles_.at(op.handles[0]));
            next();
            return true;
        case Do::probe:
        case Do::iprobe:
            return live() ? try_probe(door, op) : follow(door, CallKind::probe);
        case Do::any:
        case Do::test:
            return live() ? try_choice(door, op) : follow(door, CallKind::choice);
        case Do::wait:
            return live() ? try_wait(door, op) : follow(door, CallKind::wait);
        case Do::send:
        case Do::receive:
        case Do::collective:
            break;
    }
    if (!started_) {
        if (!start(op)) return false;
        started_ = true;
        if (!blocks(op)) next();
        return true;
    }
    CallKind kind = op.what == Do::send      ? CallKind::send
                    : op.what == Do::receive ? CallKind::receive
                                             : CallKind::collective;
    if (!live()) return follow(door, kind);
    if (!ready(current_)) return false;
    Outcome outcome{.kind = kind};
    outcome.told.push_back(current_);
    return tell(door, std::move(outcome));
}

bool Copy::start(const Op& op) {
    if (op.what == Do::send) {
        if (live() && !machine.may_send()) return false;
        Channel channel{uid_of(op.comm), machine.me(), Rank(static_cast<uint32_t>(op.peer)),
                        static_cast<Tag>(op.tag)};
        const Request& request = machine.start_send(channel, op.synchronous);
        current_ = request.no;
        uint64_t number = value(request.send()->number);
        Buffer& buffer = buffers_[current_];
        buffer.content = Content{mix(state_, mix(number, static_cast<uint64_t>(op.tag * 8 + op.comm))),
                                 number, value(request.send()->ord)};
        history.sent[channel].push_back(buffer.content.value);
    } else if (op.what == Do::receive) {
        current_ = machine.start_receive(pattern(op)).no;
    } else {
        if (live() && !machine.may_start_collective()) return false;
        start_collective(op);
    }
    buffers_[current_].op = &op;
    if (op.handle >= 0) handles_[op.handle] = current_;
    bool below = live() && op.what != Do::collective && machine.request(current_)->stage == Stage::outside;
    if (below) issue(current_);
    return true;
}

void Copy::start_collective(const Op& op) {
    Arguments arguments{op.kind, {}, true, blocks(op), op.in_place};
    bool rooted = op.kind == Kind::bcast || op.kind == Kind::scatter || op.kind == Kind::gather ||
                  op.kind == Kind::reduce;
    if (rooted) arguments.root = Rank(static_cast<uint32_t>(op.peer));
    bool gives = !((op.kind == Kind::bcast || op.kind == Kind::scatter) && *arguments.root != machine.me());
    next_input_ = gives ? mix(state_, static_cast<uint64_t>(op.comm) + 100) : 0;
    std::optional<Take> way;
    current_ = machine.start_collective(uid_of(op.comm), arguments, &way).no;
    Buffer& buffer = buffers_[current_];
    buffer.input = buffer.original = next_input_;
    buffer.op = &op;
    if (way) take_part(*way);
}

void Copy::issue(RequestNo no) {
    const Request& request = *machine.request(no);
    const Buffer& buffer = buffers_[no];
    if (const Send* send = request.send())
        library->send(SendKey{no, {}, {}}, send->channel, buffer.content, buffer.op->slow,
                      buffer.op->large || buffer.op->synchronous);
    if (const Receive* receive = request.receive()) library->post(machine.me(), no, receive->pattern);
    machine.issued(no);
}

void Copy::take_part(const Take& take) {
    const Request& request = *machine.request(take.request);
    const Collective& call = *request.collective();
    Buffer& buffer = buffers_[take.request];
    Bytes input;
    machine.input_of(take.request, &input);
    Library::Part part{call.arguments.kind, call.instance, take.way, 0, call.arguments.root, 0};
    if (take.way == Way::from_result)
        part.from = take.from.number();
    else
        part.input = content_of(input).value;
    buffer.place = library->join(call.comm, machine.me(), part);
    if (call.arguments.overwrites) buffer.input = mix(buffer.input, 666);  // half of it, from now on
    machine.issued(take.request);
}

// Has the library completed it meanwhile?
bool Copy::poll(RequestNo no) {
    const Request* request = machine.request(no);
    if (!request || request->stage != Stage::issued) return false;
    Buffer& buffer = buffers_[no];
    if (request->send()) {
        if (!library->sent(machine.me(), SendKey{no, {}, {}})) return false;
        machine.completed(no);
    } else if (request->receive()) {
        auto got = library->received(machine.me(), no);
        if (!got) return false;
        buffer.content = got->content;
        library->forget(machine.me(), no);
        machine.received(no, got->from);
    } else {
        const Collective& call = *request->collective();
        auto result = library->result(call.comm, machine.me(), buffer.place);
        if (!result) return false;
        buffer.content = Content{*result};
        std::optional<Made> made;
        if (call.arguments.kind == Kind::create) {
            Made all{uid_of(buffer.op->peer), {}};
            for (int one : buffer.op->members) all.members.push_back(Rank(static_cast<uint32_t>(one)));
            bool mine = std::count(all.members.begin(), all.members.end(), machine.me()) != 0;
            const Planned* planned = machine.find(call.comm)->planned(call.instance);
            bool rebuilt = planned && (!machine.rules().have(Rule::members_make) ||
                                       std::count(planned->made.begin(), planned->made.end(), all.uid) != 0);
            if (mine && !rebuilt && !library->has(all.uid)) library->make(all.uid, all.members);
            if (mine) made = all;
        }
        machine.completed(no, std::move(made));
    }
    return true;
}

bool Copy::ready(RequestNo no) {
    while (auto missing = machine.missing(no))
        if (!poll(*missing)) return false;
    return true;
}

bool Copy::make_room(size_t sends) {
    uint64_t lacks = machine.log_lacks(sends * sizeof(Content));
    if (lacks != 0 && sends != 0 && !machine.rules().have(Rule::spill)) return false;
    if (lacks != 0)
        for (const Machine::Spill& spill : machine.to_spill(lacks)) {
            Bytes bytes;
            machine.bytes_of(spill, &bytes);
            Spilled where{next_place_++, bytes.size(), 0};
            spilled_[where.place] = std::move(bytes);
            machine.spilled(spill, where);
        }
    for (const Spilled& over : machine.take_over()) spilled_.erase(over.place);
    return true;
}

template <class What, class Entry>
void Copy::read_back(const What& what, const Entry& entry) {
    if (entry.spilled) machine.comes_back(what, spilled_.at(entry.spilled->place));
}

void Copy::heard(const Outcome& outcome) {
    state_ = mix(state_, static_cast<uint64_t>(outcome.index) * 2 + outcome.flag);
    if (outcome.kind == CallKind::probe) probed_.reset();
    if (outcome.probed) probed_ = outcome.probed->from.source;
    if (outcome.probed) state_ = mix(state_, outcome.probed->from.source.number());
}

bool Copy::tell(Door& door, Outcome outcome) {
    size_t sends = 0;
    for (RequestNo no : outcome.told) sends += machine.request(no)->send() != nullptr;
    if (!door.room_for_record() || !make_room(sends)) return false;
    Record record = machine.tell(std::move(outcome));
    heard(record.outcome);
    for (RequestNo no : record.outcome.told) buffers_.erase(no);
    next();
    door.commit(Entry{std::move(record), state_});
    return true;
}

bool Copy::follow(Door& door, CallKind kind) {
    const Entry* entry = door.next_record();
    if (!entry) return false;
    if (!machine.fits(entry->record, kind)) throw Fault{"a copy's call is not the leader's"};
    bool over = machine.take(entry->record);
    make_room(0);
    if (over) {
        heard(entry->record.outcome);
        if (state_ != entry->digest) throw Fault{"a copy has other data than its leader"};
        for (RequestNo no : entry->record.outcome.told) buffers_.erase(no);
        next();
    }
    door.pop_record();
    return true;
}

bool Copy::harvest(Door& door) {
    std::vector<RequestNo> open;
    for (const auto& [no, buffer] : buffers_) open.push_back(no);
    for (RequestNo no : open)
        if (const Request* request = machine.request(no); request && request->receive()) poll(no);
    if (!machine.can_harvest() || !door.room_for_record()) return false;
    door.commit(Entry{machine.harvest(), state_});
    return true;
}

bool Copy::try_wait(Door& door, const Op& op) {
    Outcome outcome{.kind = CallKind::wait};
    for (int handle : op.handles) {
        RequestNo no = handles_.at(handle);
        bool twice = std::count(outcome.told.begin(), outcome.told.end(), no) != 0;
        if (machine.request(no) && !twice) outcome.told.push_back(no);
    }
    bool all = true;
    for (RequestNo no : outcome.told) all = ready(no) && all;
    return all && tell(door, std::move(outcome));
}

bool Copy::try_choice(Door& door, const Op& op) {
    Outcome outcome{.kind = CallKind::choice, .flag = false, .index = -1};
    std::vector<int> ready_ones;
    bool any = false;
    for (size_t i = 0; i < op.handles.size(); i++) {
        RequestNo no = handles_.at(op.handles[i]);
        if (!machine.request(no)) continue;
        any = true;
        if (ready(no)) ready_ones.push_back(static_cast<int>(i));
    }
    if (ready_ones.empty() && any && op.what == Do::any) return false;
    if (!ready_ones.empty()) {
        outcome.flag = true;
        outcome.index = ready_ones[door.pick(ready_ones.size())];
        outcome.told.push_back(handles_.at(op.handles[static_cast<size_t>(outcome.index)]));
    }
    return tell(door, std::move(outcome));
}

bool Copy::try_probe(Door& door, const Op& op) {
    Outcome outcome{.kind = CallKind::probe, .flag = false};
    std::optional<Envelope> found;
    if (const Queued* queued = machine.queued(pattern(op)))
        found = queued->from;
    else if (auto got = library->probe(machine.me(), pattern(op)))
        found = got->from;
    if (found) {
        outcome.flag = true;
        outcome.probed = Probed{uid_of(op.comm), *found};
        while (auto missing = machine.missing_for_probe(uid_of(op.comm), *found))
            if (!poll(*missing)) {
                outcome.flag = false;
                outcome.probed.reset();
                break;
            }
    }
    if (!outcome.flag && op.what == Do::probe) return false;
    return tell(door, std::move(outcome));
}

bool Copy::finalize(Door& door) {
    if (arrived) return false;
    if (!live()) {
        arrived = !machine.rules().have(Rule::arrive_anew);
        return false;
    }
    if (!machine.may_finalize()) return false;
    arrived = true;
    door.arrive();
    return true;
}

bool Copy::poll_background() {
    for (size_t i = 0; i < background_.size(); i++) {
        const Background one = background_[i];
        bool over = one.debt ? library->result(one.debt->comm, machine.me(), one.place).has_value()
                             : library->sent(machine.me(), one.key);
        if (!over) continue;
        background_.erase(background_.begin() + static_cast<ptrdiff_t>(i));
        if (one.debt)
            machine.paid(one.debt->comm, one.debt->instance);
        else
            machine.sent_from_log(*one.key.channel, one.key.number);
        return true;
    }
    return false;
}

void Copy::carry_out(const Vec<Action>& actions) {
    for (const Action& action : actions) {
        if (const auto* open = std::get_if<SendOpen>(&action)) issue(open->request);
        if (const auto* post = std::get_if<Post>(&action)) issue(post->request);
        if (const auto* take = std::get_if<Take>(&action)) take_part(*take);
        if (const auto* again = std::get_if<SendLogged>(&action)) {
            const Logged& entry = *machine.logged(again->channel, again->number);
            SendKey key{{}, again->channel, again->number};
            read_back(*again, entry);
            library->send(key, again->channel, content_of(entry.bytes), false, false);
            background_.push_back(Background{key, {}, 0});
        }
        if (const auto* pay = std::get_if<Pay>(&action)) {
            const LoggedCall& entry = *machine.logged(pay->comm, pay->instance);
            read_back(CallLogged{pay->comm, pay->instance}, entry);
            Library::Part part{entry.arguments.kind, pay->instance, pay->way, 0, entry.arguments.root, 0};
            bool result = pay->way == Way::from_result;
            if (result) part.from = pay->from.number();
            if (!result || pay->from == machine.me())
                part.input = content_of(result ? entry.result : entry.input).value;
            size_t place = library->join(pay->comm, machine.me(), part);
            background_.push_back(Background{{}, *pay, place});
        }
    }
}

void Copy::drain() {
    std::vector<RequestNo> open;
    for (const auto& [no, buffer] : buffers_) open.push_back(no);
    for (RequestNo no : open) {
        const Request* request = machine.request(no);
        if (!request || !request->receive() || request->stage != Stage::issued) continue;
        auto got = library->received(machine.me(), no);
        if (!got) continue;
        buffers_[no].content = got->content;
        library->forget(machine.me(), no);
        machine.drained(no, got->from);
    }
    for (const auto& [channel, content] : library->take_unexpected(machine.me()))
        machine.pulled(channel.comm, Envelope{channel.source, channel.tag}, bytes_of(content));
}

}  // namespace fermata::replay::test
