/* What the driver does with another process's device memory, as root:
 *
 *   state PID get|lock|checkpoint|restore|unlock …     one after the other; "seconds WHAT N" each */
#include <string.h>

#include "driver.h"

static void get(int pid) {
    static const char* const names[] = {"running", "locked", "checkpointed", "failed"};
    int state = 0, tid = 0;
    NEED(cuCheckpointProcessGetState(pid, &state));
    NEED(cuCheckpointProcessGetRestoreThreadId(pid, &tid));
    printf("state %s, restore thread %d\n", state >= 0 && state < 4 ? names[state] : "?", tid);
}

int main(int argc, char** argv) {
    const struct {
        const char* word;
        Result (**call)(int, void*);
    } calls[] = {{"lock", &cuCheckpointProcessLock},
                 {"checkpoint", &cuCheckpointProcessCheckpoint},
                 {"restore", &cuCheckpointProcessRestore},
                 {"unlock", &cuCheckpointProcessUnlock}};
    if (argc < 3) return 2;
    open_driver();
    const int pid = atoi(argv[1]);
    for (int i = 2; i < argc; ++i) {
        int done = 0;
        if (strcmp(argv[i], "get") == 0) get(pid), done = 1;
        for (size_t k = 0; k < sizeof calls / sizeof *calls; ++k)
            if (strcmp(argv[i], calls[k].word) == 0) {
                const double before = seconds();
                need((*calls[k].call)(pid, NULL), calls[k].word);
                printf("seconds %s %.6f\n", calls[k].word, seconds() - before), done = 1;
            }
        if (!done) return printf("no such word: %s\n", argv[i]), 2;
    }
    return 0;
}
