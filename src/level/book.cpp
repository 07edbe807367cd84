#include "level/book.h"

#include <algorithm>

namespace fermata::level {

using store::LevelName;

void Book::committed(Generation generation, LevelName level, const std::vector<uint32_t>& needs) {
    Entry& entry = all_[generation.number()];
    (level == LevelName::memory  ? entry.memory
     : level == LevelName::local ? entry.local
                                 : entry.files) = true;
    entry.needs = needs;
    newest_ = std::max(newest_, generation);
}

void Book::flushed(Generation generation) {
    auto entry = all_.find(generation.number());
    if (entry != all_.end()) entry->second.files = true;
}

void Book::localed(Generation generation) { all_[generation.number()].local = true; }

void Book::localed(Generation generation, const std::vector<uint32_t>& needs) {
    Entry& entry = all_[generation.number()];
    entry.local = true;
    entry.needs = needs;
}

void Book::buddied(Generation generation) {
    auto entry = all_.find(generation.number());
    if (entry != all_.end()) entry->second.buddies = entry->second.memory;
}

void Book::encoded(Generation generation) {
    auto entry = all_.find(generation.number());
    if (entry != all_.end()) entry->second.parity = entry->second.memory;
}

void Book::only_in_files(const std::set<uint32_t>& left) {
    for (auto& [number, entry] : all_) entry.files = entry.files && left.count(number) > 0;
    forget_lost();
}

void Book::forget_lost() {
    std::erase_if(all_, [](const auto& one) { return !one.second.anywhere(); });
}

bool Book::has(Generation generation, LevelName level) const {
    auto entry = all_.find(generation.number());
    if (entry == all_.end()) return false;
    return level == LevelName::memory  ? entry->second.memory
           : level == LevelName::local ? entry->second.local
                                       : entry->second.files;
}

bool Book::has_buddies(Generation generation) const {
    auto entry = all_.find(generation.number());
    return entry != all_.end() && entry->second.buddies;
}

Generation Book::newest_with_buddies() const {
    for (auto one = all_.rbegin(); one != all_.rend(); ++one)
        if (one->second.buddies) return Generation(one->first);
    return {};
}

bool Book::has_parity(Generation generation) const {
    auto entry = all_.find(generation.number());
    return entry != all_.end() && entry->second.parity;
}

Generation Book::newest_with_parity() const {
    for (auto one = all_.rbegin(); one != all_.rend(); ++one)
        if (one->second.parity) return Generation(one->first);
    return {};
}

std::vector<Generation> Book::all_in(LevelName level) const {
    std::vector<Generation> all;
    for (auto& [number, entry] : all_)
        if (has(Generation(number), level)) all.push_back(Generation(number));
    return all;
}

Generation Book::newest_in(LevelName level) const {
    for (auto one = all_.rbegin(); one != all_.rend(); ++one)
        if (has(Generation(one->first), level)) return Generation(one->first);
    return {};
}

Generation Book::newest_on_nodes() const {
    return std::max(newest_in(LevelName::memory), newest_in(LevelName::local));
}

Medium Book::medium_of(Generation generation) const {
    return has(generation, LevelName::local) && !has(generation, LevelName::memory) ? Medium::local
                                                                                    : Medium::memory;
}

Generation Book::base_at(LevelName level) const {
    if (!has(newest_, level)) return {};
    for (uint32_t needed : all_.at(newest_.number()).needs)
        if (!has(Generation(needed), level)) return {};
    return newest_;
}

std::vector<Generation> Book::to_keep(Medium medium, const std::vector<Generation>& being_copied) const {
    const LevelName level = store::level_of(medium);
    std::vector<Generation> roots = being_copied;
    roots.push_back(newest_in(level));
    for (Generation lasting : {newest_with_buddies(), newest_with_parity()})
        if (medium == Medium::memory && lasting > newest_in(LevelName::files)) roots.push_back(lasting);
    std::set<uint32_t> kept;
    for (Generation root : roots) {
        if (!has(root, level)) continue;
        kept.insert(root.number());
        for (uint32_t needed : all_.at(root.number()).needs) kept.insert(needed);
    }
    std::vector<Generation> list;
    for (uint32_t number : kept) list.push_back(Generation(number));
    return list;
}

void Book::keep(Medium medium, const std::vector<Generation>& kept) {
    for (auto& [number, entry] : all_) {
        bool& there = medium == Medium::memory ? entry.memory : entry.local;
        there = there && std::count(kept.begin(), kept.end(), Generation(number)) > 0;
        entry.buddies = entry.buddies && entry.memory;
        entry.parity = entry.parity && entry.memory;
    }
    forget_lost();
}

template <class There>
std::vector<Generation> Book::missing(Generation generation, LevelName from, There there) const {
    if (!has(generation, from) || there(generation)) return {};
    std::set<uint32_t> numbers = {generation.number()};
    for (uint32_t needed : all_.at(generation.number()).needs)
        if (!there(Generation(needed))) numbers.insert(needed);
    std::vector<Generation> list;
    for (uint32_t number : numbers) {
        if (!has(Generation(number), from)) return {};
        list.push_back(Generation(number));
    }
    return list;
}

std::vector<Generation> Book::to_copy(Generation generation) const {
    return missing(generation, store::level_of(medium_of(generation)),
                   [this](Generation one) { return has(one, LevelName::files); });
}

std::vector<Generation> Book::to_local(Generation generation) const {
    return missing(generation, LevelName::memory,
                   [this](Generation one) { return has(one, LevelName::local); });
}

std::vector<Generation> Book::to_buddies(Generation generation) const {
    return missing(generation, LevelName::memory, [this](Generation one) { return has_buddies(one); });
}

std::vector<Generation> Book::to_encode(Generation generation) const {
    return missing(generation, LevelName::memory, [this](Generation one) { return has_parity(one); });
}

}  // namespace fermata::level
