#include "front/objects/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "front/core/sys.h"
#include "front/objects/api.h"
#include "front/objects/comm_make.h"
#include "front/objects/internal.h"

namespace fermata::front {
namespace {

constexpr int64_t kPage = 4096;

struct Name {
    char text[64] = "/dev/shm/fermata-window-";
    explicit Name(uint64_t number) {
        size_t at = __builtin_strlen(text);
        for (int shift = 60; shift >= 0; shift -= 4) text[at++] = "0123456789abcdef"[number >> shift & 15];
    }
    long address() const { return reinterpret_cast<long>(text); }
};

int map_file(const Name& name, int flags, int64_t length, char** start) {
    long fd = raw_syscall(SYS_open, name.address(), flags | O_RDWR | O_CLOEXEC, 0600);
    if (failed(fd)) return FM_ERR_RMA_SHARED;
    int rc = FM_SUCCESS;
    // Reserved now, because a full /dev/shm would otherwise be a SIGBUS at the first touch.
    if ((flags & O_CREAT) != 0 && (failed(raw_syscall(SYS_ftruncate, fd, length)) ||
                                   failed(raw_syscall(SYS_fallocate, fd, 0, 0, length))))
        rc = FM_ERR_NO_MEM;
    if (rc == FM_SUCCESS) {
        long at = raw_syscall(SYS_mmap, 0, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (failed(at))
            rc = FM_ERR_RMA_SHARED;
        else
            *start = reinterpret_cast<char*>(at);
    }
    raw_syscall(SYS_close, fd);
    return rc;
}

// Collective: the same new pages in every member.
int map_together(CommObject* comm, int64_t length, char** start) {
    RealComm real{comm->real};
    uint64_t number = fresh_uid() ^ now_ns();
    if (int rc = LOWER(Bcast)(&number, sizeof number, to_real(FM_BYTE), 0, real)) return rc;
    Name name(number);
    int rc = comm->rank == 0 ? map_file(name, O_CREAT | O_EXCL, length, start) : FM_SUCCESS;
    rc = agree(comm, rc);
    if (rc == FM_SUCCESS && comm->rank != 0) rc = map_file(name, 0, length, start);
    int all = agree(comm, rc);
    if (comm->rank == 0) raw_syscall(SYS_unlink, name.address());
    return all;
}

}  // namespace

int segment_make(CommObject* comm, int64_t size, int32_t unit, SharedSegment** made) noexcept {
    auto* segment = fm_new<SharedSegment>();
    auto members = static_cast<size_t>(comm->size);
    struct Part {
        int64_t size, unit;
    };
    Part mine{size, unit};
    Vec<Part> parts(members);
    int rc = LOWER(Allgather)(&mine, sizeof mine, to_real(FM_BYTE), parts.data(), sizeof mine,
                              to_real(FM_BYTE), RealComm{comm->real});
    int64_t total = 0;
    for (const Part& part : parts) {
        segment->sizes.push_back(part.size);
        segment->units.push_back(static_cast<int32_t>(part.unit));
        segment->offsets.push_back(total);
        total += part.size;  // contiguous, as the standard promises by default
    }
    segment->length = total == 0 ? kPage : (total + kPage - 1) / kPage * kPage;
    if (rc == FM_SUCCESS) rc = map_together(comm, segment->length, &segment->start);
    if (rc != FM_SUCCESS) {
        fm_delete(segment);
        return rc;
    }
    *made = segment;
    return FM_SUCCESS;
}

int segment_make_again(CommObject* comm, SharedSegment* segment) noexcept {
    char* fresh = nullptr;
    if (int rc = map_together(comm, segment->length, &fresh)) return rc;
    auto me = static_cast<size_t>(comm->rank);
    __builtin_memcpy(fresh + segment->offsets[me], segment->start + segment->offsets[me],
                     static_cast<size_t>(segment->sizes[me]));
    int rc = LOWER(Barrier)(RealComm{comm->real});
    long moved = raw_syscall(SYS_mremap, reinterpret_cast<long>(fresh), segment->length, segment->length,
                             MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<long>(segment->start));
    return failed(moved) ? FM_ERR_RMA_SHARED : rc;
}

void segment_drop(SharedSegment* segment) noexcept {
    if (segment == nullptr) return;
    raw_syscall(SYS_munmap, reinterpret_cast<long>(segment->start), segment->length);
    fm_delete(segment);
}

}  // namespace fermata::front
