// collect_memory: what of this process is the upper half's, and which pages of it hold content.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/ranges.h"
#include "split/address/raw.h"
#include "split/alloc/lower_advice.h"
#include "split/devices/kinds.h"
#include "split/memory/break_word.h"
#include "split/memory/dirty.h"
#include "split/memory/guards.h"
#include "split/memory/memory.h"
#include "split/pages/residency.h"
#include "split/partition/partition.h"
#include "split/shared/roster.h"
#include "split/vdso/vdso.h"

namespace fermata::split {
namespace {

// A flag of our own beside VmFlags: " dc" is the lower half's doing.
constexpr const char* kByLower = " below-dc";

bool has_flag(const Mapping& m, const char* flag) { return m.flags.find(flag) != std::string::npos; }

// Mappings that are kept from children by the lower half, and those by the program, as mappings of their own.
void part_by_lower_advice(std::vector<Mapping>& maps) {
    std::vector<Range> below = kept_from_children_below();
    if (below.empty()) return;
    std::vector<Mapping> parts;
    for (Mapping& m : maps) {
        std::vector<Range> lower = intersection({m.range}, below);
        if (lower.empty() || !has_flag(m, " dc")) {
            parts.push_back(std::move(m));
            continue;
        }
        std::vector<Range> own = difference({m.range}, below);
        auto add = [&](Range range, bool by_lower) {
            Mapping& part = parts.emplace_back(m);
            part.range = range;
            if (m.inode != 0 || m.shared) part.offset += range.begin() - m.range.begin();
            if (by_lower) part.flags += kByLower;
        };
        for (auto a = own.begin(), b = lower.begin(); a != own.end() || b != lower.end();) {
            bool next_own = b == lower.end() || (a != own.end() && a->begin() < b->begin());
            add(next_own ? *a : *b, !next_own);
            ++(next_own ? a : b);
        }
    }
    maps = std::move(parts);
}

uint32_t advice_of(const Mapping& m) {
    struct {
        const char* flag;
        uint32_t bit;
    } table[] = {{" dd", kDontDump},   {" dc", kDontFork},  {" wf", kWipeOnFork}, {" hg", kHugePage},
                 {" nh", kNoHugePage}, {" mg", kMergeable}, {" rr", kRandom},     {" sr", kSequential}};
    uint32_t advice = 0;
    for (const auto& t : table)
        if (has_flag(m, t.flag)) advice |= t.bit;
    return advice;
}

// Does a rank that shares this file write to it by a mapping?
bool written_by_others(const shared::Key& key) {
    const shared::Object* object = shared::roster() ? shared::roster()->find(key) : nullptr;
    return object && object->writable;
}

void refuse_device(const Mapping& m) {
    std::string why = devices::kind_of(m.name).refuse_mapped(m.name, m.range.begin());
    if (!why.empty()) fail("the program has {}", why);
}

MapKind kind_of(const Mapping& m, uint64_t& size, shared::Key& key, std::string& name) {
    if (!m.shared) {
        if (m.name.starts_with("/dev/") && !m.name.starts_with("/dev/shm/") && m.name != "/dev/zero")
            refuse_device(m);
        return MapKind::anonymous;
    }
    if (m.name.starts_with("/[aio]"))
        fail(
            "the program has a context for asynchronous I/O (io_setup) at {:#x}: what is under way in it "
            "cannot be "
            "saved; io_destroy it before a checkpoint",
            m.range.begin());
    if (m.name.starts_with("anon_inode:"))
        fail("the program has {} mapped at {:#x}: such memory cannot be saved", m.name, m.range.begin());
    struct stat s {};
    key = shared::key_of(m, nullptr);
    if (std::string path = shared::path_of(m, s); !path.empty()) {
        name = path;
        key = shared::key_of(m, &s);
        if (S_ISCHR(s.st_mode) || S_ISBLK(s.st_mode)) refuse_device(m);
        size = uint64_t(s.st_size);
        // A read-only view cannot be filled at restart, so the file must be there, or somebody else fill it.
        return shared::put_back(path, s) && (has_flag(m, " mw") || written_by_others(key))
                   ? MapKind::shared_kept
                   : MapKind::shared_file;
    }
    return MapKind::shared_memory;
}

// Makes an unreadable range readable while it is looked at.
class Readable {
  public:
    explicit Readable(const Mapping& m) : m_(m) {
        if (!(m.prot & PROT_READ))
            changed_ = !failed(sys(SYS_mprotect, m.range.begin(), m.range.size(), m.prot | PROT_READ));
    }
    ~Readable() {
        if (changed_) sys(SYS_mprotect, m_.range.begin(), m_.range.size(), m_.prot);
    }
    Readable(const Readable&) = delete;
    Readable& operator=(const Readable&) = delete;
    bool ok() const { return changed_ || (m_.prot & PROT_READ); }

  private:
    const Mapping& m_;
    bool changed_ = false;
};

// Returns nothing where the memory cannot be made readable for the question.
std::vector<Range> guards_of(const Mapping& m, GuardScanner& scanner) {
    std::optional<Readable> readable;
    if (scanner.reads()) readable.emplace(m);
    return readable && !readable->ok() ? std::vector<Range>{} : scanner.of(m.range);
}

// `seen`: what the tracker has just found out.
std::vector<Range> content_of(const Mapping& m, MapKind kind, PageScanner& scanner, SeenPages* seen,
                              const std::vector<Range>& guards, const std::vector<Range>& saved_elsewhere) {
    bool file = m.inode != 0;
    if (kind == MapKind::shared_file || (kind == MapKind::shared_kept && !has_flag(m, " mw"))) return {};
    if (kind == MapKind::anonymous && (!file || !(m.prot & PROT_READ))) {
        // The holes that ld.so leaves between segments are file mappings without access: nothing of the file
        // is ever read there, but what was changed and then protected (RELRO's neighbours) is kept.
        if (!seen) return scanner.touched(m.range, file, (m.prot & PROT_READ) != 0);
        return std::move(file ? seen->own : seen->touched);
    }
    Readable readable(m);
    if (!readable.ok()) return {};
    std::vector<Range> runs;
    if (kind == MapKind::anonymous) {
        for (const Range& between : difference({m.range}, guards))
            if (Range part = readable_part(between); !part.empty()) runs.push_back(part);
        return runs;
    }
    // Shared objects may hold pages that this process never touched: only their content tells.
    Range part = readable_part(m.range);
    if (part.empty()) return runs;
    for (const Range& own : difference({part}, saved_elsewhere)) {
        // A file on a disk is overwritten, not emptied before: it is the user's.
        bool all =
            kind == MapKind::shared_kept && !m.name.ends_with(" (deleted)") && !shared::on_tmpfs(m.name);
        std::vector<Range> found = all ? std::vector<Range>{own} : nonzero(own);
        runs.insert(runs.end(), found.begin(), found.end());
    }
    return runs;
}

// The parts of a mapping that other mappings save, of lower ranks or of this one, at its addresses.
class Saved {
  public:
    std::vector<Range> elsewhere(const Mapping& m, const shared::Key& key) {
        const shared::Object* object = shared::roster() ? shared::roster()->find(key) : nullptr;
        if (!object) return {};
        auto [at, fresh] = parts_.try_emplace(key, object->lower);
        std::vector<Range> here;
        for (const Range& part : at->second) {
            uint64_t begin = std::max(page_down(part.begin()), m.offset);
            uint64_t end = std::min(page_up(part.end()), m.offset + m.range.size());
            if (begin < end)
                here.push_back({m.range.begin() + begin - m.offset, m.range.begin() + end - m.offset});
        }
        if (has_flag(m, " mw")) add(at->second, {m.offset, m.offset + m.range.size()});
        return here;
    }

  private:
    static void add(std::vector<Range>& parts, Range part) {
        std::vector<Range> rest = difference({part}, parts);
        parts.insert(parts.end(), rest.begin(), rest.end());
        std::sort(parts.begin(), parts.end(), [](auto& a, auto& b) { return a.begin() < b.begin(); });
    }
    std::map<shared::Key, std::vector<Range>> parts_;
};

// The parts of `whole`, which is `m`, in front of, at and behind guard pages, as mappings of their own. (The
// kernel puts them together again.)
void add_parts(CollectedMemory& all, MapEntry whole, const Mapping& m, std::vector<Range> unchanged,
               const std::vector<Range>& guards) {
    if (guards.empty()) {
        all.table.maps.push_back(std::move(whole));
        all.unchanged.push_back(std::move(unchanged));
        return;
    }
    auto add = [&](Range range, bool guard) {
        MapEntry& part = all.table.maps.emplace_back(whole);
        part.range = range;
        if (m.inode != 0 || m.shared) part.offset += range.begin() - m.range.begin();
        if (guard) part.advice |= kGuard;
        part.runs = guard ? std::vector<Range>{} : intersection(whole.runs, {range});
        all.unchanged.push_back(guard ? std::vector<Range>{} : intersection(unchanged, {range}));
    };
    uint64_t at = m.range.begin();
    for (const Range& guard : guards) {
        if (at < guard.begin()) add({at, guard.begin()}, false);
        add(guard, true);
        at = guard.end();
    }
    if (at < m.range.end()) add({at, m.range.end()}, false);
}

}  // namespace

uint64_t MemoryTable::data_size() const {
    uint64_t size = 0;
    for (const MapEntry& map : maps)
        for (const Range& run : map.runs) size += run.size();
    return size;
}

bool CollectedMemory::not_in_a_copy(const MapEntry& map) const {
    return map.kind != MapKind::anonymous || (map.name.starts_with("/") && !executed.count(map.name));
}

CollectedMemory collect_memory(DirtyTracker* tracker) {
    CollectedMemory all;
    all.maps = maps_text();
    std::vector<Mapping> maps = parse_maps(all.maps);
    if (tracker) tracker->begin_round();
    if (std::string error = check(maps); !error.empty()) throw Error(error);
    std::vector<Range> lower;
    for (const Region& r : region_table().fixed())
        if (r.owner == Owner::lower && upper_range(r.range)) lower.push_back(r.range);

    MemoryTable& table = all.table;
    table.vdso = vdso_image();
    PageScanner scanner;
    GuardScanner guard_scanner;
    std::map<uint64_t, uint64_t> object_size;
    Saved saved;
    add_memory_flags(maps);
    forget_memory_flags();
    part_by_lower_advice(maps);
    table.break_word = find_break_word(maps);
    for (const Mapping& m : maps)
        if ((m.prot & PROT_EXEC) && upper_range(m.range)) all.executed.insert(m.name);
    for (const Mapping& m : maps) {
        if (!upper_range(m.range)) continue;
        if (std::any_of(lower.begin(), lower.end(), [&](Range r) { return r.contains(m.range); })) continue;
        MapEntry e;
        e.range = m.range;
        e.prot = m.prot;
        e.offset = m.offset;
        e.name = m.name;
        e.advice = advice_of(m);
        e.kept_below = has_flag(m, kByLower);
        if (e.kept_below) e.advice &= ~uint32_t{kDontFork};
        shared::Key key;
        e.kind = kind_of(m, e.object_size, key, e.name);
        if (has_flag(m, " nr")) e.flags |= MAP_NORESERVE;
        if (has_flag(m, " gd")) e.flags |= MAP_GROWSDOWN;
        if (has_flag(m, " ht")) e.flags |= MAP_HUGETLB;
        if (has_flag(m, " lo")) e.flags |= MAP_LOCKED;
        e.writable_file = m.shared && has_flag(m, " mw");
        if (m.shared) {
            e.object = shared::number_of(key);
            all.objects.emplace(e.object, key);
        }
        if (e.kind == MapKind::shared_memory) {
            uint64_t& size = object_size[e.object];
            size = std::max(size, m.offset + m.range.size());
        }
        const std::vector<Range> guards = guards_of(m, guard_scanner);
        if (!guards.empty() && (e.kind == MapKind::shared_memory || e.kind == MapKind::shared_kept))
            fail(
                "the program has guard pages (MADV_GUARD_INSTALL) in shared memory at {:#x} ({}): what is "
                "behind them cannot be saved",
                guards.front().begin(), m.name);
        std::optional<SeenPages> seen;
        if (tracker && !all.not_in_a_copy(e)) seen = tracker->look(e);
        std::vector<Range> elsewhere;
        if (e.kind == MapKind::shared_memory || e.kind == MapKind::shared_kept)
            elsewhere = saved.elsewhere(m, key);
        e.runs = content_of(m, e.kind, scanner, seen ? &*seen : nullptr, guards, elsewhere);
        add_parts(all, std::move(e), m, seen ? std::move(seen->unchanged) : std::vector<Range>{}, guards);
    }
    if (tracker) tracker->end_round();
    for (MapEntry& e : table.maps)
        if (e.kind == MapKind::shared_memory) e.object_size = object_size[e.object];
    return all;
}

void make_readable(const MemoryTable& table) noexcept {
    for (const MapEntry& e : table.maps)
        if (!(e.prot & PROT_READ) && !e.runs.empty())
            sys(SYS_mprotect, e.range.begin(), e.range.size(), e.prot | PROT_READ);
}

void restore_protection(const MemoryTable& table) noexcept {
    for (const MapEntry& e : table.maps)
        if (!(e.prot & PROT_READ) && !e.runs.empty())
            sys(SYS_mprotect, e.range.begin(), e.range.size(), e.prot);
}

void let_fork_copy(const MemoryTable& table, bool copy) noexcept {
    for (const MapEntry& e : table.maps) {
        if ((e.advice & kDontFork) || e.kept_below)
            sys(SYS_madvise, e.range.begin(), e.range.size(), copy ? MADV_DOFORK : MADV_DONTFORK);
        if (e.advice & kWipeOnFork)
            sys(SYS_madvise, e.range.begin(), e.range.size(), copy ? MADV_KEEPONFORK : MADV_WIPEONFORK);
    }
}

}  // namespace fermata::split
