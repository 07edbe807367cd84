/* Thread-locals of both models, a constructor that uses them, and the canary (-fstack-protector-all). */
#include <errno.h>
#include <string.h>

static __thread int counter __attribute__((tls_model("initial-exec"))) = 40;
__thread int other = 2;

__attribute__((constructor)) static void begin(void) { counter += 1; }

__attribute__((noinline)) static int length(const char* text) {
    char copy[64];
    strncpy(copy, text, sizeof copy - 1);
    return (int)strlen(copy);
}

/* 40 in a new thread, 41 in the one that loaded the library; each call adds 1 */
int count(void) {
    errno = 7;
    return counter++ + other - length("ab") + (errno - 7);
}
