/* Calls every MPI function and writes what came back: `conformance PREFIX SCRATCH [CASE]…`. PREFIX.log.RANK
 * is compared between a native run and one under Fermata by conformance_test.py. */
#include "cases.h"

int rank, size, left, right, peer;
const char* scratch;

static const struct {
    const char* name;
    void (*run)(void);
    int styles;
} cases[] = {
#define ROW(name, styles) {#name, case_##name, styles},
    CASES(ROW)
#undef ROW
};

static int wanted(const char* name, int argc, char** argv) {
    for (int i = 3; i < argc; ++i)
        if (strcmp(argv[i], name) == 0) return 1;
    return argc <= 3;
}

int main(int argc, char** argv) {
    if (argc < 3) return fprintf(stderr, "conformance PREFIX SCRATCH [CASE]...\n"), 2;
    rec_constants();
    MPI_Init(&argc, &argv);
    PMPI_Comm_rank(WORLD, &rank);
    PMPI_Comm_size(WORLD, &size);
    PMPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    PMPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    rec_nulls_from_environment(rank);
    right = (rank + 1) % size, left = (rank + size - 1) % size;
    peer = rank ^ 1;
    if (peer >= size) peer = MPI_PROC_NULL;
    scratch = argv[2];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        if (!wanted(cases[i].name, argc, argv)) continue;
        for (rec_mode = 0; rec_mode < (cases[i].styles == STYLES ? REC_MODES : 1); ++rec_mode) {
            char title[100];
            snprintf(title, sizeof title, "%s %s", cases[i].name, rec_mode_names[rec_mode]);
            rec_section(title);
            if (getenv("CONFORMANCE_LOUD")) fprintf(stderr, "rank %d: %s\n", rank, title);
            cases[i].run();
            PMPI_Barrier(WORLD);
        }
        rec_mode = REC_PLAIN;
    }
    rec_section("the end");
    MPI_Finalize();
    int flag;
    MPI_Finalized(&flag);
    rec_write(argv[1], rank);
    if (rank == 0) printf("conformance: all cases called\n");
    return 0;
}
