#include "front/objects/segment_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "fermata_types.h"
#include "front/core/sys.h"

namespace fermata::front {
namespace {

using namespace mpi;

struct Name {
    char text[64] = "/dev/shm/fermata-window-";
    explicit Name(uint64_t number) {
        size_t at = __builtin_strlen(text);
        for (int shift = 60; shift >= 0; shift -= 4) text[at++] = "0123456789abcdef"[number >> shift & 15];
    }
    long address() const { return reinterpret_cast<long>(text); }
};

long open_file(const SegmentFile& file, int flags) {
    return sys(SYS_open, Name(file.number).address(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
               0600);
}

bool look(long fd, struct stat* status) {
    return !failed(sys(SYS_fstat, fd, reinterpret_cast<long>(status)));
}

// The one that was made, and nobody else's to read or to write to.
bool is_it(long fd, const SegmentFile& file) {
    struct stat now;
    return look(fd, &now) && S_ISREG(now.st_mode) && now.st_dev == file.device && now.st_ino == file.inode &&
           static_cast<long>(now.st_uid) == sys(SYS_geteuid) && (now.st_mode & 077) == 0;
}

int map_pages(long fd, int64_t length, char** start) {
    long at = sys(SYS_mmap, 0, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (failed(at)) return FM_ERR_RMA_SHARED;
    *start = reinterpret_cast<char*>(at);
    return FM_SUCCESS;
}

}  // namespace

int segment_file_make(SegmentFile* file, int64_t length, char** start) noexcept {
    long fd = open_file(*file, O_CREAT | O_EXCL);
    if (failed(fd)) return FM_ERR_RMA_SHARED;
    int rc = FM_ERR_NO_MEM;
    struct stat status;
    // Reserved now, because a full /dev/shm would otherwise be a SIGBUS at the first touch.
    if (!failed(sys(SYS_ftruncate, fd, length)) && !failed(sys(SYS_fallocate, fd, 0, 0, length)) &&
        look(fd, &status)) {
        file->device = status.st_dev;
        file->inode = status.st_ino;
        rc = map_pages(fd, length, start);
    }
    sys(SYS_close, fd);
    if (rc != FM_SUCCESS) segment_file_unname(*file);
    return rc;
}

int segment_file_map(const SegmentFile& file, int64_t length, char** start) noexcept {
    long fd = open_file(file, 0);
    if (failed(fd)) return FM_ERR_RMA_SHARED;
    int rc = is_it(fd, file) ? map_pages(fd, length, start) : FM_ERR_RMA_SHARED;
    sys(SYS_close, fd);
    return rc;
}

void segment_file_unname(const SegmentFile& file) noexcept { sys(SYS_unlink, Name(file.number).address()); }

}  // namespace fermata::front
