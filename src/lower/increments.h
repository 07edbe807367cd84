// The policy of increments: what of a rank's memory is as its last image holds it, so that the next image
// refers to it instead of holding it again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "image/image.h"
#include "image/save_options.h"
#include "split/memory/dirty.h"
#include "split/memory/memory.h"

namespace fermata::lower {

// A rank's memory of its newest image.
struct LastImage {
    std::unique_ptr<split::DirtyTracker> tracker;
    bool told = false;        // the user knows that pages cannot be followed
    uint32_t generation = 0;  // of `content` and `covered`; 0 = nothing is remembered
    image::Content content;
    std::vector<Range> covered;  // all that the image held, zero pages too; address order

    // A capture begins: whatever becomes of it, pages count as written since this moment. The generation that
    // was remembered.
    uint32_t forget();
    // The image is complete: the next one may refer to it.
    void remember(image::Content new_content, std::vector<Range> new_covered);
};

// The decision for one image. All upper threads stand still from the first call to the last.
class Increment {
  public:
    // Before memory is collected. `base`: what LastImage::forget() said. Makes the tracker where it is wanted
    // and can be had; otherwise `warnings` say once why not.
    Increment(LastImage& last, uint32_t base, const image::SaveOptions& options,
              std::vector<std::string>& warnings);

    // The tracker that collect_memory() has to ask which pages were written to; null = none.
    split::DirtyTracker* tracker() const;
    // The longest block for which a changed byte is not too dear; 0: as the options say.
    uint64_t largest_block() const;
    // May the next image refer to this one?
    bool follows() const { return follow_ != Follow::no; }
    // Does this image refer to the last one?
    bool refers() const { return refers_; }

    // Finds what is unchanged in all mappings but the one with the thread table, to which the search for
    // mutexes still writes. `memory` has to outlive this object.
    void choose(const split::CollectedMemory& memory, Range thread_table);
    // The same in the mapping with the thread table, after the search for mutexes.
    void choose_threads();
    // The part of mapping number `map` that is as the last image holds it.
    const std::vector<Range>& same(size_t map) const { return same_[map]; }
    // The same for all mappings asked about so far, in address order.
    std::vector<Range> all_same() const;

  private:
    // How is it found out what has changed since the last image?
    enum class Follow {
        no,       // full images
        pages,    // the kernel tells which pages were written to
        content,  // memory is compared with the checksums of the last image
    };
    static Follow way_to_follow(LastImage& last, image::Incremental wanted,
                                std::vector<std::string>& warnings);
    bool holds_threads(const split::MapEntry& map) const;
    std::vector<Range> same_pages(size_t map) const;

    LastImage& last_;
    Follow follow_;
    bool refers_;
    const split::CollectedMemory* memory_ = nullptr;
    Range thread_table_{};
    std::vector<std::vector<Range>> same_;
};

}  // namespace fermata::lower
