/* What goes wrong with a program's own state, by name: each call's code and sentence.
 *
 *     own_state DIRECTORY small|large|mismatch|hooks|option
 *     own_state DIRECTORY triggers OPTIONS     saves when it should, until it shall end
 */
#include <fermata/fermata.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank;

static int said(fermata_handle* f, const char* what, int code) {
    if (code != FERMATA_OK && rank == 0) printf("%s: %d %s\n", what, code, fermata_message(f));
    fflush(stdout);
    return code;
}

static int64_t size_of(void* object) { return *(int64_t*)object; }
static int pack(void* object, void* bytes, int64_t size) {
    (void)object;
    memset(bytes, 7, (size_t)size);
    return rank == 1 ? 7 : 0;
}
static int unpack(void* object, const void* bytes, int64_t size) {
    return (void)object, (void)bytes, size < 0;
}

/* At most ten seconds, or OWN_STATE_STEPS times 10 ms. */
static int triggers(fermata_handle* f) {
    const char* more = getenv("OWN_STATE_STEPS");
    int steps = more ? atoi(more) : 1000;
    int64_t step = 0;
    int saves = 0, told = 0;
    fermata_protect_global(f, "step", &step, FERMATA_INT64, 1);
    int again = said(f, "restore", fermata_restore(f, &step)) == FERMATA_OK;
    if (rank == 0) printf("from %lld %d\n", (long long)step, again);
    fflush(stdout);
    for (int i = 0; i < steps && !told; i++, step++) {
        if (fermata_should_checkpoint(f)) saves += said(f, "save", fermata_save(f, step)) == FERMATA_OK;
        told = fermata_should_exit(f);
        usleep(10000);
    }
    if (said(f, "wait", fermata_wait(f)) != FERMATA_OK) saves = -1;
    if (rank == 0) printf("%d saves, told %d, step %lld\n", saves, told, (long long)step);
    return 0;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int size, large = strcmp(argv[2], "large") == 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    fermata_handle* f;
    double* mine = NULL;
    const char* options = strcmp(argv[2], "option") == 0 ? "kep=3" : argc > 3 ? argv[3] : "keep=1";
    if (said(f, "open", fermata_open(&f, MPI_COMM_WORLD, argv[1], options)) == FERMATA_OK) {
        if (strcmp(argv[2], "triggers") == 0) {
            triggers(f);
            goto out;
        }
        int64_t count = large ? 1 << 20 : 100, object = 10, step = -1;
        mine = calloc((size_t)count, sizeof *mine);
        for (int64_t i = 0; i < count; i++) mine[i] = rank + (double)i;
        fermata_protect_local(f, "mine", mine, FERMATA_DOUBLE, count);
        if (strcmp(argv[2], "mismatch") == 0 && rank == 1)
            fermata_protect_global(f, "more", &object, FERMATA_INT64, 1);
        if (strcmp(argv[2], "small") == 0) {
            int code = said(f, "restore", fermata_restore(f, &step));
            int right = code == FERMATA_OK && step == 5 && mine[count - 1] == rank + (double)(count - 1);
            if (rank == 0) printf("restored %d\n", right);
            if (code != FERMATA_OK && code != FERMATA_NOTHING) goto out; /* as any program should */
        }
        if (strcmp(argv[2], "hooks") == 0)
            said(f, "protect", fermata_protect_object(f, "object", &object, size_of, pack, unpack));
        int saved = said(f, "save", fermata_save(f, 5)) == FERMATA_OK;
        saved = said(f, "wait", fermata_wait(f)) == FERMATA_OK && saved;
        if (rank == 0) printf("saved %d\n", saved);
    }
out:
    said(NULL, "close", fermata_close(f));
    MPI_Finalize();
    return 0;
}
