/* MPI_T over a checkpoint: a case of `trap`. What a tool holds - indices, handles, an enumeration, a session
 * - and what it wrote is there afterwards where the library has a variable of that name; elsewhere it is told
 * so. */
#define HOLD_ELSEWHERE
#include "synchronous.h"

enum { TEXT = 4096, MANY = 4096 };
static char names[MANY][128];

static const char* library(void) { /* of now: a restart may change it */
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(text, &length);
    return strstr(text, "Open MPI") ? "openmpi" : "mpich";
}

static int info_of(int index, char* name, MPI_Datatype* type, MPI_T_enum* kind, int* bind, int* scope) {
    char text[TEXT];
    int name_length = 128, text_length = TEXT, verbosity;
    return MPI_T_cvar_get_info(index, name, &name_length, &verbosity, type, kind, text, &text_length, bind,
                               scope);
}

/* Sets a harmless one of the library that is there now; its index. */
static int set_one(int value) {
    const char* name = strcmp(library(), "openmpi") == 0 ? "coll_tuned_bcast_algorithm_chain_fanout"
                                                         : "MPIR_CVAR_GATHER_INTER_SHORT_MSG_SIZE";
    char found[128];
    MPI_Datatype type;
    MPI_T_enum kind;
    MPI_T_cvar_handle handle;
    int index = -1, bind, scope, count, got = 0;
    CHECK(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS);
    CHECK(info_of(index, found, &type, &kind, &bind, &scope) == MPI_SUCCESS && strcmp(found, name) == 0);
    CHECK(type == MPI_INT && bind == MPI_T_BIND_NO_OBJECT && kind == MPI_T_ENUM_NULL);
    CHECK(scope != MPI_T_SCOPE_CONSTANT && scope != MPI_T_SCOPE_READONLY);
    CHECK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS && count == 1);
    CHECK(MPI_T_cvar_write(handle, &value) == MPI_SUCCESS);
    CHECK(MPI_T_cvar_read(handle, &got) == MPI_SUCCESS && got == value);
    CHECK(MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS && handle == MPI_T_CVAR_HANDLE_NULL);
    return index;
}

void tools(void) {
    MPI_T_pvar_session session;
    MPI_T_cvar_handle handle;
    MPI_T_pvar_handle queue = MPI_T_PVAR_HANDLE_NULL;
    MPI_T_enum kind, an_enumeration = MPI_T_ENUM_NULL;
    MPI_Datatype type;
    MPI_Comm comm;
    char first_library[16], name[128], item[128];
    int provided, n, after, bind, scope, count, value = 0, set, named = 0, items = 0, stamp, stamp_after;
    int performance, with_queue = -1, length, categories, members = 0, shown;
    snprintf(first_library, sizeof first_library, "%s", library());
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_T_cvar_get_num(&n);
    CHECK(n > 100 && n < MANY);
    for (int i = 0; i < n; ++i) {
        if (info_of(i, names[i], &type, &kind, &bind, &scope) != MPI_SUCCESS) {
            names[i][0] = 0;
            continue;
        }
        int index = -1;
        CHECK(MPI_T_cvar_get_index(names[i], &index) == MPI_SUCCESS && index == i);
        CHECK(type != MPI_DATATYPE_NULL);
        ++named;
        if (kind != MPI_T_ENUM_NULL && an_enumeration == MPI_T_ENUM_NULL) an_enumeration = kind;
    }
    CHECK(named > 100);
    set = set_one(4711);
    MPI_T_cvar_handle_alloc(set, NULL, &handle, &count);
    length = sizeof item;
    if (an_enumeration != MPI_T_ENUM_NULL) {
        CHECK(MPI_T_enum_get_info(an_enumeration, &items, item, &length) == MPI_SUCCESS && items > 0);
        length = sizeof item;
        CHECK(MPI_T_enum_get_item(an_enumeration, 0, &value, item, &length) == MPI_SUCCESS && item[0] != 0);
    }
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_get_num(&performance);
    for (int i = 0; i < performance; ++i) {
        char text[TEXT];
        int name_length = sizeof name, text_length = TEXT, verbosity, class, readonly, continuous, atomic;
        if (MPI_T_pvar_get_info(i, name, &name_length, &verbosity, &class, &type, &kind, text, &text_length,
                                &bind, &readonly, &continuous, &atomic) != MPI_SUCCESS)
            continue;
        if (strcmp(name, "pml_ob1_unexpected_msgq_length") != 0)
            continue; /* the one kind of a communicator's here */
        CHECK(bind == MPI_T_BIND_MPI_COMM && type == MPI_UNSIGNED && readonly &&
              class == MPI_T_PVAR_CLASS_SIZE);
        with_queue = i;
    }
    if (with_queue >= 0) {
        CHECK(MPI_T_pvar_handle_alloc(session, with_queue, &comm, &queue, &count) == MPI_SUCCESS &&
              count >= 1);
    }
    MPI_T_category_get_num(&categories);
    CHECK(categories > 0);
    for (int i = 0; i < categories && members == 0; ++i) {
        int here[MANY], n_cvars = 0, n_pvars, n_categories, name_length = sizeof name,
                        text_length = sizeof item;
        if (MPI_T_category_get_info(i, name, &name_length, item, &text_length, &n_cvars, &n_pvars,
                                    &n_categories) != MPI_SUCCESS)
            continue;
        MPI_T_category_get_cvars(i, MANY, here);
        for (int k = 0; k < n_cvars; ++k) CHECK(here[k] >= 0 && here[k] < n);
        members = n_cvars;
    }
    CHECK(members > 0);
    MPI_T_category_changed(&stamp);
    CHECK(MPI_T_cvar_get_index("no such variable", &bind) == MPI_T_ERR_INVALID_NAME);

    hold();

    shown = 0;
    int same = strcmp(first_library, library()) == 0;
    MPI_T_cvar_get_num(&after);
    MPI_T_category_changed(&stamp_after);
    CHECK(after >= n);
    for (int i = 0; i < n; ++i) { /* an index stays what it was, or answers that it is not there */
        int rc = info_of(i, name, &type, &kind, &bind, &scope);
        CHECK(rc == MPI_SUCCESS || rc == MPI_T_ERR_INVALID_INDEX || !same || names[i][0] == 0);
        if (rc == MPI_SUCCESS && names[i][0] != 0) CHECK(strcmp(name, names[i]) == 0);
        shown += rc == MPI_SUCCESS;
    }
    if (same)
        CHECK(shown >= named);
    else
        CHECK(shown < named && after > n && stamp_after != stamp);
    int rc = MPI_T_cvar_read(handle, &value);
    if (same)
        CHECK(rc == MPI_SUCCESS && value == 4711);
    else
        CHECK(rc == MPI_T_ERR_INVALID_HANDLE);
    length = sizeof item;
    if (an_enumeration != MPI_T_ENUM_NULL) {
        rc = MPI_T_enum_get_info(an_enumeration, &count, item, &length);
        CHECK(same ? rc == MPI_SUCCESS && count == items : rc == MPI_T_ERR_INVALID_HANDLE);
    }
    if (with_queue >= 0) {
        unsigned lengths[16] = {0};
        rc = MPI_T_pvar_read(session, queue, lengths);
        CHECK(same ? rc == MPI_SUCCESS : rc == MPI_T_ERR_INVALID_HANDLE);
        CHECK(MPI_T_pvar_handle_free(session, &queue) == MPI_SUCCESS && queue == MPI_T_PVAR_HANDLE_NULL);
    }
    if (!same) CHECK(set_one(4712) >= n); /* of the library that is there now */
    CHECK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_session_free(&session) == MPI_SUCCESS && session == MPI_T_PVAR_SESSION_NULL);
    CHECK(MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS);
    MPI_Comm_free(&comm);
    MPI_T_finalize();
}
