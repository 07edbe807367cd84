#include "image/whereabouts.h"

#include <algorithm>

namespace fermata::image {
namespace {

using Parts = std::map<uint64_t, Whereabouts::Part>;

// The first part that may reach beyond `at`.
Parts::const_iterator first_from(const Parts& parts, uint64_t at) {
    auto it = parts.upper_bound(at);
    return it == parts.begin() ? it : std::prev(it);
}

}  // namespace

void Whereabouts::put(const Part& part) {
    if (part.length == 0) return;
    by_now_[part.now] = part;
    by_was_[part.was] = part;
}

void Whereabouts::add(Range memory) { put({memory.begin(), memory.begin(), memory.size()}); }

void Whereabouts::forget(Range present) {
    const uint64_t begin = present.begin(), end = present.end();
    for (auto it = first_from(by_now_, begin); it != by_now_.end() && it->first < end;) {
        Part part = it->second;
        uint64_t part_end = part.now + part.length;
        if (part_end <= begin) {
            ++it;
            continue;
        }
        by_was_.erase(part.was);
        it = by_now_.erase(it);
        if (part.now < begin) put({part.now, part.was, begin - part.now});
        if (part_end > end) put({end, part.was + (end - part.now), part_end - end});
    }
}

void Whereabouts::move(uint64_t from, uint64_t to, uint64_t length) {
    std::vector<Part> moved;
    for (auto it = first_from(by_now_, from); it != by_now_.end() && it->first < from + length; ++it) {
        const Part& part = it->second;
        uint64_t begin = std::max(from, part.now), end = std::min(from + length, part.now + part.length);
        if (begin < end) moved.push_back({to + (begin - from), part.was + (begin - part.now), end - begin});
    }
    forget(Range::sized(from, length));
    forget(Range::sized(to, length));
    for (const Part& part : moved) put(part);
}

std::vector<Whereabouts::Part> Whereabouts::now_of(Range was) const {
    std::vector<Part> found;
    for (auto it = first_from(by_was_, was.begin()); it != by_was_.end() && it->first < was.end(); ++it) {
        const Part& part = it->second;
        const Range some = was.common(Range::sized(part.was, part.length));
        if (!some.empty()) found.push_back({part.now + (some.begin() - part.was), some.begin(), some.size()});
    }
    return found;
}

std::optional<uint64_t> Whereabouts::was_of(uint64_t now) const {
    auto it = first_from(by_now_, now);
    if (it == by_now_.end() || now < it->first || now - it->first >= it->second.length) return {};
    return it->second.was + (now - it->first);
}

}  // namespace fermata::image
