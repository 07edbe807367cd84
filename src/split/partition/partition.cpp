#include "split/partition/partition.h"

#include <link.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/ranges.h"
#include "split/address/raw.h"
#include "split/alloc/lower_alloc.h"

namespace fermata::split {
namespace {

bool done;
double started;

double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

bool special(const Mapping& m) { return m.name.starts_with('[') && !m.name.starts_with("[anon"); }
// Not by name: the kernel calls what touches the break "[heap]".
bool filler_like(const Mapping& m) { return m.prot == 0 && !m.shared && m.inode == 0; }

// The space in which the kernel could still choose: from the window's top to where the stack may grow.
Range above_window(const std::vector<Mapping>& maps) {
    uint64_t top = kUserTop - (1ull << 34);
    for (const Mapping& m : maps)
        if (m.name == "[stack]") {
            // mmap_base lies at least RLIMIT_STACK and 16 GiB of randomisation below the top, so what stays
            // open beside the stack is never chosen (arch/x86/mm/mmap.c, mmap_base).
            uint64_t growth =
                std::min<uint64_t>(std::max<uint64_t>(application_stack_limit(), 8ull << 20), 1ull << 30);
            top = m.range.begin() > kWindow.end() + growth ? page_down(m.range.begin() - growth)
                                                           : m.range.begin();
        }
    return {kWindow.end(), std::max(kWindow.end(), top)};
}

std::vector<Range> gaps(const std::vector<Mapping>& maps, Range space) {
    std::vector<Range> result;
    uint64_t at = space.begin();
    for (const Mapping& m : maps) {
        if (m.range.end() <= at) continue;
        if (m.range.begin() >= space.end()) break;
        if (m.range.begin() > at) result.push_back({at, m.range.begin()});
        at = m.range.end();
    }
    if (at < space.end()) result.push_back({at, space.end()});
    return result;
}

void fill(Range gap) {
    long rc = raw_mmap(gap.begin(), gap.size(), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE);
    if (rc == -EEXIST) return;  // a thread of the lower half was faster: the next round sees it
    if (failed(rc)) {
        rlimit limit{};
        getrlimit(RLIMIT_AS, &limit);
        if (limit.rlim_cur != RLIM_INFINITY)
            fail(
                "cannot reserve address space: the limit on virtual memory is {} MiB; run `ulimit -v "
                "unlimited` "
                "(Slurm: VSizeFactor=0) before starting the job",
                limit.rlim_cur >> 20);
        fail("cannot reserve {} GiB of address space at {:#x}: {}", gap.size() >> 30, gap.begin(),
             std::strerror(int(-rc)));
    }
    sys(SYS_madvise, gap.begin(), gap.size(), MADV_DONTDUMP);
}

// No hint of the program's shall be followed here.
void close_lower_area() {
    for (int round = 0; round < 16; ++round) {
        const std::vector<Mapping> maps = read_maps();
        const std::vector<Range> open = gaps(maps, kLowerArea);
        for (const Mapping& m : maps)
            if (round == 0 && kLowerArea.overlaps(m.range)) keep_lower_mapping(m.range);
        if (open.empty()) return;
        for (const Range& gap : open) fill(gap);
    }
}

Region describe(const Mapping& m, Owner owner, const char* why) { return {m.range, owner, why, m.name, -1}; }

// Any library of the lower half's ld.so whose address is the upper half's.
int find_stray(dl_phdr_info* info, size_t, void* result) {
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        uint64_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (!kWindow.contains(at)) continue;
        *static_cast<std::string*>(result) =
            fmt::format("library {} of the lower half lies in the window at {:#x}: checkpoint refused; {}",
                        info->dlpi_name, at, lower_patch_report());
        return 1;
    }
    return 0;
}

void dump_if_asked() {
    const char* path = std::getenv("FERMATA_DUMP_REGIONS");
    if (!path) return;
    if (std::FILE* file = std::fopen(path, "w")) {
        dump_regions(file);
        std::fclose(file);
    }
}

}  // namespace

const char* name_of(Owner owner) {
    switch (owner) {
        case Owner::upper:
            return "upper";
        case Owner::lower:
            return "lower";
        case Owner::kernel:
            return "kernel";
        case Owner::filler:
            return "filler";
    }
    return "?";
}

RegionTable& region_table() {
    static RegionTable table;
    return table;
}

bool partitioned() { return done; }

void partition(bool upper_is_there) {
    RegionTable& table = region_table();
    table.clear();
    redirect_lower_mappings();
    started = now();
    for (int round = 0;; ++round) {
        std::vector<Mapping> maps = read_maps();
        std::vector<Range> open = gaps(maps, above_window(maps));
        if (open.empty()) break;
        if (round == 16) fail("the address space above {:#x} does not stay filled", kWindow.end());
        for (const Range& gap : open) {
            fill(gap);
            table.add({gap, Owner::filler, "filler: the kernel must not choose here", "", 0});
        }
    }
    close_lower_area();
    for (const Mapping& m : read_maps()) {
        if (upper_is_there && upper_range(m.range)) continue;
        if (kWindow.overlaps(m.range))
            fail("the lower half has memory in the window before the program starts: {}", to_string(m));
        if (kLowerArea.contains(m.range)) continue;
        bool is_filler = false;
        for (const Region& r : table.fixed())
            is_filler |= r.owner == Owner::filler && r.range.contains(m.range);
        if (is_filler && filler_like(m)) continue;
        if (special(m) && m.name != "[heap]" && m.name != "[stack]")
            table.add(describe(m, Owner::kernel, "kernel"));
        else if (m.range.end() <= kWindow.begin())
            table.add(describe(m, Owner::lower, "low address taken before the program started"));
        else
            table.add(describe(m, Owner::lower, "mapped until MPI_Init was over"));
    }
    std::vector<Range> own;
    for (const Region& r : table.fixed())
        if (r.owner == Owner::lower) own.push_back(r.range);
    std::sort(own.begin(), own.end(), [](Range a, Range b) { return a.begin() < b.begin(); });
    allow_fixed_mappings(own.data(), own.size());
    long probe = raw_mmap(0, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    if (failed(probe)) fail("cannot map one page in the window: {}", std::strerror(int(-probe)));
    raw_munmap(uint64_t(probe), kPage);
    if (!kWindow.contains(uint64_t(probe)))
        fail(
            "the kernel chose {:#x} for new memory, outside the window: please report this with your "
            "kernel's version",
            uint64_t(probe));
    done = true;
    dump_if_asked();
}

Range open_gap(uint64_t size) {
    size = page_up(size);
    const std::vector<Mapping> maps = read_maps();
    const Range space = above_window(maps);
    Range best;
    for (const Mapping& m : maps)
        if (filler_like(m) && space.contains(m.range) && m.range.size() > best.size()) best = m.range;
    // Room on both sides, for what a dynamic loader and code near code want.
    constexpr uint64_t kRoom = 4ull << 30;
    if (best.size() < size + 2 * kRoom) fail("no {} MiB are free above {:#x}", size >> 20, kWindow.end());
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, 0) != ssize_t(sizeof random)) fail_errno("cannot get random bytes");
    const uint64_t choices = (best.size() - size - 2 * kRoom) / kPage + 1;
    const Range gap = Range::sized(best.begin() + kRoom + random % choices * kPage, size);
    if (long rc = raw_munmap(gap.begin(), gap.size()); failed(rc))
        fail("cannot open a gap at {:#x}: {}", gap.begin(), std::strerror(int(-rc)));
    return gap;
}

void close_gaps() {
    const std::vector<Mapping> maps = read_maps();
    for (const Range& gap : gaps(maps, above_window(maps))) fill(gap);
}

std::string check() { return check(read_maps()); }

std::string check(const std::vector<Mapping>& maps) {
    if (!done) return "the address space was never partitioned";
    RegionTable& table = region_table();
    Range space = above_window(maps);
    for (const Range& part : {space, kLowerArea})
        for (const Range& gap : gaps(maps, part)) fill(gap);

    std::vector<Range> lower;  // what the lower half had above the window; it may shrink, never grow
    for (const Region& r : table.fixed())
        if (r.owner != Owner::filler) lower.push_back(r.range);
    std::sort(lower.begin(), lower.end(), [](Range a, Range b) { return a.begin() < b.begin(); });

    for (const Mapping& m : maps) {
        if (m.range.begin() < space.begin() || m.range.begin() >= space.end() || m.prot == 0) continue;
        if (difference({m.range}, lower).empty()) continue;
        return fmt::format(
            "unknown memory above the window: {}: the program mapped it at a fixed address, where "
            "it cannot be saved; checkpoint refused",
            to_string(m));
    }
    std::string stray;
    dl_iterate_phdr(find_stray, &stray);
    dump_if_asked();
    return stray;
}

std::vector<Region> RegionTable::regions() const {
    std::vector<Region> result = fixed_;
    double age = now() - started;
    for (const Mapping& m : read_maps()) {
        if (kLowerArea.overlaps(m.range)) {
            if (filler_like(m)) continue;
            result.push_back({m.range, Owner::lower, "lower area", m.name, age});
        } else if (upper_range(m.range)) {
            bool known = false;
            for (const Region& r : fixed_) known |= r.range.contains(m.range);
            if (!known)
                result.push_back({m.range, Owner::upper,
                                  kWindow.contains(m.range) ? "window" : "low address of the program", m.name,
                                  age});
        }
    }
    std::sort(result.begin(), result.end(),
              [](const Region& a, const Region& b) { return a.range.begin() < b.range.begin(); });
    return result;
}

std::string dump_regions() {
    std::string text;
    for (const Region& r : region_table().regions())
        text += fmt::format("{:012x}-{:012x} {:6} {:>12} KiB  {:9} {}; {}\n", r.range.begin(), r.range.end(),
                            name_of(r.owner), r.range.size() >> 10,
                            r.seconds < 0 ? std::string("before") : fmt::format("{:.3f}s", r.seconds), r.why,
                            r.what);
    return text;
}

void dump_regions(std::FILE* file) {
    std::string text = dump_regions();
    std::fwrite(text.data(), 1, text.size(), file);
}

}  // namespace fermata::split
