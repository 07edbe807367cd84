// Functions that need no library at all.
#include <stdlib.h>
#include <time.h>

#include "fermata_api.h"
#include "front/core/front.h"
#include "front/core/recorded.h"

using namespace fermata::mpi;

namespace {

// Seconds of the monotonic clock plus an offset that is taken anew after a restart: the monotonic clock of
// another node starts anywhere, and an application's time must not run backwards.
double wall_time() {
    static uint64_t restarts = ~0ull;
    static double offset = 0;
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    double mono = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
    if (__builtin_expect(restarts != fermata::front::front.restarts, 0)) {
        clock_gettime(CLOCK_REALTIME, &now);
        offset = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - mono;
        restarts = fermata::front::front.restarts;
    }
    return mono + offset;
}

}  // namespace

extern "C" {

double fm_Wtime() {
    double now = 0;
    fermata::front::recorded("MPI_Wtime", &now, sizeof now, [&] { now = wall_time(); });
    return now;
}
double fm_Wtick() { return 1e-9; }

int fm_Get_address(const void* location, Aint* address) {
    *address = reinterpret_cast<Aint>(location);
    return FM_SUCCESS;
}
Aint fm_Aint_add(Aint base, Aint disp) { return base + disp; }
Aint fm_Aint_diff(Aint addr1, Aint addr2) { return addr1 - addr2; }

// The ABI fronts answer with the version of the header the program was compiled with; this is for Fortran.
int fm_Get_version(int* version, int* subversion) {
    *version = 3;
    *subversion = 1;
    return FM_SUCCESS;
}
int fm_Pcontrol(int) { return FM_SUCCESS; }

// Memory of the upper half, not of the library: it is part of the image. 64: a cache line, as the libraries
// give.
int fm_Alloc_mem(Aint size, Info, void** baseptr) {
    if (size < 0) return FM_ERR_ARG;
    void* memory = nullptr;
    if (posix_memalign(&memory, 64, size == 0 ? 1 : static_cast<size_t>(size)) != 0) return FM_ERR_NO_MEM;
    *baseptr = memory;
    return FM_SUCCESS;
}
int fm_Free_mem(void* base) {
    free(base);
    return FM_SUCCESS;
}

}  // extern "C"
