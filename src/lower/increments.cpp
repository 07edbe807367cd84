#include "lower/increments.h"

#include <set>
#include <utility>

#include "base/error.h"
#include "base/invariant.h"
#include "base/ranges.h"
#include "image/compare.h"

namespace fermata::lower {
namespace {

// With checksums, one byte written costs a whole block of the next increment: blocks are small then.
constexpr uint64_t kComparedBlock = 256 << 10;

// How many generations an image needs that refers to this content.
size_t generations_of(const image::Content& content) {
    std::set<uint32_t> numbers;
    for (const image::Reference& reference : content.references) numbers.insert(reference.generation);
    return numbers.size();
}

// Ranges of the mappings that `which` picks whose content equals the previous image's.
template <class Which>
std::vector<Range> same_content(const split::MemoryTable& table, const image::Content& base, Which&& which) {
    std::vector<Range> readable;
    for (const split::MapEntry& map : table.maps)
        if (which(map)) readable.insert(readable.end(), map.runs.begin(), map.runs.end());
    split::make_readable(table);
    std::vector<Range> same = image::unchanged_since(base, readable);
    split::restore_protection(table);
    return same;
}

}  // namespace

uint32_t LastImage::forget() { return std::exchange(generation, 0); }

void LastImage::remember(image::Content new_content, std::vector<Range> new_covered) {
    always(!new_content.references.empty(), "an image that does not even refer to itself");
    for (size_t i = 1; i < new_covered.size(); ++i)
        always(new_covered[i - 1].end() <= new_covered[i].begin(), "covered memory that is not in order");
    generation = new_content.references.back().generation;
    content = std::move(new_content);
    covered = std::move(new_covered);
}

Increment::Increment(LastImage& last, uint32_t base, const image::SaveOptions& options,
                     std::vector<std::string>& warnings)
    : last_(last),
      follow_(way_to_follow(last, options.incremental, warnings)),
      refers_(follows() && base != 0 && options.base == base &&
              generations_of(last.content) < options.chain) {}

Increment::Follow Increment::way_to_follow(LastImage& last, image::Incremental wanted,
                                           std::vector<std::string>& warnings) {
    if (wanted == image::Incremental::no) return Follow::no;
    if (wanted == image::Incremental::hashes) return Follow::content;
    std::string why = split::writes_unseen();
    if (why.empty() && !last.tracker) {
        try {
            last.tracker = std::make_unique<split::DirtyTracker>(split::best_page_marks());
        } catch (const Error& error) {
            why = error.what();
        }
    }
    if (why.empty()) {
        last.tracker->split_huge_pages(wanted == image::Incremental::split);
        return Follow::pages;
    }
    if (!std::exchange(last.told, true))
        warnings.push_back(fmt::format("increments compare all memory with checksums: {}", why));
    return Follow::content;
}

split::DirtyTracker* Increment::tracker() const {
    return follow_ == Follow::pages ? last_.tracker.get() : nullptr;
}

uint64_t Increment::largest_block() const { return follow_ == Follow::content ? kComparedBlock : 0; }

bool Increment::holds_threads(const split::MapEntry& map) const { return map.range.overlaps(thread_table_); }

// As the kernel's page marks say.
std::vector<Range> Increment::same_pages(size_t map) const {
    always(memory_ && map < memory_->unchanged.size(), "marks of pages that were not read");
    return intersection(memory_->unchanged[map], last_.covered);
}

void Increment::choose(const split::CollectedMemory& memory, Range thread_table) {
    memory_ = &memory;
    thread_table_ = thread_table;
    const auto& maps = memory.table.maps;
    same_.assign(maps.size(), {});
    if (!refers_) return;
    auto asked = [this](const split::MapEntry& map) {
        return !memory_->not_in_a_copy(map) && !holds_threads(map);
    };
    std::vector<Range> same;
    if (follow_ == Follow::content) same = same_content(memory.table, last_.content, asked);
    for (size_t i = 0; i < maps.size(); ++i)
        if (asked(maps[i]))
            same_[i] = follow_ == Follow::content ? intersection(same, maps[i].runs) : same_pages(i);
}

void Increment::choose_threads() {
    if (!refers_) return;
    always(memory_ && same_.size() == memory_->table.maps.size(), "an increment of memory that was not read");
    const auto& maps = memory_->table.maps;
    for (size_t i = 0; i < maps.size(); ++i) {
        if (!holds_threads(maps[i]) || memory_->not_in_a_copy(maps[i])) continue;
        if (follow_ == Follow::content) {
            same_[i] = same_content(memory_->table, last_.content,
                                    [&](const split::MapEntry& map) { return &map == &maps[i]; });
        } else if (auto since = last_.tracker->look(maps[i])) {
            same_[i] = intersection(same_pages(i), since->unchanged);
        }
    }
}

std::vector<Range> Increment::all_same() const {
    std::vector<Range> all;
    for (const auto& same : same_) all.insert(all.end(), same.begin(), same.end());
    return all;
}

}  // namespace fermata::lower
