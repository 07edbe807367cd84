// Threads with TLS, malloc from each, and a maps file at the end: what a threaded program leaves in an
// address space.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread int mine;

static void* work(void* argument) {
    mine = (int)(size_t)argument;
    for (int i = 0; i < 300; ++i) {
        char* p = malloc((size_t)(i % 17 + 1) << 14);
        memset(p, mine, 100);
        free(p);
    }
    return (void*)(size_t)(mine * 2);
}

int main(void) {
    pthread_t threads[8];
    size_t total = 0;
    for (size_t i = 0; i < 8; ++i)
        if (pthread_create(&threads[i], NULL, work, (void*)i) != 0) return 1;
    for (size_t i = 0; i < 8; ++i) {
        void* result;
        pthread_join(threads[i], &result);
        total += (size_t)result;
    }
    if (total != 56) return 2;
    FILE* maps = fopen("/proc/self/maps", "r");
    char line[1000];
    while (fgets(line, sizeof line, maps)) fputs(line, stdout);
    return 0;
}
