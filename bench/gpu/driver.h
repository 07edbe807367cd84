/* The part of CUDA's driver that the experiment of bench/gpu needs, opened at run time: nothing of it is here
 * when this is compiled. Names and layouts are those of NVIDIA's public manual of the driver API (13.0;
 * checkpoints since driver 570). */
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { NO_GPU = 77 }; /* exit code */
enum { STATE_RUNNING, STATE_LOCKED, STATE_CHECKPOINTED, STATE_FAILED };

typedef uint64_t DevicePointer;
typedef int Result; /* 0: done */

/* One function: its type, its name in the library, the name here. */
#define DRIVER_FUNCTIONS(F)                                                                                 \
    F(Result, cuInit, (unsigned))                                                                           \
    F(Result, cuDriverGetVersion, (int*))                                                                   \
    F(Result, cuGetErrorName, (Result, const char**))                                                       \
    F(Result, cuDeviceGet, (int*, int))                                                                     \
    F(Result, cuDeviceGetName, (char*, int, int))                                                           \
    F(Result, cuDevicePrimaryCtxRetain, (void**, int))                                                      \
    F(Result, cuCtxSetCurrent, (void*))                                                                     \
    F(Result, cuCtxSynchronize, (void))                                                                     \
    F(Result, cuMemAlloc_v2, (DevicePointer*, size_t))                                                      \
    F(Result, cuMemcpyHtoD_v2, (DevicePointer, const void*, size_t))                                        \
    F(Result, cuMemcpyDtoH_v2, (void*, DevicePointer, size_t))                                              \
    F(Result, cuModuleLoadData, (void**, const void*))                                                      \
    F(Result, cuModuleGetFunction, (void**, void*, const char*))                                            \
    F(Result, cuLaunchKernel,                                                                               \
      (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**)) \
    F(Result, cuCheckpointProcessGetState, (int, int*))                                                     \
    F(Result, cuCheckpointProcessGetRestoreThreadId, (int, int*))                                           \
    F(Result, cuCheckpointProcessLock, (int, void*))                                                        \
    F(Result, cuCheckpointProcessCheckpoint, (int, void*))                                                  \
    F(Result, cuCheckpointProcessRestore, (int, void*))                                                     \
    F(Result, cuCheckpointProcessUnlock, (int, void*))

#define DRIVER_DECLARE(type, name, arguments) static type(*name) arguments;
DRIVER_FUNCTIONS(DRIVER_DECLARE)
#undef DRIVER_DECLARE

static inline void need(Result result, const char* what) {
    const char* name = "?";
    if (result == 0) return;
    if (cuGetErrorName) cuGetErrorName(result, &name);
    printf("refused: %s: %d %s\n", what, result, name ? name : "?");
    exit(1);
}
#define NEED(call) need(call, #call)

/* Ends the process with one line and NO_GPU where there is no driver, none that can do checkpoints, or no
 * device. */
static inline void open_driver(void) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        printf("no GPU: %s\n", dlerror());
        exit(NO_GPU);
    }
#define DRIVER_FIND(type, name, arguments)                                           \
    name = (type(*) arguments)dlsym(library, #name);                                 \
    if (!name) {                                                                     \
        printf("no GPU: the driver has no " #name " (checkpoints came with 570)\n"); \
        exit(NO_GPU);                                                                \
    }
    DRIVER_FUNCTIONS(DRIVER_FIND)
#undef DRIVER_FIND
    const Result result = cuInit(0);
    if (result != 0) {
        printf("no GPU: cuInit: %d\n", result);
        exit(NO_GPU);
    }
}

static inline double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
