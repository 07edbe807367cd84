// map_memory/finish_memory: the upper half's mappings in a fresh process.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "files/others_link.h"
#include "files/place.h"
#include "split/address/maps.h"
#include "split/address/raw.h"
#include "split/address/window.h"
#include "split/memory/break_word.h"
#include "split/memory/guards.h"
#include "split/memory/memory.h"
#include "split/shared/registry.h"
#include "split/vdso/vdso.h"

namespace fermata::split {
namespace {

// The files behind shared mappings while they are mapped; one per object, so that what was shared is again.
class Objects {
  public:
    int of(const MapEntry& e) {
        bool writable = e.kind == MapKind::shared_memory || e.writable_file;
        if (int fd = shared::descriptor_of(e.object, writable); fd >= 0) return fd;
        auto it = open_.find(e.object);
        if (it != open_.end() && (!e.writable_file || it->second.writable)) return it->second.fd.get();
        return (open_[e.object] = make(e)).fd.get();
    }

  private:
    struct Object {
        Fd fd;
        bool writable = true;
    };

    static Object make(const MapEntry& e) {
        if (e.kind == MapKind::shared_memory) {
            Fd fd(int(sys(SYS_memfd_create, "fermata-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
            if (fd.get() < 0)
                fail("cannot make shared memory again ({}): {}", e.name, std::strerror(-fd.release()));
            if (ftruncate(fd.get(), off_t(e.object_size)) != 0)
                fail_errno("cannot make {} KiB of shared memory again ({})", e.object_size >> 10, e.name);
            return {std::move(fd), true};
        }
        int access = e.writable_file ? O_RDWR : O_RDONLY;
        auto [fd, error, why] = files::open_regular(e.name, access);
        if (error == ENOENT && e.kind == MapKind::shared_kept &&
            shared::on_tmpfs(e.name.substr(0, e.name.rfind('/')))) {
            fd = Fd(::open(e.name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
            if (!fd || ftruncate(fd.get(), off_t(e.object_size)) != 0)
                fail_errno("cannot make {} again, which the program has mapped", e.name);
        }
        if (!fd) fail("cannot open {}, which the program has mapped: {}", e.name, why);
        if (const std::string link = files::others_link(e.name, fd.get()); !link.empty())
            fail("{}, which the program has mapped: {}: remove it and restart again", e.name, link);
        struct stat s {};
        if (fstat(fd.get(), &s) == 0 && uint64_t(s.st_size) < e.object_size)
            fail("{}, which the program has mapped, is shorter than at the checkpoint ({} < {} bytes)",
                 e.name, s.st_size, e.object_size);
        return {std::move(fd), e.writable_file};
    }

    std::map<uint64_t, Object> open_;
};

std::string what_is_at(Range range) {
    for (const Mapping& m : read_maps())
        if (m.range.overlaps(range)) return to_string(m);
    return "nothing";
}

// The kernel refuses a writable mapping that is larger than the machine's memory, but not the same in parts
// (the heuristic of vm.overcommit_memory=0 looks at one call). A program may have such a one: neighbours that
// grew together, or a reservation that is no longer writable.
long map_in_parts(Range range, int prot, int flags) {
    constexpr uint64_t kPart = uint64_t{1} << 30;
    for (uint64_t at = range.begin(); at < range.end(); at += kPart) {
        uint64_t size = std::min(kPart, range.end() - at);
        long rc = raw_mmap(at, size, prot, flags);
        if (rc == long(at)) continue;
        if (!failed(rc)) raw_munmap(uint64_t(rc), size);
        raw_munmap(range.begin(), at - range.begin());
        return failed(rc) ? rc : -EEXIST;
    }
    return long(range.begin());
}

void map_one(const MapEntry& e, Objects& objects) {
    int keep = static_cast<int>(e.flags) & (MAP_NORESERVE | MAP_GROWSDOWN | MAP_HUGETLB);
    int flags = MAP_FIXED_NOREPLACE | keep;
    long rc;
    if (e.kind == MapKind::anonymous) {
        flags |= MAP_PRIVATE | MAP_ANONYMOUS;
        // A mapping that nothing is read into never becomes writable: a reservation costs no memory, and is
        // not counted.
        int prot = e.runs.empty() && !(e.prot & PROT_WRITE) ? e.prot & PROT_READ : PROT_READ | PROT_WRITE;
        rc = raw_mmap(e.range.begin(), e.range.size(), prot, flags);
        if (rc == -ENOMEM && !(keep & MAP_HUGETLB)) rc = map_in_parts(e.range, prot, flags);
        if (rc == -ENOMEM && (keep & MAP_HUGETLB))  // no huge pages reserved here: ordinary ones do as well
            rc = raw_mmap(e.range.begin(), e.range.size(), PROT_READ | PROT_WRITE, flags & ~MAP_HUGETLB);
    } else {
        flags = (flags & ~(MAP_HUGETLB | MAP_GROWSDOWN)) | MAP_SHARED;
        int prot = PROT_READ | (e.kind == MapKind::shared_memory || e.writable_file ? PROT_WRITE : 0);
        bool segment = e.kind == MapKind::shared_memory && shared::descriptor_of(e.object, true) == -1;
        if (segment)  // its place first
            rc = raw_mmap(e.range.begin(), e.range.size(), PROT_NONE,
                          MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
        if (segment && rc == long(e.range.begin())) {
            if (long error = shared::map_segment(e)) rc = error;
        }
        if (!segment) rc = raw_mmap(e.range.begin(), e.range.size(), prot, flags, objects.of(e), e.offset);
    }
    if (rc == -EEXIST)
        fail("the program's memory at {:#x} ({}) is taken in this process by: {}", e.range.begin(), e.name,
             what_is_at(e.range));
    if (failed(rc))
        fail("cannot map {} KiB of the program's memory at {:#x} again: {}", e.range.size() >> 10,
             e.range.begin(), std::strerror(int(-rc)));
    if (rc != long(e.range.begin())) {  // kernels before 4.17 take the flag as a hint
        raw_munmap(uint64_t(rc), e.range.size());
        fail("the program's memory at {:#x} is taken in this process by: {}", e.range.begin(),
             what_is_at(e.range));
    }
    // A file that is still there may hold something where the image has nothing, that is, zeros.
    // (The registry has emptied those it knows.)
    if (e.kind == MapKind::shared_kept && shared::descriptor_of(e.object, true) < 0 &&
        shared::on_tmpfs(e.name))
        sys(SYS_madvise, e.range.begin(), e.range.size(), MADV_REMOVE);
    if (e.advice & kHugePage) sys(SYS_madvise, e.range.begin(), e.range.size(), MADV_HUGEPAGE);
    if (e.advice & kNoHugePage) sys(SYS_madvise, e.range.begin(), e.range.size(), MADV_NOHUGEPAGE);
}

void finish_one(const MapEntry& e) {
    constexpr struct {
        uint32_t bit;
        int advice;
    } table[] = {{kDontDump, MADV_DONTDUMP},   {kDontFork, MADV_DONTFORK}, {kWipeOnFork, MADV_WIPEONFORK},
                 {kMergeable, MADV_MERGEABLE}, {kRandom, MADV_RANDOM},     {kSequential, MADV_SEQUENTIAL}};
    for (const auto& t : table)
        if (e.advice & t.bit) sys(SYS_madvise, e.range.begin(), e.range.size(), t.advice);
    int prot = e.prot;
    if ((e.advice & kGuard) && failed(sys(SYS_madvise, e.range.begin(), e.range.size(), kGuardInstall)))
        prot = PROT_NONE;  // before Linux 6.13
    if (e.flags & MAP_LOCKED) sys(SYS_mlock, e.range.begin(), e.range.size());
    long rc = sys(SYS_mprotect, e.range.begin(), e.range.size(), prot);
    if (failed(rc))
        fail("cannot protect the program's memory at {:#x} as before: {}", e.range.begin(),
             std::strerror(int(-rc)));
}

}  // namespace

void map_memory(const MemoryTable& table) {
    Objects objects;
    for (const MapEntry& e : table.maps) map_one(e, objects);
}

void finish_memory(const MemoryTable& table) {
    // Above all addresses: every brk fails, and malloc goes on with mmap.
    if (table.break_word) *reinterpret_cast<uint64_t*>(table.break_word) = kUserTop - kPage;
    remember_break_word(table.break_word);
    for (const MapEntry& e : table.maps) finish_one(e);
    if (table.vdso) refill_vdso(table.vdso);
}

void load_memory(const MemoryTable& table, const ReadData& read) {
    map_memory(table);
    uint64_t offset = 0;
    for (const MapEntry& e : table.maps)
        for (const Range& run : e.runs) {
            read(run.pointer(), run.size(), offset);
            offset += run.size();
        }
    finish_memory(table);
}

void lock_again(const MemoryTable& table) noexcept {
    for (const MapEntry& map : table.maps)
        if (map.flags & MAP_LOCKED) sys(SYS_mlock, map.range.begin(), map.range.size());
}

}  // namespace fermata::split
