/* A program with large thread-locals of the initial-exec model (libthread_locals.c): main thread and another
 * one, on a small stack; and the environment as it was given. */
#include <dlfcn.h>
#include <pthread.h>

#include "hold.h"

extern char** environ;
static int (*next_value)(void);
static volatile int go;

static void* other(void* value) {
    *(int*)value = next_value();
    while (!go) usleep(1000);
    *(int*)value += 100 * next_value();
    return NULL;
}

int main(int argc, char** argv) {
    int tunables = 0, own, value = 0;
    MPI_Init(&argc, &argv);
    next_value = (int (*)(void))dlsym(RTLD_DEFAULT, "next_thread_local");
    CHECK(next_value);
    for (char** one = environ; *one; ++one) tunables += strncmp(*one, "GLIBC_TUNABLES=", 15) == 0;
    own = next_value();
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    CHECK(pthread_create(&thread, &small, other, &value) == 0);
    while (!value) usleep(1000);
    hold();
    go = 1;
    pthread_join(thread, NULL);
    own = 100 * next_value() + own;
    hash_bytes(&own, sizeof own), hash_bytes(&value, sizeof value), hash_bytes(&tunables, sizeof tunables);
    const char* given = getenv("GLIBC_TUNABLES");
    if (given) hash_bytes(given, strlen(given));
    verdict("thread-locals");
    MPI_Finalize();
    return 0;
}
