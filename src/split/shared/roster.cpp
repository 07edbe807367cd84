#include "split/shared/roster.h"

#include <algorithm>

#include "base/ranges.h"

namespace fermata::split::shared {
namespace {

const Roster* current = nullptr;

std::vector<Range> merged(std::vector<Range> ranges) {
    std::sort(ranges.begin(), ranges.end(),
              [](const Range& a, const Range& b) { return a.begin() < b.begin(); });
    std::vector<Range> out;
    for (const Range& range : ranges) {
        if (range.empty()) continue;
        if (!out.empty() && range.begin() <= out.back().end())
            out.back() = out.back().hull(range);
        else
            out.push_back(range);
    }
    return out;
}

}  // namespace

Roster::Roster(Rank rank, const std::vector<Member>& all) : rank_(rank) {
    for (const Member& m : all)
        if (m.rank == rank) objects_[m.use.key];
    for (const Member& m : all) {
        auto at = objects_.find(m.use.key);
        if (at == objects_.end()) continue;
        Object& object = at->second;
        object.ranks.push_back(m.rank);
        if (m.rank < rank) object.lower.push_back(m.use.part);
        if (m.rank == rank && (m.use.flags & kMapped)) object.mapped.push_back(m.use.part);
        object.covered.push_back(m.use.part);
        object.size = std::max(object.size, m.use.size);
        object.writable |= (m.use.flags & kWritable) != 0;
        auto lowest = [&](std::optional<Rank>& who, uint32_t flag) {
            if ((m.use.flags & flag) && (!who || m.rank < *who)) who = m.rank;
        };
        lowest(object.opener, kDescriptor);
        lowest(object.reader, kReads);
    }
    for (auto& [key, object] : objects_) {
        std::sort(object.ranks.begin(), object.ranks.end());
        object.ranks.erase(std::unique(object.ranks.begin(), object.ranks.end()), object.ranks.end());
        object.lower = merged(std::move(object.lower));
        object.mapped = merged(std::move(object.mapped));
        object.covered = merged(std::move(object.covered));
    }
}

const Object* Roster::find(const Key& key) const {
    auto at = objects_.find(key);
    return at == objects_.end() ? nullptr : &at->second;
}

bool Roster::with_others(const Key& key) const {
    const Object* object = find(key);
    return object && object->ranks.size() > 1;
}

bool Roster::first(const Key& key) const {
    const Object* object = find(key);
    return !object || object->ranks.front() == rank_;
}

const Roster* roster() { return current; }
void set_roster(const Roster* roster) { current = roster; }

}  // namespace fermata::split::shared
