#include "front/objects/shared_segment.h"

#include <sys/mman.h>

#include "base/page.h"
#include "front/core/sys.h"
#include "front/objects/api.h"
#include "front/objects/comm_make.h"
#include "front/objects/internal.h"
#include "front/objects/segment_file.h"

namespace fermata::front {
namespace {

// Collective: the same new pages in every member. The first one says of the file that it made, with what
// went wrong.
int map_together(CommObject* comm, int64_t length, char** start) {
    struct Told {
        SegmentFile file;
        int64_t rc;
    } told{};
    if (comm->rank == 0) {
        told.file.number = fresh_uid() ^ now_ns();
        told.rc = segment_file_make(&told.file, length, start);
    }
    int rc = LOWER(Bcast)(&told, sizeof told, to_real(FM_BYTE), 0, RealComm{comm->real});
    if (rc == FM_SUCCESS) rc = static_cast<int>(told.rc);
    if (rc == FM_SUCCESS && comm->rank != 0) rc = segment_file_map(told.file, length, start);
    rc = agree(comm, rc);
    if (comm->rank == 0 && told.rc == FM_SUCCESS) segment_file_unname(told.file);
    if (rc != FM_SUCCESS && *start != nullptr) sys(SYS_munmap, reinterpret_cast<long>(*start), length);
    return rc;
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
    long moved = sys(SYS_mremap, reinterpret_cast<long>(fresh), segment->length, segment->length,
                     MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<long>(segment->start));
    return failed(moved) ? FM_ERR_RMA_SHARED : rc;
}

void segment_drop(SharedSegment* segment) noexcept {
    if (segment == nullptr) return;
    sys(SYS_munmap, reinterpret_cast<long>(segment->start), segment->length);
    fm_delete(segment);
}

}  // namespace fermata::front
