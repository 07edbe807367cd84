#include "api/restoring.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "api/staging.h"
#include "base/error.h"
#include "base/log.h"
#include "base/page.h"
#include "base/text.h"
#include "files/owners.h"

namespace fermata::api {
namespace {

// Bytes [begin, end) of a part, read from an image. The rest of the buffer means nothing.
void read_part(const image::Reader& image, const SavedPart& part, uint64_t begin, uint64_t end,
               PageBuffer& buffer) {
    buffer.reserve(page_up(part.bytes));
    const uint64_t low = part.address + begin, high = part.address + end;
    const auto& extents = image.extents();
    auto first =
        std::lower_bound(extents.begin(), extents.end(), low,
                         [](const image::Extent& e, uint64_t at) { return e.address + e.length <= at; });
    std::unordered_set<uint32_t> blocks;
    std::unordered_set<const image::Extent*> wanted;
    for (auto e = first; e != extents.end() && e->address < high; ++e) {
        blocks.insert(e->block);
        wanted.insert(&*e);
    }
    const uint64_t last = part.address + page_up(part.bytes);
    for (const image::Extent* e : wanted)
        if (e->address < part.address || e->length > last - e->address)
            refuse(FERMATA_DAMAGED, "an image has memory across the end of a part");
    // Memory without an extent was zero.
    std::memset(buffer.data() + begin, 0, end - begin);
    image.load(
        [&](const image::Extent& e) -> void* {
            return wanted.count(&e) ? buffer.data() + (e.address - part.address) : nullptr;
        },
        1, [&](uint32_t block) { return blocks.count(block) != 0; });
}

}  // namespace

std::vector<int64_t> Restoring::steps() {
    std::vector<int64_t> steps;
    for (const Candidate& one : all_candidates()) steps.push_back(one.step);
    return steps;
}

std::optional<Restored> Restoring::run(std::optional<int64_t> wanted) {
    Fault last;
    std::vector<Candidate> candidates = all_candidates();
    if (wanted) std::erase_if(candidates, [&](const Candidate& one) { return one.step != *wanted; });
    for (const Candidate& candidate : candidates) {
        try {
            return attempt(candidate);
        } catch (const Fault& fault) {
            if (fault.code != FERMATA_DAMAGED && fault.code != FERMATA_STORAGE) throw;
            last = fault;
            if (ranks_.first() && &candidate != &candidates.back())
                say(fmt::format("{} cannot be used: {}; the one before is taken",
                                Generation(candidate.number).name(), fault.sentence));
        }
    }
    if (last) throw Fault{FERMATA_DAMAGED, last.sentence};
    if (!lost_.empty()) refuse(FERMATA_DAMAGED, "{}, and {} has nothing older", lost_, directory_);
    return {};
}

// Newest first, the same on all ranks; of one number that in memory comes first.
std::vector<Restoring::Candidate> Restoring::all_candidates() {
    std::vector<Candidate> all;
    if (memory_) {
        Memory::Findings findings = memory_->find();
        lost_ = findings.lost;
        for (Memory::Found& one : findings.whole) all.push_back({one.number, one.step, "", std::move(one)});
    }
    std::vector<Candidate> files;
    ranks_.together([&] {
        // Memory serves also when the directory has nothing, or nothing that can be read.
        try {
            if (ranks_.first()) files = choose();
        } catch (const Fault& fault) {
            if (all.empty()) throw;
            say(fault.sentence + "; what is in memory is taken");
        } catch (const Error& error) {
            if (all.empty()) throw;
            say(std::string(error.what()) + "; what is in memory is taken");
        }
    });
    uint64_t count = files.size();
    ranks_.broadcast(count);
    files.resize(count);
    for (Candidate& one : files) {
        ranks_.broadcast(one.number);
        ranks_.broadcast(one.step);
        one.seal = ranks_.broadcast_text(one.seal);
        all.push_back(one);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.number > b.number; });
    return all;
}

// Newest first.
std::vector<Restoring::Candidate> Restoring::choose() const {
    std::vector<Candidate> found;
    const auto directory = files::Folder::find_at(directory_);
    if (!directory) return found;
    store::Store store = store::Store::for_reading(directory_, key_);
    std::vector<store::GenerationInfo> all = store.list();
    std::string damage;
    bool processes = false, foreign = false;
    for (auto one = all.rbegin(); one != all.rend(); ++one) {
        if (!files::believed(one->folder.owner())) {
            if (found.empty() && !std::exchange(foreign, true))
                say(fmt::format("{} belongs to {} and is passed over", one->directory,
                                files::name_of_user(one->folder.owner())));
            continue;
        }
        if (!one->manifest) {
            if (damage.empty()) damage = one->damage;
            if (!one->damage.empty() && found.empty()) say(one->damage + "; the one before is taken");
            continue;
        }
        if (!one->manifest->step) {
            processes = true;
            continue;
        }
        found.push_back({one->number, *one->manifest->step, one->seal.hex(), {}});
    }
    if (!found.empty()) return found;
    if (!damage.empty()) refuse(FERMATA_DAMAGED, "{}", damage);
    // In his own directory they are what was meant; in one that many write to he may have put them there.
    if (foreign && !files::believed(directory->owner()))
        refuse(FERMATA_ARGUMENT, "the generations in {} belong to another user", directory_);
    if (processes)
        refuse(FERMATA_ARGUMENT,
               "{} holds checkpoints of whole processes, which `fermata restart` continues: give the "
               "program's own "
               "state another directory",
               directory_);
    return found;
}

Restored Restoring::attempt(const Candidate& candidate) {
    tables_.clear();
    open_.clear();
    generation_ = {};
    if (candidate.found) {
        ranks_.together([&] {
            // Held by this node, or not at all: then others read it.
            if (candidate.found->here) generation_ = *candidate.found->here;
        });
        look(candidate.found->holder);
        match();
        generation_ = memory_->fetch(*candidate.found, ranks_.gather_texts(needs()));
        open_.clear();
        open_.resize(tables_.size());
    } else {
        ranks_.together([&] {
            generation_ = store::open_chosen(directory_ + "/" + Generation(candidate.number).name(),
                                             candidate.seal, key_.get());
            generation_.check_layout();
        });
        // The ranks share them out.
        std::vector<int> from(generation_.manifest->images.size());
        for (size_t i = 0; i < from.size(); ++i)
            from[i] = static_cast<int>(i % static_cast<size_t>(ranks_.size()));
        look(from);
        match();
    }
    ranks_.together([&] {
        if (generation_.manifest->step != tables_.at(0).step)
            refuse(FERMATA_DAMAGED, "{}: its images are of another step than its manifest",
                   generation_.directory);
        fill();
    });
    open_.clear();
    return {generation_.manifest->job, candidate.number, tables_.at(0).step, candidate.found.has_value()};
}

const image::Reader& Restoring::reader(size_t rank) {
    auto& one = open_.at(rank);
    if (!one) {
        const store::ImageEntry& entry = generation_.manifest->images.at(rank);
        auto made = std::make_unique<image::Reader>(generation_.place(entry), key_.get());
        if (!generation_.is_of(entry, *made))
            refuse(FERMATA_DAMAGED, "{}/{} is not the image that the manifest names", generation_.directory,
                   entry.file);
        one = std::move(made);
    }
    return *one;
}

// `from`: by image, the rank that reads its table and hands it round.
void Restoring::look(const std::vector<int>& from) {
    const size_t images = from.size();
    open_.resize(images);
    std::vector<std::string> texts(images);
    ranks_.together([&] {
        for (size_t i = 0; i < images; ++i) {
            if (from[i] != ranks_.rank()) continue;
            const auto& blob = reader(i).blob(kBlob);
            texts[i].assign(reinterpret_cast<const char*>(blob.data()), blob.size());
        }
    });
    for (size_t i = 0; i < images; ++i) texts[i] = ranks_.broadcast_text(texts[i], from[i]);
    ranks_.together([&] {
        for (size_t i = 0; i < images; ++i) {
            tables_.push_back(
                Table::decoded(texts[i].data(), texts[i].size(), fmt::format("the image of rank {}", i)));
            if (tables_[i].step != tables_[0].step)
                refuse(FERMATA_DAMAGED, "the images of a generation are of different steps");
            for (auto& [name, entry] : tables_[i].entries) {
                auto first = tables_[0].entries.find(name);
                if (first == tables_[0].entries.end() || !(first->second == static_cast<const Shape&>(entry)))
                    refuse(FERMATA_DAMAGED,
                           "{} is something else in the image of rank {} than in that of rank 0",
                           visible(name), i);
            }
        }
    });
}

// A byte per image: 1 = this rank will read it.
std::string Restoring::needs() const {
    std::string needed(tables_.size(), '\0');
    needed[0] = 1;  // what all have in common
    if (static_cast<size_t>(ranks_.rank()) < needed.size()) needed[static_cast<size_t>(ranks_.rank())] = 1;
    for (auto& [name, entry] : state_.entries()) {
        if (entry.kind != Kind::array) continue;
        for (size_t i = 0; i < tables_.size(); ++i) {
            auto saved = tables_[i].entries.find(name);
            if (saved == tables_[i].entries.end()) continue;
            for (const Part& mine : entry.parts)
                for (const SavedPart& part : saved->second.parts)
                    for_each_common(mine.grid, part.grid, [&](int64_t, int64_t, int64_t) { needed[i] = 1; });
        }
    }
    return needed;
}

void Restoring::match() const {
    const bool same = tables_.size() == static_cast<size_t>(ranks_.size());
    ranks_.together([&] {
        if (std::string why = why_no_match(state_, tables_[0], same); !why.empty())
            refuse(FERMATA_MISMATCH, "what was saved for {} does not fit: {}", directory_, why);
    });
}

void Restoring::fill() {
    for (auto& [name, entry] : state_.entries()) {
        switch (entry.kind) {
            case Kind::array:
                fill_array(name, entry);
                break;
            case Kind::global:
                fill_own(name, entry, 0);
                break;
            case Kind::local:
            case Kind::object:
                fill_own(name, entry, static_cast<size_t>(ranks_.rank()));
                break;
        }
    }
}

// All of what one rank saved under this name.
void Restoring::fill_own(const std::string& name, const Entry& entry, size_t from) {
    const auto& entries = tables_.at(from).entries;
    auto saved = entries.find(name);
    if (saved == entries.end() || saved->second.parts.size() != 1)
        refuse(FERMATA_DAMAGED, "{}: rank {} has not saved {}", generation_.directory, from, visible(name));
    const SavedPart& part = saved->second.parts[0];
    PageBuffer buffer;
    read_part(reader(from), part, 0, part.bytes, buffer);
    if (entry.kind == Kind::object) {
        if (int code =
                entry.hooks.unpack(entry.hooks.object, buffer.data(), static_cast<int64_t>(part.bytes)))
            refuse(FERMATA_MISMATCH, "{}: its unpack hook returned {}", visible(name), code);
        return;
    }
    const Part& mine = entry.parts[0];
    if (static_cast<uint64_t>(entry.bytes_of(mine)) != part.bytes)
        refuse(FERMATA_MISMATCH, "{} had {} elements when it was saved, and has {} now", visible(name),
               part.grid.elements(), mine.grid.elements());
    if (part.bytes > 0) std::memcpy(mine.data, buffer.data(), part.bytes);
}

// From whoever saved elements of this rank's parts.
void Restoring::fill_array(const std::string& name, const Entry& entry) {
    PageBuffer buffer;
    for (const Part& mine : entry.parts) {
        Coverage covered(mine.grid.elements());
        const auto width = static_cast<int64_t>(entry.element.bytes);
        // A rank's own saved parts come first: after them nothing is missing when nothing has changed.
        for (size_t i = 0; i < tables_.size() && covered.missing() > 0; ++i) {
            size_t from = (static_cast<size_t>(ranks_.rank()) + i) % tables_.size();
            auto saved = tables_[from].entries.find(name);
            if (saved == tables_[from].entries.end())
                refuse(FERMATA_DAMAGED, "{}: rank {} has not saved {}", generation_.directory, from,
                       visible(name));
            for (const SavedPart& part : saved->second.parts) {
                int64_t low = INT64_MAX, high = 0;
                for_each_common(mine.grid, part.grid, [&](int64_t, int64_t at, int64_t count) {
                    low = std::min(low, at);
                    high = std::max(high, at + count);
                });
                if (low >= high) continue;
                read_part(reader(from), part, static_cast<uint64_t>(low * width),
                          static_cast<uint64_t>(high * width), buffer);
                for_each_common(mine.grid, part.grid, [&](int64_t to, int64_t at, int64_t count) {
                    std::memcpy(static_cast<char*>(mine.data) + to * width, buffer.data() + at * width,
                                static_cast<size_t>(count * width));
                    covered.add(to, count);
                });
            }
        }
        if (covered.missing() > 0)
            refuse(FERMATA_MISMATCH, "{}: {} elements of this rank's part were saved by no rank",
                   visible(name), covered.missing());
    }
}

}  // namespace fermata::api
