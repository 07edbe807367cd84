/* Device memory that a kernel has filled, and what becomes of it.
 *
 *   memory self MIB         the process saves its own device memory by the driver's four calls, looks at its
 * mappings and descriptors meanwhile, restores it and compares (step 1) memory held MIB FILE    with MPI:
 * says READY, waits for FILE without a call to the driver, compares, and lets the kernel run once more (steps
 * 2 and 3; between two ranks also messages, step 4) DEVICE_MESSAGES=1       messages from device memory to
 * device memory, where the library can
 *
 * Lines "seconds WHAT N" are times; "right WHAT" is what holds; "refused: …" what the driver does not do. */
#define _GNU_SOURCE
#include <dirent.h>
#include <string.h>
#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

#include "driver.h"

/* Element i becomes i * 2654435761 + step. */
static const char* const kernel_text =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry fill(.param .u64 to, .param .u32 count, .param .u32 step)\n"
    "{\n"
    " .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %d<4>;\n"
    " ld.param.u64 %d1, [to]; ld.param.u32 %r1, [count]; ld.param.u32 %r2, [step];\n"
    " mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;\n"
    " mad.lo.s32 %r6, %r3, %r4, %r5;\n"
    " setp.ge.u32 %p1, %r6, %r1; @%p1 bra END;\n"
    " mul.lo.u32 %r7, %r6, 2654435761; add.u32 %r8, %r7, %r2;\n"
    " cvta.to.global.u64 %d2, %d1; mul.wide.u32 %d3, %r6, 4; add.s64 %d2, %d2, %d3;\n"
    " st.global.u32 [%d2], %r8;\n"
    "END:\n ret;\n}\n";

static DevicePointer memory;
static uint32_t count, *copy;
static void* kernel;

static void fill(uint32_t step) {
    void* arguments[] = {&memory, &count, &step};
    NEED(cuLaunchKernel(kernel, (count + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
    NEED(cuCtxSynchronize());
}

static void compare(uint32_t step, const char* what) {
    NEED(cuMemcpyDtoH_v2(copy, memory, (size_t)count * 4));
    for (uint32_t i = 0; i < count; ++i)
        if (copy[i] != i * 2654435761u + step) {
            printf("WRONG %s: element %u is %u\n", what, i, copy[i]);
            exit(1);
        }
    printf("right %s\n", what), fflush(stdout);
}

static void begin(uint32_t mib) {
    int device, version = 0;
    char name[100] = "";
    void *context, *module;
    open_driver();
    NEED(cuDriverGetVersion(&version));
    NEED(cuDeviceGet(&device, 0));
    NEED(cuDeviceGetName(name, sizeof name, device));
    printf("driver for CUDA %d.%d, %s\n", version / 1000, version % 1000 / 10, name);
    NEED(cuDevicePrimaryCtxRetain(&context, device));
    NEED(cuCtxSetCurrent(context));
    NEED(cuModuleLoadData(&module, kernel_text));
    NEED(cuModuleGetFunction(&kernel, module, "fill"));
    count = mib << 18;
    copy = malloc((size_t)count * 4);
    memset(copy, 0, (size_t)count * 4);
    NEED(cuMemAlloc_v2(&memory, (size_t)count * 4));
    fill(1);
    compare(1, "filled by the kernel");
    /* The limit: one plain copy out and one in. */
    const double before = seconds();
    NEED(cuMemcpyDtoH_v2(copy, memory, (size_t)count * 4));
    const double between = seconds();
    NEED(cuMemcpyHtoD_v2(memory, copy, (size_t)count * 4));
    printf("seconds plain-copy-out %.6f\nseconds plain-copy-in %.6f\n", between - before,
           seconds() - between);
}

/* What of the driver's is mapped and open. */
static void look(const char* when) {
    char line[1000], target[1000], path[300];
    FILE* maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "nvidia") || strstr(line, "/dev/")) printf("%s mapped %s", when, line);
    if (maps) fclose(maps);
    DIR* open = opendir("/proc/self/fd");
    for (struct dirent* one; open && (one = readdir(open));) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", one->d_name);
        const ssize_t size = readlink(path, target, sizeof target - 1);
        if (size > 0 && (target[size] = 0, strstr(target, "nvidia")))
            printf("%s open %s %s\n", when, one->d_name, target);
    }
    if (open) closedir(open);
}

static void timed(const char* what, Result (*call)(int, void*)) {
    const double before = seconds();
    need(call(getpid(), NULL), what);
    printf("seconds %s %.6f\n", what, seconds() - before), fflush(stdout);
}

static int self(void) {
    int tid = 0;
    look("before");
    NEED(cuCheckpointProcessGetRestoreThreadId(getpid(), &tid));
    printf("process %d, restore thread %d\n", getpid(), tid);
    timed("lock", cuCheckpointProcessLock);
    timed("checkpoint", cuCheckpointProcessCheckpoint);
    look("checkpointed");
    timed("restore", cuCheckpointProcessRestore);
    timed("unlock", cuCheckpointProcessUnlock);
    compare(1, "after its own checkpoint");
    fill(2);
    compare(2, "filled again");
    return 0;
}

#ifdef WITH_MPI
static void exchange(int rank, int size) {
    const int on_device = getenv("DEVICE_MESSAGES") != NULL;
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    DevicePointer other = 0;
    uint32_t* into = malloc((size_t)count * 4);
    if (on_device) NEED(cuMemAlloc_v2(&other, (size_t)count * 4));
    fill(10 + (uint32_t)rank);
    NEED(cuMemcpyDtoH_v2(copy, memory, (size_t)count * 4));
    MPI_Sendrecv(on_device ? (void*)memory : copy, (int)count, MPI_UINT32_T, next, 3,
                 on_device ? (void*)other : into, (int)count, MPI_UINT32_T, before, 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (on_device) NEED(cuMemcpyDtoH_v2(into, other, (size_t)count * 4));
    for (uint32_t i = 0; i < count; ++i)
        if (into[i] != i * 2654435761u + 10 + (uint32_t)before)
            printf("WRONG message: element %u is %u\n", i, into[i]), exit(1);
    printf("right message of %s memory\n", on_device ? "device" : "host"), fflush(stdout);
    free(into);
}

static int held(const char* file) {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    exchange(rank, size);
    fill(1);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("READY %d\n", getpid()), fflush(stdout);
    while (access(file, F_OK) != 0) usleep(10000);
    compare(1, "after it was held");
    exchange(rank, size);
    return 0;
}
#endif

int main(int argc, char** argv) {
    if (argc < 3) return 2;
#ifdef WITH_MPI
    MPI_Init(&argc, &argv);
    begin((uint32_t)atoi(argv[2]));
    const int code = argc > 3 && strcmp(argv[1], "held") == 0 ? held(argv[3]) : 2;
    MPI_Finalize();
    return code;
#else
    begin((uint32_t)atoi(argv[2]));
    return strcmp(argv[1], "self") == 0 ? self() : 2;
#endif
}
