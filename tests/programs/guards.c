/* Guard pages, which are in no line of /proc/self/maps (MADV_GUARD_INSTALL, Linux 6.13; a libc may make those
 * of its threads' stacks so): in memory of the program's own, in a private mapping of a file, on stacks of
 * threads. What lies beside them is kept, and who touches them gets SIGSEGV there, also after a restart; then
 * they are taken away and the memory is moved. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>

#include "hold.h"

enum { PAGE = 4096, PAGES = 64, INSTALL = 102, REMOVE = 103 };
static int kernel_has;
static __thread sigjmp_buf back;
static __thread char* fault;

static void on_fault(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    fault = info->si_addr;
    siglongjmp(back, 1);
}

/* Does touching it fault there? */
static int touch(char* at, int write) {
    fault = NULL;
    if (sigsetjmp(back, 1) == 0) {
        if (write) *(volatile char*)at = 1;
        (void)*(volatile char*)at;
    }
    return fault == at;
}

static int guarded(int page) {
    return kernel_has && (page % 7 == 3 || page == 0 || page == 33 || page == 34);
}

static void guard(char* memory) {
    for (int page = 0; page < PAGES; ++page)
        if (guarded(page)) CHECK(madvise(memory + page * PAGE, PAGE, INSTALL) == 0);
}

static void look(char* memory, int writable) {
    for (int page = 0; page < PAGES; ++page)
        if (guarded(page)) {
            CHECK(touch(memory + page * PAGE + 5, 0) && (!writable || touch(memory + page * PAGE + 4000, 1)));
        } else {
            hash_bytes(memory + page * PAGE, PAGE);
        }
}

static char* filled(int how, int fd) {
    char* memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, how | MAP_PRIVATE, fd, 0);
    CHECK(memory != MAP_FAILED);
    if (fd < 0)
        for (int i = 0; i < PAGES * PAGE; ++i) memory[i] = (char)(i / PAGE + i);
    return memory;
}

/* Down to the end of the stack: the address that faulted is in its guard. */
static int deeper(int depth) {
    volatile char room[512];
    room[0] = (char)depth;
    return depth < 1 << 30 ? deeper(depth + 1) + room[0] : 0;
}

struct stack {
    pthread_t thread;
    pthread_barrier_t *ready, *go;
    char* own; /* a stack of the program's, whose lowest page is a guard */
    int right;
};

static void* thread(void* argument) {
    struct stack* it = argument;
    static __thread char other[64 << 10];
    stack_t signals = {.ss_sp = other, .ss_size = sizeof other};
    pthread_attr_t attributes;
    void* low;
    size_t size, guard;
    sigaltstack(&signals, NULL);
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_getguardsize(&attributes, &guard);
    pthread_barrier_wait(it->ready);
    pthread_barrier_wait(it->go);
    if (it->own && !kernel_has) return it->right = 1, NULL;
    char *begin = it->own ? it->own : (char*)low - guard, *end = it->own ? it->own + PAGE : (char*)low;
    if (sigsetjmp(back, 1) == 0) deeper(0);
    it->right = begin <= fault && fault < end;
    return NULL;
}

int main(int argc, char** argv) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct stack stacks[3] = {{0}};
    pthread_barrier_t ready, go;
    pthread_attr_t attributes;
    MPI_Init(&argc, &argv);
    sigaction(SIGSEGV, &action, NULL);
    char *plain = filled(MAP_ANONYMOUS, -1), *constant = filled(MAP_ANONYMOUS, -1),
         *none = filled(MAP_ANONYMOUS, -1);
    kernel_has = madvise(plain, PAGE, INSTALL) == 0 || errno != EINVAL;
    FILE* file = tmpfile();
    for (int i = 0; i < PAGES * PAGE; ++i) fputc(i * 3, file);
    fflush(file);
    char* of_file = filled(0, fileno(file));
    of_file[PAGE * 2] = of_file[PAGE * 36] = 77;
    guard(plain), guard(constant), guard(none);
    if (kernel_has && madvise(of_file, PAGE, INSTALL) != 0)
        munmap(of_file, PAGES * PAGE), of_file = NULL; /* before Linux 6.15 */
    if (of_file) guard(of_file);
    mprotect(constant, PAGES * PAGE, PROT_READ);
    mprotect(none, PAGES * PAGE, PROT_NONE);
    pthread_barrier_init(&ready, NULL, 4);
    pthread_barrier_init(&go, NULL, 4);
    for (int i = 0; i < 3; ++i) {
        stacks[i].ready = &ready, stacks[i].go = &go;
        pthread_attr_init(&attributes);
        if (i == 1) pthread_attr_setguardsize(&attributes, 9 * PAGE);
        if (i == 2) {
            stacks[i].own =
                mmap(NULL, 80 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
            if (kernel_has) CHECK(madvise(stacks[i].own, PAGE, INSTALL) == 0);
            pthread_attr_setstack(&attributes, stacks[i].own, 80 * PAGE);
        }
        CHECK(pthread_create(&stacks[i].thread, &attributes, thread, &stacks[i]) == 0);
    }
    pthread_barrier_wait(&ready);
    look(plain, 1), look(constant, 0);
    hold();
    pthread_barrier_wait(&go);
    for (int i = 0; i < 3; ++i) {
        pthread_join(stacks[i].thread, NULL);
        CHECK(stacks[i].right);
    }
    mprotect(none, PAGES * PAGE, PROT_READ | PROT_WRITE);
    look(plain, 1), look(constant, 0), look(none, 1);
    if (of_file) look(of_file, 1);
    CHECK(!kernel_has || madvise(plain, PAGES * PAGE, REMOVE) == 0);
    plain = mremap(plain, PAGES * PAGE, 4 * PAGES * PAGE, MREMAP_MAYMOVE);
    CHECK(plain != MAP_FAILED);
    for (int page = 0; page < PAGES; ++page)
        if (!guarded(page) || page == 0) hash_bytes(plain + page * PAGE, PAGE);
    verdict("guards");
    MPI_Finalize();
    return 0;
}
