/* Cases of `trap`: a non-blocking request of every kind on files, begun before the checkpoint and waited for
 * after it; and what a file gives out: its hints, group, view and error handler. */
#define HOLD_ELSEWHERE
#include "held.h"

enum { WORDS = 4, REGION = 16, COLLECTIVE = 4, SHARED = 2 };

static int heard;
static void on_file(MPI_File* file, int* code, ...) { (void)file, (void)code, ++heard; }

/* A word says by whom and where it was written. */
static int word(int who, int at) { return 1000 * (who + 1) + at; }

static MPI_File filled(const char* kind, int number) {
    char name[40];
    int out[REGION];
    MPI_File file;
    snprintf(name, sizeof name, "held_%s.%d.dat", kind, number);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, 0);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    for (int i = 0; i < REGION; ++i) out[i] = word(rank, i);
    MPI_File_write_at_all(file, REGION * rank, out, REGION, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    return file;
}

static int sum_of(const int* words, int n) {
    int mine = 0, all;
    for (int i = 0; i < n; ++i) mine += words[i];
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

void held_file_requests(void) {
    static int got[6][WORDS], out[6][WORDS], back[WORDS], pairs[4];
    MPI_Request own[4], together[COLLECTIVE], shared_ones[SHARED];
    MPI_File alone, all[COLLECTIVE], shared[SHARED];
    MPI_Info hints;
    MPI_Group group;
    MPI_Datatype pair, every, elementary, filetype;
    MPI_Errhandler handler, kept;
    MPI_Offset at, start;
    MPI_Status status;
    char representation[MPI_MAX_DATAREP_STRING];
    int n, base;
    begin();
    base = REGION * rank;
    for (int k = 0; k < 6; ++k)
        for (int i = 0; i < WORDS; ++i) got[k][i] = -1, out[k][i] = -word(rank, 100 * k + i);
    alone = filled("alone", 0);
    for (int i = 0; i < COLLECTIVE; ++i) all[i] = filled("all", i);
    for (int i = 0; i < SHARED; ++i) shared[i] = filled("shared", i);

    MPI_File_get_info(alone, &hints);
    MPI_File_get_group(alone, &group);
    MPI_File_create_errhandler(on_file, &handler);
    MPI_File_set_errhandler(alone, handler);
    MPI_File_get_errhandler(alone, &kept);
    /* Pairs of words, every second of them, in a view that is taken back before anything is read with it. */
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_create_resized(pair, 0, 16, &every);
    MPI_Type_commit(&pair), MPI_Type_commit(&every);
    MPI_File_set_view(alone, 8, pair, every, "native", MPI_INFO_NULL);
    MPI_File_get_view(alone, &start, &elementary, &filetype, representation);
    CHECK(start == 8);
    MPI_File_set_view(alone, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_Type_free(&pair), MPI_Type_free(&every);

    MPI_File_iread_at(alone, base, got[0], WORDS, MPI_INT, &own[0]);
    MPI_File_iwrite_at(alone, base + 4, out[0], WORDS, MPI_INT, &own[1]);
    MPI_File_seek(alone, base + 8, MPI_SEEK_SET);
    MPI_File_iread(alone, got[1], WORDS, MPI_INT, &own[2]);
    MPI_File_iwrite(alone, out[1], WORDS, MPI_INT, &own[3]);
    for (int i = 0; i < COLLECTIVE; ++i) MPI_File_seek(all[i], base + 4, MPI_SEEK_SET);
    MPI_File_iread_shared(shared[0], got[4], WORDS, MPI_INT, &shared_ones[0]);
    MPI_File_iwrite_shared(shared[1], out[4], WORDS, MPI_INT, &shared_ones[1]);
    /* A checkpoint waits until all members have begun these, as for blocking ones. */
    MPI_File_iread_all(all[0], got[2], WORDS, MPI_INT, &together[0]);
    MPI_File_iwrite_all(all[1], out[2], WORDS, MPI_INT, &together[1]);
    MPI_File_iread_at_all(all[2], base + 12, got[3], WORDS, MPI_INT, &together[2]);
    MPI_File_iwrite_at_all(all[3], base + 12, out[3], WORDS, MPI_INT, &together[3]);
    hold();
    MPI_Waitall(4, own, MPI_STATUSES_IGNORE);
    for (int i = 0; i < COLLECTIVE; ++i) {
        MPI_Wait(&together[i], &status);
        MPI_Get_count(&status, MPI_INT, &n);
        CHECK(n == WORDS);
    }
    MPI_Waitall(SHARED, shared_ones, MPI_STATUSES_IGNORE);

    for (int i = 0; i < WORDS; ++i) {
        CHECK(got[0][i] == word(rank, i) && got[1][i] == word(rank, 8 + i));
        CHECK(got[2][i] == word(rank, 4 + i) && got[3][i] == word(rank, 12 + i));
    }
    MPI_File_get_position(alone, &at);
    CHECK(at == base + 16);
    const struct {
        MPI_File file;
        int at;
        const int* want;
    } written[] = {{alone, 4, out[0]}, {alone, 12, out[1]}, {all[1], 4, out[2]}, {all[3], 12, out[3]}};
    for (int i = 0; i < 4; ++i) {
        MPI_File_read_at(written[i].file, base + written[i].at, back, WORDS, MPI_INT, MPI_STATUS_IGNORE);
        CHECK(memcmp(back, written[i].want, sizeof back) == 0);
    }
    /* Of the shared pointers: who came first nobody knows; together they have read and written one run, and
     * go on behind it. */
    MPI_File_read_at_all(shared[1], WORDS * rank, got[5], WORDS, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(sum_of(got[5], WORDS) == sum_of(out[4], WORDS));
    base = 0;
    for (int i = 0; i < WORDS * size; ++i) base += word(i / REGION, i % REGION);
    CHECK(sum_of(got[4], WORDS) == base);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_ordered(shared[0], back, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(back[0] == word((WORDS * size + rank) / REGION, (WORDS * size + rank) % REGION));

    MPI_Info_get_nkeys(hints, &n);
    MPI_Info_free(&hints);
    MPI_Group_size(group, &n);
    CHECK(n == size);
    MPI_Group_free(&group);
    heard = 0;
    MPI_File_call_errhandler(alone, MPI_ERR_IO);
    MPI_File_set_errhandler(all[0], kept);
    MPI_File_call_errhandler(all[0], MPI_ERR_IO);
    CHECK(heard == 2);
    MPI_Errhandler_free(&handler), MPI_Errhandler_free(&kept);
    MPI_File_set_view(alone, 8, elementary, filetype, representation, MPI_INFO_NULL);
    MPI_File_read_at(alone, 4 * rank, pairs, 4, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(pairs[0] == word(rank, 2) && pairs[1] == word(rank, 3));
    CHECK(pairs[2] == out[0][2] && pairs[3] == out[0][3]);
    MPI_Type_free(&elementary), MPI_Type_free(&filetype);

    MPI_File_close(&alone);
    for (int i = 0; i < COLLECTIVE; ++i) MPI_File_close(&all[i]);
    for (int i = 0; i < SHARED; ++i) MPI_File_close(&shared[i]);
    hash_bytes(got, sizeof got[0] * 4);
}

/* Sequential files have the shared pointer only, and a view that begins where it stands: one that is written,
 * one that is read. */
void held_sequential(void) {
    MPI_File file, input;
    MPI_Datatype pair;
    MPI_Offset start = -1;
    MPI_Datatype elementary, filetype;
    MPI_Request request;
    char representation[MPI_MAX_DATAREP_STRING];
    int out[4], in[2], all[4 * REGION];
    begin();
    for (int i = 0; i < 4; ++i) out[i] = word(rank, i);
    input = filled("input", 0);
    MPI_File_close(&input);
    MPI_File_open(MPI_COMM_WORLD, "held_input.0.dat", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL,
                  &input);
    if (rank == 0) MPI_File_delete("held_sequential.dat", MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_open(MPI_COMM_WORLD, "held_sequential.dat",
                  MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file);
    MPI_File_write_ordered(file, out, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, pair, "native", MPI_INFO_NULL);
    MPI_File_get_view(file, &start, &elementary, &filetype, representation);
    CHECK(start == 4 * size);
    MPI_Type_free(&filetype), MPI_Type_free(&pair);
    MPI_File_write_ordered(file, &out[1], 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_ordered(input, in, 2 * (int)sizeof(int), MPI_BYTE, MPI_STATUS_IGNORE);
    if (rank == size - 1) MPI_File_iread_shared(input, &in[1], 1 * (int)sizeof(int), MPI_BYTE, &request);
    hold();
    if (rank == size - 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in[0] == word(2 * rank / REGION, 2 * rank % REGION));
    CHECK(in[1] == (rank == size - 1 ? word(2 * size / REGION, 2 * size % REGION)
                                     : word((2 * rank + 1) / REGION, (2 * rank + 1) % REGION)));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_ordered(input, in, (int)sizeof(int), MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(in[0] == word((2 * size + 1 + rank) / REGION, (2 * size + 1 + rank) % REGION));
    MPI_File_write_ordered(file, &out[3], 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_File_close(&input);
    MPI_File_open(MPI_COMM_WORLD, "held_sequential.dat", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_File_get_size(file, &start);
    CHECK(start == 16 * size);
    MPI_File_read_at_all(file, 0, all, 16 * size, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int i = 0; i < size; ++i) {
        CHECK(all[i] == word(i, 0) && all[3 * size + i] == word(i, 3));
        CHECK(all[size + 2 * i] == word(i, 1) && all[size + 2 * i + 1] == word(i, 2));
    }
    MPI_File_close(&file);
    hash_bytes(all, sizeof(int) * 4 * (size_t)size);
}
