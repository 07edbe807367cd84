/* A libcuda.so.1 whose device is host memory, for the logic of bench/gpu without a GPU: the program's own
 * steps, and what Fermata does between them. States of processes are files in PRETENDED_CUDA, so that another
 * process may ask for them. What a driver refuses, or keeps in the kernel, it does not show. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int Result;
enum { INVALID = 1, ILLEGAL_STATE = 401, CHECKPOINTED = 2 };

static char* path_of(int pid) {
    static char path[1000];
    snprintf(path, sizeof path, "%s/%d", getenv("PRETENDED_CUDA"), pid);
    return path;
}
static int state_of(int pid) {
    int state = -1;
    FILE* file = fopen(path_of(pid), "r");
    if (!file) return CHECKPOINTED; /* a restarted process: what it was is in its memory */
    if (fscanf(file, "%d", &state) != 1) state = -1;
    fclose(file);
    return state;
}
static void set_state(int pid, int state) {
    FILE* file = fopen(path_of(pid), "w");
    if (!file) abort();
    fprintf(file, "%d", state);
    fclose(file);
}
static Result step(int pid, int from, int to) {
    if (state_of(pid) != from) return ILLEGAL_STATE;
    set_state(pid, to);
    return 0;
}

Result cuInit(unsigned flags) { return flags; }
Result cuDriverGetVersion(int* version) { return *version = 13000, 0; }
Result cuGetErrorName(Result error, const char** name) {
    *name = error == ILLEGAL_STATE ? "ILLEGAL_STATE" : "INVALID";
    return 0;
}
Result cuDeviceGet(int* device, int number) { return *device = number, 0; }
Result cuDeviceGetName(char* name, int size, int device) {
    return snprintf(name, (size_t)size, "pretended %d", device), 0;
}
Result cuDevicePrimaryCtxRetain(void** context, int device) {
    *context = context + device;
    set_state(getpid(), 0);
    return 0;
}
Result cuCtxSetCurrent(void* context) { return context ? 0 : INVALID; }
Result cuCtxSynchronize(void) { return 0; }
Result cuMemAlloc_v2(uint64_t* at, size_t size) { return *at = (uint64_t)malloc(size), 0; }
Result cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t size) {
    return memcpy((void*)to, from, size), 0;
}
Result cuMemcpyDtoH_v2(void* to, uint64_t from, size_t size) {
    return memcpy(to, (const void*)from, size), 0;
}
Result cuModuleLoadData(void** module, const void* text) { return *module = (void*)text, 0; }
Result cuModuleGetFunction(void** function, void* module, const char* name) {
    return *function = strstr(module, name), 0;
}
Result cuLaunchKernel(void* kernel, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, void* stream, void** arguments, void** extra) {
    uint32_t* to = *(uint32_t**)arguments[0];
    const uint32_t count = *(uint32_t*)arguments[1], add = *(uint32_t*)arguments[2];
    if (!kernel || stream || extra || shared || y * z * by * bz != 1 || (uint64_t)x * bx < count)
        return INVALID;
    for (uint32_t i = 0; i < count; ++i) to[i] = i * 2654435761u + add;
    return 0;
}
Result cuCheckpointProcessGetState(int pid, int* state) {
    *state = state_of(pid);
    return *state < 0 ? INVALID : 0;
}
Result cuCheckpointProcessGetRestoreThreadId(int pid, int* tid) { return *tid = pid, 0; }
Result cuCheckpointProcessLock(int pid, void* with) { return with ? INVALID : step(pid, 0, 1); }
Result cuCheckpointProcessCheckpoint(int pid, void* with) { return with ? INVALID : step(pid, 1, 2); }
Result cuCheckpointProcessRestore(int pid, void* with) { return with ? INVALID : step(pid, 2, 1); }
Result cuCheckpointProcessUnlock(int pid, void* with) { return with ? INVALID : step(pid, 1, 0); }
