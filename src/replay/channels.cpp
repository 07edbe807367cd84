// The log of a channel: entries mostly come in order and leave from the front.
#include "replay/channels.h"

#include <algorithm>

namespace fermata::replay {

void Outgoing::add(Logged message) {
    auto at = log.end();
    while (at != log.begin() && (at - 1)->number > message.number) --at;
    log.insert(at, std::move(message));
}

Logged* Outgoing::find(MessageNo number) {
    for (Logged& entry : log)
        if (entry.number == number) return &entry;
    return nullptr;
}

uint64_t Outgoing::cut() {
    uint64_t freed = 0;
    auto over = [&](const Logged& entry) {
        if (entry.number > stable || entry.in_use) return false;
        freed += entry.bytes.size();
        return true;
    };
    log.erase(std::remove_if(log.begin(), log.end(), over), log.end());
    return freed;
}

}  // namespace fermata::replay
