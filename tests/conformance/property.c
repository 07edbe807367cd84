#include "cases.h"

static int copied, deleted;
#define COPY(Kind, Handle)                                                                           \
    static int copy_##Kind(Handle object, int keyval, void* extra, void* in, void* out, int* flag) { \
        (void)object, (void)keyval;                                                                  \
        *(void**)out = (char*)in + *(int*)extra;                                                     \
        return ++copied, *flag = 1, MPI_SUCCESS;                                                     \
    }                                                                                                \
    static int delete_##Kind(Handle object, int keyval, void* value, void* extra) {                  \
        return (void)object, (void)keyval, (void)value, (void)extra, ++deleted, MPI_SUCCESS;         \
    }
COPY(Comm, MPI_Comm)
COPY(Type, MPI_Datatype)
COPY(Win, MPI_Win)
static int refuse(MPI_Comm comm, int keyval, void* value, void* extra) {
    return (void)comm, (void)keyval, (void)value, (void)extra, MPI_ERR_OTHER;
}

#define TALLY SHOW1(copied), SHOW1(deleted)

void case_attributes(void) {
    static int extra = 8;
    int key, other, flag;
    void* value = NULL;
    long number;
    MPI_Comm comm, twin;
    MPI_Datatype type, second;
    MPI_Win win;
    PMPI_Comm_dup(WORLD, &comm);
    MPI_Comm_create_keyval(copy_Comm, delete_Comm, &key, &extra);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &other, NULL);
    MPI_Comm_set_attr(comm, key, (void*)100);
    MPI_Comm_set_attr(comm, other, (void*)200);
    MPI_Comm_get_attr(comm, key, &value, &flag);
    MPI_Comm_dup(comm, &twin), TALLY;
    MPI_Comm_get_attr(twin, key, &value, &flag);
    number = (long)value, SHOW1(number);
    MPI_Comm_get_attr(twin, other, &value, &flag);
    MPI_Comm_set_attr(comm, key, (void*)300), TALLY;
    MPI_Comm_delete_attr(comm, key), TALLY;
    MPI_Comm_get_attr(comm, key, &value, &flag);
    MPI_Comm_delete_attr(comm, key);
    MPI_Comm_free(&twin), TALLY;
    MPI_Comm_free_keyval(&key);
    MPI_Comm_set_attr(comm, key, (void*)1);
    MPI_Comm_free_keyval(&other);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, refuse, &key, NULL);
    MPI_Comm_set_attr(comm, key, (void*)1);
    MPI_Comm_delete_attr(comm, key);
    PMPI_Comm_free_keyval(&key);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_create_keyval(copy_Type, delete_Type, &key, &extra);
    MPI_Type_set_attr(type, key, (void*)5);
    MPI_Type_dup(type, &second);
    MPI_Type_get_attr(second, key, &value, &flag);
    number = (long)value, SHOW1(number);
    MPI_Type_delete_attr(type, key), TALLY;
    MPI_Type_free(&second), TALLY;
    MPI_Type_free_keyval(&key);
    MPI_Type_free(&type);
    if (MPI_Win_create_dynamic(MPI_INFO_NULL, WORLD, &win) == MPI_SUCCESS) {
        MPI_Win_create_keyval(copy_Win, delete_Win, &key, &extra);
        MPI_Win_set_attr(win, key, (void*)5);
        MPI_Win_get_attr(win, key, &value, &flag);
        MPI_Win_delete_attr(win, key), TALLY;
        MPI_Win_set_attr(win, key, (void*)6);
        MPI_Win_free_keyval(&key);
        MPI_Win_free(&win), TALLY;
    }
    const int predefined[] = {
        MPI_TAG_UB, MPI_WTIME_IS_GLOBAL, MPI_APPNUM, MPI_UNIVERSE_SIZE, MPI_LASTUSEDCODE, MPI_HOST, MPI_IO};
    for (size_t i = 0; i < sizeof predefined / sizeof *predefined; ++i) {
        MPI_Comm_get_attr(WORLD, predefined[i], &value, &flag);
        if (flag &&
            (predefined[i] == MPI_WTIME_IS_GLOBAL || predefined[i] == MPI_HOST || predefined[i] == MPI_IO))
            rec_number("value", "rank", *(int*)value);
    }
    MPI_Comm_set_attr(WORLD, MPI_TAG_UB, value);
    int large = MPI_Comm_get_attr(WORLD, MPI_TAG_UB, &value, &flag) == MPI_SUCCESS && *(int*)value >= 32767;
    SHOW1(large);
    PMPI_Comm_free(&comm);
}

void case_names(void) {
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Win win;
    MPI_Comm_get_name(WORLD, name, &length);
    MPI_Comm_get_name(MPI_COMM_SELF, name, &length);
    MPI_Comm_dup(WORLD, &comm);
    MPI_Comm_get_name(comm, name, &length);
    MPI_Comm_set_name(comm, "mine");
    MPI_Comm_get_name(comm, name, &length);
    MPI_Comm_free(&comm);
    MPI_Datatype some[] = {MPI_INT,    MPI_DOUBLE,           MPI_CHAR,          MPI_BYTE,
                           MPI_PACKED, MPI_LONG_LONG,        MPI_UNSIGNED_LONG, MPI_FLOAT_INT,
                           MPI_C_BOOL, MPI_INT32_T,          MPI_AINT,          MPI_OFFSET,
                           MPI_COUNT,  MPI_C_DOUBLE_COMPLEX, MPI_2INT};
    for (size_t i = 0; i < sizeof some / sizeof *some; ++i) MPI_Type_get_name(some[i], name, &length);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_get_name(type, name, &length);
    MPI_Type_set_name(type, "pair of numbers");
    MPI_Type_get_name(type, name, &length);
    MPI_Type_free(&type);
    if (MPI_Win_create_dynamic(MPI_INFO_NULL, WORLD, &win) == MPI_SUCCESS) {
        MPI_Win_set_name(win, "a window");
        MPI_Win_get_name(win, name, &length);
        MPI_Win_free(&win);
    }
    MPI_Comm_get_name(MPI_COMM_NULL, name, &length);
}

static int heard, heard_class;
static void on_comm(MPI_Comm* comm, int* code, ...) {
    (void)comm, ++heard, PMPI_Error_class(*code, &heard_class);
}
static void on_win(MPI_Win* win, int* code, ...) {
    (void)win, ++heard, PMPI_Error_class(*code, &heard_class);
}
static void on_file(MPI_File* file, int* code, ...) {
    (void)file, ++heard, PMPI_Error_class(*code, &heard_class);
}
#define HEARD SHOW1(heard), rec_number("class", "errclass", heard_class)

void case_errors(void) {
    MPI_Errhandler handler, got;
    MPI_Comm comm;
    MPI_Win win;
    MPI_File file;
    int class, code, flag, n = 0;
    char text[MPI_MAX_ERROR_STRING];
    void* value;
    const int known[] = {MPI_SUCCESS, MPI_ERR_BUFFER, MPI_ERR_COUNT,   MPI_ERR_TYPE,
                         MPI_ERR_TAG, MPI_ERR_COMM,   MPI_ERR_RANK,    MPI_ERR_OTHER,
                         MPI_ERR_WIN, MPI_ERR_FILE,   MPI_ERR_TRUNCATE};
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i) MPI_Error_class(known[i], &class);
    rec_off = 1; /* texts are the library's own */
    MPI_Error_string(MPI_ERR_RANK, text, &n);
    rec_off = 0;
    int said = n > 0;
    SHOW1(said);
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, "my own trouble");
    MPI_Error_string(code, text, &n);
    int mine;
    rec_off = 1;
    MPI_Error_class(code, &mine);
    rec_off = 0;
    mine = mine == class, SHOW1(mine);
    MPI_Comm_get_attr(WORLD, MPI_LASTUSEDCODE, &value, &flag);
    int last = *(int*)value >= code;
    SHOW1(last);
    MPI_Comm_dup(WORLD, &comm);
    MPI_Comm_create_errhandler(on_comm, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Comm_get_errhandler(comm, &got);
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&handler);
    MPI_Send(&n, 1, MPI_INT, size + 1, 0, comm), HEARD;
    MPI_Comm_call_errhandler(comm, MPI_ERR_TOPOLOGY), HEARD;
    MPI_Comm_call_errhandler(comm, code), SHOW1(heard);
    MPI_Comm twin;
    MPI_Comm_dup(comm, &twin);
    MPI_Send(&n, 1, MPI_INT, 0, -3, twin), HEARD; /* inherited */
    MPI_Comm_free(&twin);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_get_errhandler(comm, &got);
    MPI_Errhandler_free(&got);
    MPI_Comm_call_errhandler(comm, MPI_ERR_TAG), HEARD;
    MPI_Comm_free(&comm);
    if (MPI_Win_create_dynamic(MPI_INFO_NULL, WORLD, &win) == MPI_SUCCESS) {
        MPI_Win_create_errhandler(on_win, &handler);
        MPI_Win_set_errhandler(win, handler);
        MPI_Win_get_errhandler(win, &got);
        MPI_Errhandler_free(&got);
        MPI_Errhandler_free(&handler);
        MPI_Win_call_errhandler(win, MPI_ERR_ASSERT), HEARD;
        MPI_Win_free(&win);
    }
    char path[1000];
    snprintf(path, sizeof path, "%s/errors.%d", scratch, rank);
    MPI_File_get_errhandler(MPI_FILE_NULL, &got);
    MPI_Errhandler_free(&got);
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    MPI_File_create_errhandler(on_file, &handler);
    MPI_File_set_errhandler(file, handler);
    MPI_File_get_errhandler(file, &got);
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&handler);
    MPI_File_call_errhandler(file, MPI_ERR_QUOTA), HEARD;
    MPI_File_seek(file, -10, MPI_SEEK_SET), SHOW1(heard);
    MPI_File_close(&file);
    handler = MPI_ERRHANDLER_NULL;
    MPI_Errhandler_free(&handler);
    MPI_Comm_set_errhandler(MPI_COMM_NULL, MPI_ERRORS_RETURN);
    MPI_Remove_error_string(code), MPI_Remove_error_code(code), MPI_Remove_error_class(class);
}

void case_infos(void) {
    MPI_Info info, twin, env;
    char key[MPI_MAX_INFO_KEY + 1], value[100] = "";
    int n, flag, room = sizeof value;
    MPI_Info_create(&info);
    MPI_Info_set(info, "one", "1");
    MPI_Info_set(info, "two", "a b");
    MPI_Info_set(info, "one", "11");
    MPI_Info_get_nkeys(info, &n);
    MPI_Info_get_nthkey(info, 0, key);
    MPI_Info_get_nthkey(info, 1, key);
    MPI_Info_get_nthkey(info, 2, key);
    MPI_Info_get(info, "one", 99, value, &flag);
    MPI_Info_get(info, "two", 1, value, &flag);
    MPI_Info_get(info, "none", 99, value, &flag);
    MPI_Info_get_valuelen(info, "two", &n, &flag);
    SHOW1(n);
    if (MPI_Info_get_string(info, "two", &room, value, &flag) == MPI_SUCCESS) SHOW1(room);
    room = 2;
    if (MPI_Info_get_string(info, "two", &room, value, &flag) == MPI_SUCCESS) SHOW1(room);
    room = 0;
    if (MPI_Info_get_string(info, "two", &room, value, &flag) == MPI_SUCCESS) SHOW1(room);
    MPI_Info_dup(info, &twin);
    MPI_Info_delete(info, "one");
    MPI_Info_delete(info, "one");
    MPI_Info_get_nkeys(twin, &n);
    MPI_Info_free(&twin);
    MPI_Info_free(&info);
    MPI_Info_set(MPI_INFO_NULL, "a", "b");
    info = MPI_INFO_NULL;
    MPI_Info_free(&info);
    MPI_Info_get(MPI_INFO_ENV, "none at all", 99, value, &flag);
    if (MPI_Info_create_env(0, NULL, &env) == MPI_SUCCESS) MPI_Info_free(&env);
}

void case_environment(void) {
    int a, b, flag;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    void* memory;
    MPI_Initialized(&flag);
    MPI_Finalized(&flag);
    MPI_Query_thread(&a);
    MPI_Is_thread_main(&flag);
    MPI_Get_version(&a, &b);
    rec_off = 1;
    MPI_Get_library_version(text, &a);
    int said = a > 0;
    rec_off = 0;
    SHOW1(said);
    MPI_Get_processor_name(text, &a);
    double before = MPI_Wtime(), tick = MPI_Wtick();
    int sane = MPI_Wtime() >= before && tick > 0 && tick < 1;
    SHOW1(sane);
    MPI_Pcontrol(1);
    MPI_Alloc_mem(1000, MPI_INFO_NULL, &memory);
    memset(memory, 1, 1000);
    MPI_Free_mem(memory);
    MPI_Alloc_mem(-1, MPI_INFO_NULL, &memory);
    MPI_Info hardware;
    if (MPI_Get_hw_resource_info(&hardware) == MPI_SUCCESS) MPI_Info_free(&hardware);
}

void case_conversions(void) {
#ifdef OPEN_MPI /* functions there, macros in MPICH's mpi.h */
    MPI_Comm comm = MPI_Comm_f2c(MPI_Comm_c2f(WORLD));
    int same = comm == WORLD;
    SHOW1(same);
    MPI_Datatype type = MPI_Type_f2c(MPI_Type_c2f(MPI_DOUBLE));
    same = type == MPI_DOUBLE, SHOW1(same);
    MPI_Op op = MPI_Op_f2c(MPI_Op_c2f(MPI_MAX));
    same = op == MPI_MAX, SHOW1(same);
    MPI_Group group = MPI_Group_f2c(MPI_Group_c2f(MPI_GROUP_EMPTY));
    same = group == MPI_GROUP_EMPTY, SHOW1(same);
    MPI_Request request = MPI_Request_f2c(MPI_Request_c2f(MPI_REQUEST_NULL));
    same = request == MPI_REQUEST_NULL, SHOW1(same);
    MPI_Info info = MPI_Info_f2c(MPI_Info_c2f(MPI_INFO_NULL));
    same = info == MPI_INFO_NULL, SHOW1(same);
    MPI_Errhandler handler = MPI_Errhandler_f2c(MPI_Errhandler_c2f(MPI_ERRORS_RETURN));
    same = handler == MPI_ERRORS_RETURN, SHOW1(same);
    MPI_Win win = MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL));
    same = win == MPI_WIN_NULL, SHOW1(same);
    MPI_Message message = MPI_Message_f2c(MPI_Message_c2f(MPI_MESSAGE_NO_PROC));
    same = message == MPI_MESSAGE_NO_PROC, SHOW1(same);
    PMPI_Comm_dup(WORLD, &comm);
    same = MPI_Comm_f2c(MPI_Comm_c2f(comm)) == comm, SHOW1(same);
    PMPI_Comm_free(&comm);
#else
    int same;
#endif
    MPI_File file = MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL));
    same = file == MPI_FILE_NULL, SHOW1(same);
    MPI_Status status, back;
    MPI_Fint fortran[40];
    int n = 0;
    PMPI_Sendrecv(&rank, 1, MPI_INT, rank, 1, &n, 1, MPI_INT, rank, 1, WORLD, &status);
    MPI_Status_c2f(&status, fortran);
    MPI_Status_f2c(fortran, &back);
    PMPI_Get_count(&back, MPI_INT, &n);
    SHOW1(n), SHOW1(back.MPI_TAG);
}

void case_removed(void) {
    /* MPI-1's, gone since MPI-3.0; and those deprecated since MPI-2.0 */
    int key, flag, array[4], lengths[2] = {1, 2};
    void* value;
    MPI_Aint a, b, places[2] = {0, 16};
    MPI_Datatype type, kinds[2] = {MPI_INT, MPI_INT};
    MPI_Errhandler handler, got;
    MPI_Keyval_create(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, &key, NULL);
    MPI_Attr_put(MPI_COMM_SELF, key, array);
    MPI_Attr_get(MPI_COMM_SELF, key, &value, &flag);
    MPI_Attr_delete(MPI_COMM_SELF, key);
    MPI_Keyval_free(&key);
    if (MPI_Address(array, &a) != MPI_SUCCESS) return;
    MPI_Address(array + 1, &b);
    a = b - a, SHOW1(a);
    MPI_Type_hvector(2, 1, 8, MPI_INT, &type);
    MPI_Type_extent(type, &a), MPI_Type_lb(type, &a), MPI_Type_ub(type, &a);
    MPI_Type_free(&type);
    MPI_Type_hindexed(2, lengths, places, MPI_INT, &type);
    MPI_Type_extent(type, &a);
    MPI_Type_free(&type);
    MPI_Type_struct(2, lengths, places, kinds, &type);
    MPI_Type_extent(type, &a);
    MPI_Type_free(&type);
    MPI_Errhandler_create((void*)on_comm, &handler);
    MPI_Errhandler_get(MPI_COMM_SELF, &got);
    MPI_Errhandler_set(MPI_COMM_SELF, handler);
    MPI_Errhandler_set(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}
