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
    auto at = std::lower_bound(log.begin(), log.end(), number,
                               [](const Logged& entry, MessageNo wanted) { return entry.number < wanted; });
    return at != log.end() && at->number == number ? &*at : nullptr;
}

void Outgoing::cut(LogUse* use) {
    const auto end =
        std::upper_bound(log.begin(), log.end(), stable,
                         [](MessageNo last, const Logged& entry) { return last < entry.number; });
    const auto over = [use](const Logged& entry) {
        if (!entry.in_use) use->leaves(entry);
        return !entry.in_use;
    };
    log.erase(std::remove_if(log.begin(), end, over), end);
}

}  // namespace fermata::replay
