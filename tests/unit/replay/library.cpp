// The simulated library: nothing here knows of the protocol.
#include "library.h"

#include <algorithm>
#include <cstring>

namespace fermata::replay::test {

Bytes bytes_of(const Content& content) {
    Bytes bytes(sizeof content);
    memcpy(bytes.data(), &content, sizeof content);
    return bytes;
}
Content content_of(const Bytes& bytes) {
    Content content;
    if (bytes.size() == sizeof content) memcpy(static_cast<void*>(&content), bytes.data(), sizeof content);
    return content;
}
uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
    return (x ^ x >> 29) * 0x94d049bb133111ebu;
}

void Library::make(Uid comm, const Vec<Rank>& members) {
    comms_[comm].members.assign(members.begin(), members.end());
}

void Library::send(const SendKey& key, const Channel& channel, const Content& content, bool slow,
                   bool waits) {
    if (!has(channel.comm)) fault = "a send on a communicator that is not there";
    ranks_[channel.source.index()].sends[key] = !waits;
    flight_[{channel.comm, channel.source, channel.destination}].push_back(
        Message{channel, content, key, slow, waits});
}

bool Library::sent(Rank rank, const SendKey& key) const {
    auto at = ranks_[rank.index()].sends.find(key);
    return at != ranks_[rank.index()].sends.end() && at->second;
}

static Envelope envelope(const Channel& channel) { return {channel.source, channel.tag}; }

void Library::finish(Posted& posted) {
    posted.complete = true;
    const Message& message = *posted.matched;
    ranks_[message.channel.source.index()].sends[message.key] = true;
}

void Library::match(Posted& posted, const Message& message) {
    posted.matched = message;
    if (!message.slow && !message.waits) finish(posted);
}

void Library::arrive(const Message& message) {
    End& end = ranks_[message.channel.destination.index()];
    for (Posted& posted : end.posted)
        if (!posted.matched && posted.pattern.takes(message.channel.comm, envelope(message.channel)))
            return match(posted, message);
    end.unexpected.push_back(message);
}

void Library::post(Rank rank, RequestNo request, const Pattern& pattern) {
    if (!has(pattern.comm)) fault = "a receive on a communicator that is not there";
    End& end = ranks_[rank.index()];
    end.posted.push_back(Posted{request, pattern, {}});
    for (size_t i = 0; i < end.unexpected.size(); i++) {
        const Message message = end.unexpected[i];
        if (!pattern.takes(message.channel.comm, envelope(message.channel))) continue;
        end.unexpected.erase(end.unexpected.begin() + static_cast<ptrdiff_t>(i));
        return match(end.posted.back(), message);
    }
}

std::optional<Library::Got> Library::received(Rank rank, RequestNo request) const {
    for (const Posted& posted : ranks_[rank.index()].posted)
        if (posted.request == request && posted.complete)
            return Got{envelope(posted.matched->channel), posted.matched->content};
    return {};
}

void Library::forget(Rank rank, RequestNo request) {
    auto& posted = ranks_[rank.index()].posted;
    posted.erase(std::remove_if(posted.begin(), posted.end(), [&](auto& p) { return p.request == request; }),
                 posted.end());
}

std::optional<Library::Got> Library::probe(Rank rank, const Pattern& pattern) const {
    for (const Message& message : ranks_[rank.index()].unexpected)
        if (pattern.takes(message.channel.comm, envelope(message.channel)))
            return Got{envelope(message.channel), message.content};
    return {};
}

bool Library::deliver(size_t which) {
    if (flight_.empty()) return false;
    auto at = flight_.begin();
    std::advance(at, static_cast<ptrdiff_t>(which % flight_.size()));
    Message message = at->second.front();
    at->second.pop_front();
    if (at->second.empty()) flight_.erase(at);
    arrive(message);
    return true;
}

bool Library::transfer(Rank rank) {
    for (Posted& posted : ranks_[rank.index()].posted)
        if (posted.matched && !posted.complete) return finish(posted), true;
    return false;
}

void Library::settle() {
    for (auto& [pair, messages] : flight_)
        for (; !messages.empty(); messages.pop_front()) arrive(messages.front());
    flight_.clear();
    for (End& end : ranks_)
        for (Posted& posted : end.posted)
            if (posted.matched && !posted.complete) finish(posted);
}

std::vector<std::pair<Channel, Content>> Library::take_unexpected(Rank rank) {
    std::vector<std::pair<Channel, Content>> all;
    for (Message& message : ranks_[rank.index()].unexpected) {
        all.emplace_back(message.channel, message.content);
        ranks_[message.channel.source.index()].sends[message.key] = true;
    }
    ranks_[rank.index()].unexpected.clear();
    return all;
}

size_t Library::join(Uid uid, Rank rank, const Part& part) {
    if (!has(uid)) {
        fault = "a collective on a communicator that is not there";
        return 0;
    }
    Comm& comm = comms_[uid];
    size_t place = comm.calls[rank].size();
    comm.calls[rank].push_back(part);
    for (auto& [other, calls] : comm.calls) {
        if (calls.size() <= place) continue;
        const Part& theirs = calls[place];
        bool same = theirs.kind == part.kind && theirs.instance == part.instance && theirs.way == part.way &&
                    theirs.from == part.from;
        auto text = [](Rank who, const Part& one) {
            return "rank " + std::to_string(who.number()) + " instance " +
                   std::to_string(value(one.instance)) + " kind " +
                   std::to_string(static_cast<int>(one.kind)) + " form " +
                   std::to_string(static_cast<int>(one.way)) + " from " + std::to_string(one.from);
        };
        if (!same)
            fault = "members call differently on communicator " + std::to_string(value(uid) - 1) + ": " +
                    text(other, theirs) + ", " + text(rank, part);
    }
    return place;
}

bool Library::all_joined(const Comm& comm, size_t place) const {
    for (Rank member : comm.members)
        if (auto at = comm.calls.find(member); at == comm.calls.end() || at->second.size() <= place)
            return false;
    return true;
}

std::optional<uint64_t> Library::result(Uid uid, Rank rank, size_t place) const {
    auto found = comms_.find(uid);
    if (found == comms_.end()) return {};
    const Comm& comm = found->second;
    const Part& mine = comm.calls.at(rank)[place];
    auto part_of = [&](Rank member) -> const Part* {
        auto at = comm.calls.find(member);
        return at == comm.calls.end() || at->second.size() <= place ? nullptr : &at->second[place];
    };
    bool rootless = mine.way == Way::from_result;
    Rank source = rootless ? Rank(mine.from) : mine.root.value_or(rank);
    bool from_root = rootless || mine.kind == Kind::bcast || mine.kind == Kind::scatter;
    bool to_root = !rootless && (mine.kind == Kind::gather || mine.kind == Kind::reduce);
    if (from_root) {
        const Part* theirs = part_of(source);
        if (!theirs) return {};
        return rootless ? theirs->input : evaluate(mine, rank, {{source, theirs->input}});
    }
    if (to_root && rank != source) return 0;
    std::map<Rank, uint64_t> inputs;
    for (Rank member : comm.members) {
        if (mine.kind == Kind::scan && member > rank) break;
        const Part* theirs = part_of(member);
        if (!theirs) return {};
        inputs[member] = theirs->input;
    }
    return evaluate(mine, rank, inputs);
}

uint64_t evaluate(const Library::Part& mine, Rank me, const std::map<Rank, uint64_t>& inputs) {
    uint64_t all = static_cast<uint64_t>(mine.kind) + 1;
    bool reduction = mine.kind == Kind::reduce || mine.kind == Kind::allreduce || mine.kind == Kind::scan ||
                     mine.kind == Kind::reduce_scatter;
    if (reduction) all = mix(all, static_cast<uint64_t>(mine.way));
    bool own = mine.kind == Kind::scatter || mine.kind == Kind::alltoall || mine.kind == Kind::reduce_scatter;
    for (auto& [rank, input] : inputs) all = mix(all, input);
    if (mine.kind == Kind::barrier || mine.kind == Kind::free || mine.kind == Kind::create) return 0;
    return own ? mix(all, me.number()) : all;
}

}  // namespace fermata::replay::test
