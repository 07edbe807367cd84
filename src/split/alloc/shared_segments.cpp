#include "split/alloc/shared_segments.h"

#include <sys/ipc.h>
#include <sys/shm.h>

#include <cerrno>

#include "split/address/raw.h"
#include "split/address/window.h"
#include "split/alloc/lower_alloc.h"

namespace fermata::split {
namespace {

// shmdt is not told the size, and the kernel does not tell it back: remember what was attached.
struct Segment {
    uint64_t address;
    uint64_t size;
};
constexpr int kMaxSegments = 256;
Segment segments[kMaxSegments];
SpinLock lock;

void remember(uint64_t address, uint64_t size) {
    lock.lock();
    for (Segment& s : segments)
        if (!s.size) {
            s = {address, size};
            break;
        }
    lock.unlock();
}

// Identifiers that the lower half has attached at any time: not the program's.
constexpr unsigned kMaxIds = 1024;
int ids[kMaxIds];
unsigned id_count;

void remember_id(int id) {
    if (lower_segment(id)) return;
    lock.lock();
    ids[id_count++ % kMaxIds] = id;
    lock.unlock();
}

uint64_t forget(uint64_t address) {
    uint64_t size = 0;
    lock.lock();
    for (Segment& s : segments)
        if (s.size && s.address == address) {
            size = s.size;
            s = {};
            break;
        }
    lock.unlock();
    return size;
}

}  // namespace

bool lower_segment(int id) noexcept {
    lock.lock();
    bool known = false;
    for (unsigned i = 0; i < id_count && i < kMaxIds; ++i) known = known || ids[i] == id;
    lock.unlock();
    return known;
}

void give_segment_to_program(int id) noexcept {
    lock.lock();
    for (int& one : ids)
        if (one == id) one = -1;
    lock.unlock();
}

long lower_shmat(int id, const void* address, int flags) noexcept {
    shmid_ds info;
    long rc = sys(SYS_shmctl, id, IPC_STAT, &info);
    uint64_t size = failed(rc) ? 0 : page_up(info.shm_segsz);
    void* place = nullptr;
    if (!address && size) {
        // Reserve where the lower half's mappings go (before partition(): wherever), attach over the
        // reservation.
        long at = lower_mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (!failed(at)) place = reinterpret_cast<void*>(at);
    }
    if (place) flags |= SHM_REMAP;
    rc = sys(SYS_shmat, id, place ? place : const_cast<void*>(address), flags);
    if (failed(rc)) {
        if (place) lower_munmap(place, size);
        return rc;
    }
    remember(uint64_t(rc), size);
    remember_id(id);
    return rc;
}

long lower_shmdt(const void* address) noexcept {
    uint64_t size = forget(uint64_t(address));
    // Unmapping the whole attachment detaches it, and leaves no gap above the window on the way.
    return size ? lower_munmap(const_cast<void*>(address), size) : sys(SYS_shmdt, address);
}

}  // namespace fermata::split
