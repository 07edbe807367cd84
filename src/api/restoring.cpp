#include "api/restoring.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

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

std::optional<Restored> Restoring::run() {
    std::vector<Candidate> candidates;
    ranks_.together([&] {
        if (ranks_.first()) candidates = choose();
    });
    uint64_t count = candidates.size();
    ranks_.broadcast(count);
    candidates.resize(count);
    if (count == 0) return {};
    Fault last;
    for (Candidate& candidate : candidates) {
        ranks_.broadcast(candidate.number);
        candidate.seal = ranks_.broadcast_text(candidate.seal);
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
    throw Fault{FERMATA_DAMAGED, last.sentence};
}

// Newest first.
std::vector<Restoring::Candidate> Restoring::choose() const {
    std::vector<Candidate> found;
    if (!files::Folder::find_at(directory_)) return found;
    store::Store store = store::Store::for_reading(directory_, key_);
    std::vector<store::GenerationInfo> all = store.list();
    std::string damage;
    bool processes = false, foreign = false;
    for (auto one = all.rbegin(); one != all.rend(); ++one) {
        if (!one->manifest) {
            if (damage.empty()) damage = one->damage;
            continue;
        }
        if (!one->manifest->step) {
            processes = true;
            continue;
        }
        if (!files::believed(one->folder.owner())) {
            foreign = true;
            continue;
        }
        found.push_back({one->number, one->seal.hex()});
    }
    if (!found.empty()) return found;
    if (!damage.empty()) refuse(FERMATA_DAMAGED, "{}", damage);
    if (foreign) refuse(FERMATA_ARGUMENT, "the generations in {} belong to another user", directory_);
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
    ranks_.together([&] {
        generation_ = store::open_chosen(directory_ + "/" + Generation(candidate.number).name(),
                                         candidate.seal, key_.get());
        generation_.check_layout();
    });
    look();
    match();
    ranks_.together([&] { fill(); });
    open_.clear();
    return {generation_.manifest->job, candidate.number, tables_.at(0).step};
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

void Restoring::look() {
    const size_t images = generation_.manifest->images.size();
    const auto size = static_cast<size_t>(ranks_.size()), me = static_cast<size_t>(ranks_.rank());
    open_.resize(images);
    std::vector<std::string> texts(images);
    ranks_.together([&] {
        for (size_t i = me; i < images; i += size) {
            const auto& blob = reader(i).blob(kBlob);
            texts[i].assign(reinterpret_cast<const char*>(blob.data()), blob.size());
        }
    });
    for (size_t i = 0; i < images; ++i)
        texts[i] = ranks_.broadcast_text(texts[i], static_cast<int>(i % size));
    ranks_.together([&] {
        for (size_t i = 0; i < images; ++i) {
            tables_.push_back(Table::decoded(texts[i].data(), texts[i].size(),
                                             generation_.directory + ", rank " + std::to_string(i)));
            if (tables_[i].step != tables_[0].step || tables_[i].step != generation_.manifest->step)
                refuse(FERMATA_DAMAGED, "{}: its images are of different steps", generation_.directory);
        }
    });
}

void Restoring::match() const {
    const bool same = tables_.size() == static_cast<size_t>(ranks_.size());
    ranks_.together([&] {
        if (std::string why = why_no_match(state_, tables_[0], same); !why.empty())
            refuse(FERMATA_MISMATCH, "{} in {}: {}", Generation(generation_.number).name(), directory_, why);
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
        // What this rank has saved itself comes first: nothing is missing after it when nothing has changed.
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
