/* An array of three dimensions, divided by a drawing from SEED, saved or restored; each element knows its own
 * value.
 *
 *     grid save|check DIRECTORY HOW[+HOW…] SEED [OPTIONS]
 *
 * HOW: block, cyclic, random (several boxes a rank), planes; several, one after the other.
 */
#include <fermata/fermata.h>
#include <stdio.h>
#include <string.h>

enum { kDimensions = 3 };
static const int64_t kGlobal[kDimensions] = {13, 24, 10};
static int rank, size;

static double value_of(int64_t x, int64_t y, int64_t z) {
    return 1e6 * (double)x + 1e3 * (double)y + (double)z + 0.25;
}

struct box {
    int64_t offset[kDimensions], extent[kDimensions], stride[kDimensions];
    double* data;
};

static int64_t elements(const struct box* b) { return b->extent[0] * b->extent[1] * b->extent[2]; }

/* fill: puts the values in; else counts those that are wrong. */
static int64_t each(struct box* b, int fill) {
    int64_t wrong = 0, at = 0;
    for (int64_t i = 0; i < b->extent[0]; i++)
        for (int64_t j = 0; j < b->extent[1]; j++)
            for (int64_t k = 0; k < b->extent[2]; k++, at++) {
                double v = value_of(b->offset[0] + i * b->stride[0], b->offset[1] + j * b->stride[1],
                                    b->offset[2] + k * b->stride[2]);
                if (fill)
                    b->data[at] = v;
                else
                    wrong += b->data[at] != v;
            }
    return wrong;
}

/* A rank's share of [0, n) when `parts` share it and this is number `me`. */
static void share(int64_t n, int64_t parts, int64_t me, int64_t* offset, int64_t* extent) {
    *offset = n * me / parts;
    *extent = n * (me + 1) / parts - *offset;
}

static uint64_t state;
static int64_t draw(int64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)below);
}

/* Cuts of the whole into boxes, dealt to the ranks; all ranks draw the same. */
static int random_boxes(struct box* mine, int most) {
    struct box all[32];
    int count = 1, got = 0;
    for (int d = 0; d < kDimensions; d++)
        all[0].offset[d] = 0, all[0].extent[d] = kGlobal[d], all[0].stride[d] = 1;
    while (count < 12) {
        int which = (int)draw(count), d = (int)draw(kDimensions);
        if (all[which].extent[d] < 2) continue;
        int64_t cut = 1 + draw(all[which].extent[d] - 1);
        all[count] = all[which];
        all[count].offset[d] += cut;
        all[count].extent[d] -= cut;
        all[which].extent[d] = cut;
        count++;
    }
    for (int i = 0; i < count; i++)
        if (draw(size) == rank && got < most) mine[got++] = all[i];
    return got;
}

static int boxes(struct box* mine, int most, const char* how) {
    for (int d = 0; d < kDimensions; d++)
        mine[0].offset[d] = 0, mine[0].extent[d] = kGlobal[d], mine[0].stride[d] = 1;
    if (strcmp(how, "random") == 0) return random_boxes(mine, most);
    if (strcmp(how, "block") == 0) share(kGlobal[1], size, rank, &mine[0].offset[1], &mine[0].extent[1]);
    if (strcmp(how, "planes") == 0) share(kGlobal[0], size, rank, &mine[0].offset[0], &mine[0].extent[0]);
    if (strcmp(how, "cyclic") == 0) { /* along y */
        mine[0].offset[1] = rank;
        mine[0].stride[1] = size;
        mine[0].extent[1] = rank < kGlobal[1] ? (kGlobal[1] - rank + size - 1) / size : 0;
    }
    return 1;
}

static int failed(fermata_handle* f, const char* what, int code) {
    if (code == FERMATA_OK) return 0;
    printf("rank %d: %s: %d %s\n", rank, what, code, fermata_message(f));
    return 1;
}

/* Saves, or restores and compares, with one distribution. */
static int once(char** argv, const char* options, const char* how) {
    int saving = strcmp(argv[1], "save") == 0;
    state = strtoull(argv[4], NULL, 10) * 2 + 1;
    for (int i = 0; i < 8; i++) draw(2);
    fermata_handle* f;
    int bad = fermata_open(&f, MPI_COMM_WORLD, argv[2], options);
    if (failed(f, "open", bad)) return 1;
    struct box mine[32];
    int count = boxes(mine, 32, how);
    static const int64_t none[kDimensions];
    /* A rank may have nothing. */
    bad |=
        failed(f, "protect",
               fermata_protect_array(f, "psi", NULL, FERMATA_DOUBLE, kDimensions, kGlobal, none, none, NULL));
    for (int i = 0; i < count; i++) {
        mine[i].data = calloc((size_t)elements(&mine[i]) + 1, sizeof(double));
        if (saving) each(&mine[i], 1);
        bad |=
            failed(f, "add",
                   fermata_add_part(f, "psi", mine[i].data, mine[i].offset, mine[i].extent, mine[i].stride));
    }
    int64_t step = 0;
    double time = saving ? 0.125 : 0;
    bad |= failed(f, "time", fermata_protect_global(f, "time", &time, FERMATA_DOUBLE, 1));
    if (saving) {
        bad |= failed(f, "save", fermata_save(f, 41));
        time = -1;
        for (int i = 0; i < count; i++)
            memset(mine[i].data, 0xee, (size_t)elements(&mine[i]) * sizeof(double));
    } else {
        bad |= failed(f, "restore", fermata_restore(f, &step));
        int64_t wrong = step != 41 || time != 0.125, all = 0;
        for (int i = 0; i < count; i++) wrong += each(&mine[i], 0);
        MPI_Allreduce(&wrong, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0) printf("%lld wrong\n", (long long)all);
        bad |= all != 0;
    }
    bad |= failed(f, "close", fermata_close(f));
    for (int i = 0; i < count; i++) free(mine[i].data);
    return bad;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int bad = 0;
    for (char* how = strtok(argv[3], "+"); how; how = strtok(NULL, "+"))
        bad |= once(argv, argc > 5 ? argv[5] : NULL, how);
    MPI_Finalize();
    return bad;
}
