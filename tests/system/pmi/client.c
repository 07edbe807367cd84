/* A client of PMIx alone, for what MPI does in one piece:
       client fence R     all enter a fence, but rank R ends by SIGKILL before, connected
       client modex       each asks the next rank directly for what it has put, without a fence
       client some        fences among the even ranks, beside one of all */
#include <pmix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pmix_proc_t me;

static void must(pmix_status_t status, const char* what) {
    if (status == PMIX_SUCCESS) return;
    printf("rank %u: %s: %s\n", me.rank, what, PMIx_Error_string(status));
    exit(9);
}

static void put(const char* key, const char* text) {
    pmix_value_t value;
    PMIX_VALUE_LOAD(&value, text, PMIX_STRING);
    must(PMIx_Put(PMIX_GLOBAL, key, &value), "put");
    must(PMIx_Commit(), "commit");
}

static void get(unsigned rank, const char* key, const char* text) {
    pmix_proc_t other;
    pmix_value_t* value;
    PMIX_LOAD_PROCID(&other, me.nspace, rank);
    must(PMIx_Get(&other, key, NULL, 0, &value), "get");
    if (strcmp(value->data.string, text) != 0) {
        printf("rank %u got %s of rank %u\n", me.rank, value->data.string, rank);
        exit(8);
    }
}

static void fence(pmix_proc_t* procs, size_t count) {
    pmix_info_t collect;
    bool yes = true;
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    must(PMIx_Fence(procs, count, &collect, 1), "fence");
}

int main(int argc, char** argv) {
    must(PMIx_Init(&me, NULL, 0), "init");
    unsigned size = (unsigned)atoi(getenv("OMPI_COMM_WORLD_SIZE"));
    char mine[32], theirs[32];
    if (strcmp(argv[1], "fence") == 0) {
        if (argc > 2 && me.rank == (unsigned)atoi(argv[2])) raise(SIGKILL);
        fence(NULL, 0);
    } else if (strcmp(argv[1], "modex") == 0) {
        unsigned next = (me.rank + 1) % size;
        sprintf(mine, "value of %u", me.rank);
        sprintf(theirs, "value of %u", next);
        if (me.rank == 1) usleep(300000); /* who asks has to wait */
        put("key", mine);
        get(next, "key", theirs);
        fence(NULL, 0);
    } else {
        pmix_proc_t even[64];
        size_t count = 0;
        for (unsigned rank = 0; rank < size; rank += 2, ++count)
            PMIX_LOAD_PROCID(&even[count], me.nspace, rank);
        for (int round = 0; round < 3; ++round) {
            char key[16];
            sprintf(key, "key%d", round);
            sprintf(mine, "%d of %u", round, me.rank);
            put(key, mine);
            if (me.rank % 2 == 0) fence(even, count);
            for (unsigned rank = 0; me.rank % 2 == 0 && rank < size; rank += 2) {
                sprintf(theirs, "%d of %u", round, rank);
                get(rank, key, theirs);
            }
        }
        fence(NULL, 0);
    }
    must(PMIx_Finalize(NULL, 0), "finalize");
    if (me.rank == 0) puts("done");
    return 0;
}
