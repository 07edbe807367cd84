// Entries of the log whose bytes are in a file, for the sake of memory.
#include <algorithm>

#include "replay/machine.h"

namespace fermata::replay {

uint64_t Machine::log_lacks(uint64_t bytes) const {
    const uint64_t wanted = use_.held + bytes;
    return wanted > options_.log_bytes ? wanted - options_.log_bytes : 0;
}

Vec<Machine::Spill> Machine::to_spill(uint64_t bytes) const {
    struct Old {
        Ord ord;
        Spill spill;
    };
    Vec<Old> old;
    for (const Outgoing& out : out_)
        for (const Logged& entry : out.log)
            if (!entry.in_use && entry.held() > 0)
                old.push_back({entry.ord, {SendLogged{out.channel, entry.number}, entry.held()}});
    std::sort(old.begin(), old.end(), [](const Old& a, const Old& b) { return a.ord < b.ord; });
    Vec<Spill> all;
    uint64_t found = 0;
    for (size_t i = 0; i < old.size() && found < bytes; found += old[i++].spill.bytes)
        all.push_back(old[i].spill);
    for (const Communicator& on : comms_)
        for (const LoggedCall& entry : on.log) {
            if (found >= bytes) return all;
            if (entry.in_use || entry.held() == 0) continue;
            all.push_back({CallLogged{on.uid, entry.instance}, entry.held()});
            found += entry.held();
        }
    return all;
}

Vec<Rank> Machine::who_needs_the_log() const {
    Vec<Rank> all;
    for (const Outgoing& out : out_)
        if (!out.log.empty()) all.push_back(out.channel.destination);
    for (const Communicator& on : comms_)
        if (!on.log.empty()) all.insert(all.end(), on.members.begin(), on.members.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

const Logged* Machine::entry_of(const SendLogged& what) const {
    return const_cast<Machine*>(this)->logged(what.channel, what.number);
}
const LoggedCall* Machine::entry_of(const CallLogged& what) const {
    return const_cast<Machine*>(this)->logged(what.comm, what.instance);
}

void Machine::bytes_of(const Spill& what, Bytes* all) const {
    const auto append = [all](const Bytes& more) { all->insert(all->end(), more.begin(), more.end()); };
    if (const auto* message = std::get_if<SendLogged>(&what.what)) return append(entry_of(*message)->bytes);
    const LoggedCall* entry = entry_of(std::get<CallLogged>(what.what));
    append(entry->input);
    append(entry->result);
}

void Machine::spilled(const Spill& what, const Spilled& where) {
    if (const auto* message = std::get_if<SendLogged>(&what.what)) {
        Logged* entry = out_.of(message->channel).find(message->number);
        entry->bytes = Bytes();
        entry->spilled = where;
    } else {
        const auto& call = std::get<CallLogged>(what.what);
        LoggedCall* entry = comm(call.comm)->logged(call.instance);
        entry->input_size = entry->input.size();
        entry->input = Bytes();
        entry->result = Bytes();
        entry->spilled = where;
    }
    use_.spills(where);
}

void Machine::comes_back(const SendLogged& what, Bytes bytes) {
    Logged* entry = out_.of(what.channel).find(what.number);
    use_.comes_back(*std::exchange(entry->spilled, {}));
    entry->bytes = std::move(bytes);
}

void Machine::comes_back(const CallLogged& what, Bytes bytes) {
    LoggedCall* entry = comm(what.comm)->logged(what.instance);
    use_.comes_back(*std::exchange(entry->spilled, {}));
    const auto middle = bytes.begin() + static_cast<ptrdiff_t>(entry->input_size);
    entry->input.assign(bytes.begin(), middle);
    entry->result.assign(middle, bytes.end());
}

}  // namespace fermata::replay
