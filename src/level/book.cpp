#include "level/book.h"

#include <algorithm>

#include "base/invariant.h"

namespace fermata::level {

using store::LevelName;

void Book::Entry::lose(const Where& where) {
    places.erase(where);
    if (!is_in(LevelName::memory))
        std::erase_if(places, [](const Where& one) { return one.is_beside_memory(); });
}

void Book::committed(Generation generation, LevelName level, const std::vector<uint32_t>& needs) {
    always(static_cast<bool>(generation), "no generation, noted as committed");
    Entry& entry = all_[generation.number()];
    entry.places.insert(level);
    entry.needs = needs;
    newest_ = std::max(newest_, generation);
}

void Book::also_in(Generation generation, const Where& where) {
    always(static_cast<bool>(generation), "no generation, noted in another place");
    auto entry = all_.find(generation.number());
    if (entry == all_.end()) return;
    if (!where.is_beside_memory() || entry->second.is_in(LevelName::memory))
        entry->second.places.insert(where);
}

void Book::left_in(Generation generation, const Where& where, const std::vector<uint32_t>& needs) {
    always(static_cast<bool>(generation), "no generation, noted as left by a life before");
    always(!where.is_beside_memory(), "a second copy that is left, and the first is not known");
    Entry& entry = all_[generation.number()];
    entry.places.insert(where);
    if (!needs.empty()) entry.needs = needs;
}

void Book::only_in(const Where& where, const std::set<uint32_t>& left) {
    for (auto& [number, entry] : all_)
        if (left.count(number) == 0) entry.lose(where);
    forget_lost();
}

void Book::forget_lost() {
    std::erase_if(all_, [](const auto& one) { return one.second.places.empty(); });
}

bool Book::has(Generation generation, const Where& where) const {
    auto entry = all_.find(generation.number());
    return entry != all_.end() && entry->second.is_in(where);
}

std::vector<Generation> Book::all_in(const Where& where) const {
    std::vector<Generation> all;
    for (auto& [number, entry] : all_)
        if (entry.is_in(where)) all.push_back(Generation(number));
    return all;
}

Generation Book::newest_in(const Where& where) const {
    for (auto one = all_.rbegin(); one != all_.rend(); ++one)
        if (one->second.is_in(where)) return Generation(one->first);
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
    for (Generation lasting : {newest_in(kBuddies), newest_in(kParity)})
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
    std::set<uint32_t> numbers;
    for (Generation one : kept) numbers.insert(one.number());
    only_in(store::level_of(medium), numbers);
}

std::vector<Generation> Book::missing(Generation generation, const Where& from, const Where& to) const {
    if (!has(generation, from) || has(generation, to)) return {};
    std::set<uint32_t> numbers = {generation.number()};
    for (uint32_t needed : all_.at(generation.number()).needs)
        if (!has(Generation(needed), to)) numbers.insert(needed);
    always(from != to, "a copy from a place to itself");
    std::vector<Generation> list;
    for (uint32_t number : numbers) {
        if (!has(Generation(number), from)) return {};
        list.push_back(Generation(number));
    }
    return list;
}

std::vector<Generation> Book::to_copy(Generation generation, const Where& to) const {
    return missing(generation, store::level_of(medium_of(generation)), to);
}

std::vector<Generation> Book::to_copy_from_memory(Generation generation, const Where& to) const {
    return missing(generation, LevelName::memory, to);
}

}  // namespace fermata::level
