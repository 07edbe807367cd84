// Pages followed by soft-dirty bits (soft_dirty.h).
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/page.h"
#include "base/ranges.h"
#include "base/sys.h"
#include "split/fds/descriptors.h"
#include "split/fds/links.h"
#include "split/pages/page_marks.h"
#include "split/pages/pagemap.h"
#include "split/pages/soft_dirty.h"

namespace fermata::split {
namespace {

class SoftDirtyPages : public PageMarks {
  public:
    SoftDirtyPages();
    ~SoftDirtyPages() override { ::munmap(canary_, kPage); }
    bool keeps_huge_pages() const override { return true; }
    void begin_round() override;
    void end_round() override;
    std::optional<SeenPages> look(Range map, int protection, bool file) override;

  private:
    SoftDirtyBits bits_;
    // A page that is written whenever we have cleared the bits. Without its own somebody else has cleared
    // them.
    void* canary_;
    bool told_ = false;   // do the bits tell what was written since our last round?
    bool alone_ = false;  // nobody else's registrations look like ours
};

SoftDirtyPages::SoftDirtyPages() {
    std::string why;
    bits_ = open_soft_dirty(why);
    if (!bits_.faults) fail("{}", why);
    for (Fd* fd : {&bits_.pagemap, &bits_.clear_refs, &bits_.faults})
        *fd = Fd(raise_descriptor(fd->release()));
    // Small pages: the bit of a huge one would be its neighbours', too.
    canary_ = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (canary_ == MAP_FAILED) fail("no memory: {}", std::strerror(errno));
    ::madvise(canary_, kPage, MADV_NOHUGEPAGE);
}

void SoftDirtyPages::begin_round() {
    told_ = told_ && (bits_.word(reinterpret_cast<uint64_t>(canary_)) & kWordSoftDirty);
    std::vector<DescriptorLink> all = descriptor_links();
    alone_ = std::none_of(all.begin(), all.end(), [&](const DescriptorLink& one) {
        return one.target == "anon_inode:[userfaultfd]" && one.fd != bits_.faults.get();
    });
}

void SoftDirtyPages::end_round() {
    told_ = bits_.clear();
    *static_cast<volatile char*>(canary_) = 1;
}

std::optional<SeenPages> SoftDirtyPages::look(Range map, int protection, bool file) {
    // (Registration for write protection is for memory without a file here; Linux 6.7, which takes others,
    // has better.)
    if (file || !alone_) return {};
    bool before = bits_.registered(map);
    if (!before && !bits_.enter(map)) return {};
    SeenPages seen;
    bool readable = (protection & PROT_READ) != 0;
    for_each_page_word(bits_.pagemap.get(), map, [&](uint64_t at, uint64_t word) {
        if (!(word & (kWordPresent | kWordSwapped))) return;
        // The zero page has no bit: the page it came after (MADV_DONTNEED) may have been another.
        bool may_be_zero = may_be_zero_page(word);
        if (may_be_zero && readable && zero_page(reinterpret_cast<const void*>(at))) return;
        append(seen.touched, {at, at + kPage});
        if (!(word & kWordSoftDirty) && (!may_be_zero || readable)) append(seen.unchanged, {at, at + kPage});
    });
    if (!before || !told_) seen.unchanged.clear();
    return seen;
}

}  // namespace

std::unique_ptr<PageMarks> soft_dirty_pages() { return std::make_unique<SoftDirtyPages>(); }

std::unique_ptr<PageMarks> best_page_marks() {
    std::string why;
    try {
        return protected_pages();
    } catch (const Error& error) {
        why = error.what();
    }
    try {
        return soft_dirty_pages();
    } catch (const Error& error) {
        fail("{}; {}", why, error.what());
    }
}

}  // namespace fermata::split
