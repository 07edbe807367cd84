#include "cases.h"

enum { N = 6 };
static char path[1000];
static int out[N], in[N];

static MPI_File open_file(void) {
    MPI_File file;
    snprintf(path, sizeof path, "%s/file", scratch);
    MPI_File_open(WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, 0);
    for (int i = 0; i < N; ++i) out[i] = 1000 * rank + i, in[i] = -1;
    return file;
}

static void moved(MPI_Status* status) {
    int bytes;
    PMPI_Get_count(status, MPI_BYTE, &bytes);
    SHOW1(bytes);
}

static void clear(void) {
    for (int i = 0; i < N; ++i) in[i] = -1;
}

void case_files(void) {
    MPI_File file = open_file();
    MPI_Status status;
    MPI_Request request;
    MPI_Offset bytes, at = rank * N * 4;
    MPI_File_write_at(file, at, out, N, MPI_INT, &status);
    PMPI_Barrier(WORLD);
    MPI_File_sync(file);
    PMPI_Barrier(WORLD);
    MPI_File_read_at(file, right * N * 4, in, N, MPI_INT, &status), SHOW(in), clear();
    if (rec_mode < REC_NONBLOCKING) /* over the end; MPI_File_iread_at of Open MPI 4.1.4 never comes back */
        MPI_File_read_at(file, size * N * 4 - 8, in, N, MPI_INT, &status), SHOW(in), clear();
    PMPI_Barrier(WORLD);
    MPI_File_write_at_all(file, at + size * N * 4, out, N, MPI_INT, &status);
    MPI_File_read_at_all(file, at + size * N * 4, in, N, MPI_INT, &status), SHOW(in), clear();
    PMPI_Barrier(WORLD);
    MPI_File_get_size(file, &bytes);
    MPI_File_iwrite_at(file, at, out, N - 1, MPI_INT, &request), MPI_Wait(&request, &status), moved(&status);
    MPI_File_iread_at(file, at, in, N, MPI_INT, &request), MPI_Wait(&request, &status), moved(&status),
        SHOW(in), clear();
    MPI_File_iwrite_at_all(file, at, out, N - 1, MPI_INT, &request), MPI_Wait(&request, &status),
        moved(&status);
    MPI_File_iread_at_all(file, at, in, N, MPI_INT, &request), MPI_Wait(&request, &status), moved(&status),
        SHOW(in), clear();
#ifndef OPEN_MPI /* which tries for ever */
    MPI_File_read_at(file, -4, in, 1, MPI_INT, &status);
#endif
    MPI_File_close(&file);
    PMPI_Barrier(WORLD);
    if (rank == 0) MPI_File_delete(path, MPI_INFO_NULL);
    if (rank == 0) MPI_File_delete(path, MPI_INFO_NULL);
    PMPI_Barrier(WORLD);
    MPI_File_open(WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file); /* not there */
}

void case_file_pointers(void) {
    MPI_File file = open_file();
    MPI_Status status;
    MPI_Request request;
    MPI_Offset at;
    MPI_Datatype every;
    PMPI_Barrier(WORLD);
    /* a view: each rank its own numbers, in turns */
    PMPI_Type_create_resized(MPI_INT, 0, 4 * size,
                             &every); /* ROMIO of MPICH 4.0.2 cannot read what _c made */
    PMPI_Type_commit(&every);
    MPI_File_set_view(file, rank * 4, MPI_INT, every, "native", MPI_INFO_NULL);
    MPI_File_write(file, out, 2, MPI_INT, &status);
    MPI_File_write_all(file, out + 2, 2, MPI_INT, &status);
    MPI_File_get_position(file, &at);
    MPI_File_iwrite(file, out + 4, 1, MPI_INT, &request), MPI_Wait(&request, &status), moved(&status);
    MPI_File_iwrite_all(file, out + 5, 1, MPI_INT, &request), MPI_Wait(&request, &status), moved(&status);
    MPI_File_seek(file, 1, MPI_SEEK_SET);
    MPI_File_get_byte_offset(file, 1, &at);
    MPI_File_read(file, in, 1, MPI_INT, &status);
    MPI_File_read_all(file, in + 1, 1, MPI_INT, &status);
    MPI_File_iread(file, in + 2, 1, MPI_INT, &request), MPI_Wait(&request, &status), moved(&status);
    MPI_File_iread_all(file, in + 3, 1, MPI_INT, &request), MPI_Wait(&request, &status), moved(&status);
    SHOW(in), clear();
    MPI_File_seek(file, -1, MPI_SEEK_CUR);
    MPI_File_get_position(file, &at);
    MPI_File_seek(file, 0, MPI_SEEK_END);
    MPI_File_get_position(file, &at);
    MPI_File_seek(file, 0, 77);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_read_at(file, 0, in, N, MPI_INT, &status), SHOW(in), clear();
    /* the shared pointer */
    PMPI_Barrier(WORLD);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_write_ordered(file, out, 2, MPI_INT, &status);
    MPI_File_get_position_shared(file, &at);
    PMPI_Barrier(WORLD);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_ordered(file, in, 2, MPI_INT, &status), SHOW(in), clear();
    for (int turn = 0; turn < size; ++turn) {
        PMPI_Barrier(WORLD);
        if (turn != rank) continue;
        MPI_File_write_shared(file, out + 2, 1, MPI_INT, &status);
        MPI_File_iwrite_shared(file, out + 3, 1, MPI_INT, &request), MPI_Wait(&request, &status),
            moved(&status);
    }
    PMPI_Barrier(WORLD);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    for (int turn = 0; turn < size; ++turn) {
        PMPI_Barrier(WORLD);
        if (turn != rank) continue;
        MPI_File_read_shared(file, in, 1, MPI_INT, &status);
        MPI_File_iread_shared(file, in + 1, 1, MPI_INT, &request), MPI_Wait(&request, &status),
            moved(&status);
    }
    SHOW(in), clear();
    PMPI_Barrier(WORLD);
    MPI_Type_free(&every);
    MPI_File_close(&file);
    if (rank == 0) PMPI_File_delete(path, MPI_INFO_NULL);
    PMPI_Barrier(WORLD);
}

static int from_file(void* user, MPI_Datatype type, int count, void* file, MPI_Offset at, void* extra) {
    (void)type, (void)extra;
    for (int i = 0; i < count; ++i) ((int*)user)[at + i] = ~((int*)file)[i];
    return MPI_SUCCESS;
}
static int to_file(void* user, MPI_Datatype type, int count, void* file, MPI_Offset at, void* extra) {
    (void)type, (void)extra;
    for (int i = 0; i < count; ++i) ((int*)file)[i] = ~((int*)user)[at + i];
    return MPI_SUCCESS;
}
static int extent_in_file(MPI_Datatype type, MPI_Aint* extent, void* extra) {
    MPI_Aint lb;
    (void)extra;
    return PMPI_Type_get_extent(type, &lb, extent);
}

void case_file_properties(void) {
    MPI_File file = open_file();
    MPI_Group group;
    MPI_Info info;
    MPI_Datatype etype, filetype;
    MPI_Offset at;
    MPI_Aint extent;
    MPI_Count wide;
    char datarep[MPI_MAX_DATAREP_STRING];
    int n;
    MPI_File_get_amode(file, &n);
    MPI_File_get_group(file, &group);
    MPI_Group_size(group, &n);
    MPI_Group_free(&group);
    MPI_File_get_atomicity(file, &n);
    MPI_File_set_atomicity(file, 1);
    MPI_File_get_atomicity(file, &n);
    MPI_File_preallocate(file, 100);
    MPI_File_get_size(file, &at);
    PMPI_Barrier(WORLD);
    MPI_File_set_size(file, 40);
    MPI_File_get_size(file, &at);
    MPI_File_get_type_extent(file, MPI_DOUBLE, &extent);
    MPI_File_get_type_extent_c(file, MPI_DOUBLE, &wide);
    MPI_File_get_view(file, &at, &etype, &filetype, datarep);
    MPI_File_set_info(file, MPI_INFO_NULL);
    MPI_File_get_info(file, &info);
    MPI_Info_free(&info);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "no such representation", MPI_INFO_NULL);
    MPI_Register_datarep("conformance", from_file, to_file, extent_in_file, NULL);
    MPI_Register_datarep("conformance", from_file, to_file, extent_in_file, NULL); /* twice */
    MPI_Register_datarep_c("conformance c", NULL, NULL, (void*)extent_in_file, NULL);
    MPI_File_close(&file);
    if (rank == 0) PMPI_File_delete(path, MPI_INFO_NULL);
    file = MPI_FILE_NULL;
    MPI_File_close(&file);
    MPI_File_get_size(MPI_FILE_NULL, &at);
    PMPI_Barrier(WORLD);
}

/* Several requests of one process at once: MPICH's MPI_Testall, which waits may be made of, ends them twice.
 */
void case_file_requests(void) {
    enum { BLOCKS = 4, BLOCK = 4000, ROUNDS = 100 };
    static int data[BLOCKS][BLOCK], back[BLOCKS][BLOCK];
    MPI_Request requests[BLOCKS];
    MPI_File file;
    int wrong = 0;
    snprintf(path, sizeof path, "%s/requests", scratch);
    PMPI_File_open(WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int round = 0; round < ROUNDS; ++round) {
        const MPI_Offset at = (MPI_Offset)sizeof data * rank;
        for (int i = 0; i < BLOCKS; ++i) {
            for (int j = 0; j < BLOCK; ++j) data[i][j] = round + i * BLOCK + j;
            PMPI_File_iwrite_at(file, at + (MPI_Offset)sizeof *data * i, data[i], BLOCK, MPI_INT,
                                &requests[i]);
        }
        PMPI_Waitall(BLOCKS, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < BLOCKS; ++i)
            PMPI_File_iread_at(file, at + (MPI_Offset)sizeof *data * i, back[i], BLOCK, MPI_INT,
                               &requests[i]);
        PMPI_Waitall(BLOCKS, requests, MPI_STATUSES_IGNORE);
        wrong += memcmp(data, back, sizeof data) != 0;
    }
    SHOW1(wrong);
    PMPI_File_close(&file);
}

/* Several non-blocking collectives of one file at once, through one rank with a small buffer: MPICH's ROMIO
 * spoils them when they are tested in turns (MPICH's test io/i_aggregation1). */
void case_files_at_once(void) {
    enum { BLOCKS = 8, BLOCK = 1 << 16 };
    static int data[BLOCKS][BLOCK], back[BLOCKS][BLOCK];
    MPI_Request requests[BLOCKS];
    MPI_Status statuses[BLOCKS];
    MPI_File file;
    MPI_Info info;
    int wrong = 0;
    PMPI_Info_create(&info);
    PMPI_Info_set(info, "romio_cb_write", "enable");
    PMPI_Info_set(info, "romio_no_indep_rw", "1");
    PMPI_Info_set(info, "cb_nodes", "1");
    PMPI_Info_set(info, "cb_buffer_size", "300000");
    snprintf(path, sizeof path, "%s/many", scratch);
    PMPI_File_open(WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file);
    for (int reading = 0; reading < 2; ++reading) {
        for (int i = 0; i < BLOCKS; ++i) {
            const MPI_Offset at = (MPI_Offset)sizeof *data * (rank * BLOCKS + i);
            if (reading) {
                MPI_File_iread_at_all(file, at, back[i], BLOCK, MPI_INT, &requests[i]);
                continue;
            }
            for (int j = 0; j < BLOCK; ++j) data[i][j] = j + 1000000 * (rank * BLOCKS + i);
            MPI_File_iwrite_at_all(file, at, data[i], BLOCK, MPI_INT, &requests[i]);
        }
        MPI_Waitall(BLOCKS, requests, statuses);
    }
    for (int i = 0; i < BLOCKS; ++i) wrong += memcmp(data[i], back[i], sizeof *data) != 0;
    SHOW1(wrong);
    PMPI_File_close(&file);
    PMPI_Info_free(&info);
}

/* What a sequential file refuses, and where its views begin. MPICH refuses more. */
void case_file_sequential(void) {
    MPI_File file;
    MPI_Status status;
    MPI_Request request;
    MPI_Offset at, start = -1;
    MPI_Datatype elementary, filetype;
    char representation[MPI_MAX_DATAREP_STRING];
    int amode;
    snprintf(path, sizeof path, "%s/sequential", scratch);
    for (int i = 0; i < N; ++i) out[i] = 1000 * rank + i;
    MPI_File_open(WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file);
    MPI_File_open(WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file);
    MPI_File_get_amode(file, &amode);
    MPI_File_write_ordered(file, out, N, MPI_INT, &status);
    MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_get_view(file, &start, &elementary, &filetype, representation);
    MPI_File_write_ordered(file, out, 2, MPI_INT, &status);
    PMPI_Barrier(WORLD); /* a rank may be through before the next has written */
    MPI_File_get_size(file, &at);
#ifndef OPEN_MPI /* which moves its pointers, as elsewhere */
    MPI_File_get_position_shared(file, &at);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_write(file, out, 1, MPI_INT, &status);
    MPI_File_write_at(file, 0, out, 1, MPI_INT, &status);
    MPI_File_write_all(file, out, 1, MPI_INT, &status);
    MPI_File_iwrite(file, out, 1, MPI_INT, &request);
    MPI_File_read(file, in, 1, MPI_INT, &status);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_set_size(file, 0);
#endif
    MPI_File_close(&file);
}
