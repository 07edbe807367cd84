#include "cases.h"

static void ignore_session_errors(MPI_Session* session, int* code, ...) { (void)session, (void)code; }

void case_sessions(void) {
    MPI_Session session;
    MPI_Info info;
    MPI_Group group, half;
    MPI_Comm comm, inter;
    MPI_Errhandler handler, got;
    char name[MPI_MAX_OBJECT_NAME];
    int n = 0, length = sizeof name, sum, flag;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return;
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n);
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name);
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 1, &length, name);
    length = 0;
    if (MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 1, &length, NULL) == MPI_SUCCESS) SHOW1(length);
    MPI_Session_get_pset_info(session, "mpi://WORLD", &info);
    MPI_Info_get(info, "mpi_size", 20, name, &flag);
    MPI_Info_free(&info);
    MPI_Session_get_info(session, &info);
    MPI_Info_free(&info);
    MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    MPI_Group_size(group, &n);
    MPI_Group_free(&group);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Group_size(group, &n);
    MPI_Group_rank(group, &n);
    MPI_Comm_create_from_group(group, "fermata.conformance", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    SHOW1(sum);
    MPI_Comm_rank(comm, &n);
    MPI_Comm_free(&comm);
    MPI_Group world = group;
    int range[1][3] = {{rank % 2, size - 1, 2}}, other[1][3] = {{1 - rank % 2, size - 1, 2}};
    MPI_Group_range_incl(world, 1, range, &half);
    MPI_Group_range_incl(world, 1, other, &group);
    if (MPI_Intercomm_create_from_groups(half, 0, group, 0, "fermata.inter", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                         &inter) == MPI_SUCCESS) {
        MPI_Comm_remote_size(inter, &n);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
        SHOW1(sum);
        MPI_Comm_free(&inter);
    }
    MPI_Group_free(&half), MPI_Group_free(&group), MPI_Group_free(&world);
    MPI_Group_from_session_pset(session, "mpi://nothing", &group);
    if (MPI_Session_create_errhandler((void*)ignore_session_errors, &handler) == MPI_SUCCESS) {
        MPI_Session_set_errhandler(session, handler);
        MPI_Session_get_errhandler(session, &got);
        MPI_Errhandler_free(&got);
        MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN);
        MPI_Session_call_errhandler(session, MPI_ERR_OTHER);
        MPI_Errhandler_free(&handler);
    }
    MPI_Session_finalize(&session);
}

void case_dynamic(void) {
    MPI_Comm parent, comm;
    char port[MPI_MAX_PORT_NAME], *argv[] = {NULL};
    int codes[1] = {0};
    MPI_Comm_get_parent(&parent);
    if (getenv("CONFORMANCE_DYNAMIC") == NULL) return;
    (void)comm, (void)port, (void)argv, (void)codes;
}

/* Variables that each library is known to have; indices are the library's own affair. */
#ifdef OPEN_MPI
#define A_VARIABLE "coll_tuned_bcast_algorithm_chain_fanout"
#define A_CATEGORY "ompi_coll_tuned"
#else
#define A_VARIABLE "MPIR_CVAR_GATHER_INTER_SHORT_MSG_SIZE"
#define A_CATEGORY "COLLECTIVE"
#endif
static void variables(void) {
    char name[128], text[4096];
    int index = -1, name_length = sizeof name, text_length = sizeof text, verbosity, bind, scope, count,
        value = 77;
    int n_cvars = 0, n_pvars, n_categories, members[2048];
    MPI_Datatype type;
    MPI_T_enum kind = MPI_T_ENUM_NULL;
    MPI_T_cvar_handle handle;
    rec_off = 1;
    MPI_T_cvar_get_index(A_VARIABLE, &index);
    rec_off = 0;
    MPI_T_cvar_get_info(index, name, &name_length, &verbosity, &type, &kind, text, &text_length, &bind,
                        &scope);
    name_length = 5, text_length = 0; /* cut, and not at all */
    PMPI_T_cvar_get_info(index, name, &name_length, NULL, NULL, NULL, text, &text_length, NULL, NULL);
    SHOW1(name_length);
    SHOW1(text_length);
    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
    value = 77;
    MPI_T_cvar_write(handle, &value);
    value = 0;
    MPI_T_cvar_read(handle, &value);
    SHOW1(value);
    MPI_T_cvar_handle_free(&handle);
    rec_off = 1;
    MPI_T_category_get_index(A_CATEGORY, &index);
    rec_off = 0;
    name_length = sizeof name, text_length = sizeof text;
    MPI_T_category_get_info(index, name, &name_length, text, &text_length, &n_cvars, &n_pvars, &n_categories);
    rec_off = 1;
    if (n_cvars <= 2048) MPI_T_category_get_cvars(index, n_cvars, members);
    for (int i = 0; i < n_cvars && i < 3; ++i) {
        name_length = sizeof name, text_length = sizeof text;
        PMPI_T_cvar_get_info(members[i], name, &name_length, NULL, NULL, NULL, text, &text_length, NULL,
                             NULL);
        rec_off = 0;
        rec_string("member", name);
        rec_off = 1;
    }
    rec_off = 0;
#ifdef OPEN_MPI
    int of_class, readonly, continuous, atomic;
    unsigned lengths[64];
    MPI_T_pvar_session session;
    MPI_T_pvar_handle queue;
    MPI_Comm comm = MPI_COMM_WORLD;
    rec_off = 1;
    MPI_T_cvar_get_index("mpi_param_check", &index);
    PMPI_T_cvar_get_info(index, NULL, NULL, &verbosity, &type, &kind, NULL, NULL, &bind, &scope);
    rec_off = 0;
    name_length = sizeof name;
    MPI_T_enum_get_info(kind, &count, name, &name_length);
    for (int i = 0; i < count; ++i) {
        name_length = sizeof name;
        MPI_T_enum_get_item(kind, i, &value, name, &name_length);
    }
    rec_off = 1;
    MPI_T_pvar_get_index("pml_ob1_unexpected_msgq_length", MPI_T_PVAR_CLASS_SIZE, &index);
    rec_off = 0;
    name_length = sizeof name, text_length = sizeof text;
    MPI_T_pvar_get_info(index, name, &name_length, &verbosity, &of_class, &type, &kind, text, &text_length,
                        &bind, &readonly, &continuous, &atomic);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, index, &comm, &queue, &count);
    MPI_T_pvar_read(session, queue, lengths);
    MPI_T_pvar_start(session, queue); /* a continuous one, only to be read */
    MPI_T_pvar_stop(session, queue);
    MPI_T_pvar_reset(session, queue);
    MPI_T_pvar_write(session, queue, lengths);
    MPI_T_pvar_readreset(session, queue, lengths);
    MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES);
    MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES);
    MPI_T_pvar_handle_free(session, &queue);
    MPI_T_pvar_session_free(&session);
#endif
}

/* On its own: one library lacks it. */
void case_events(void) {
    int n;
    MPI_T_event_get_num(&n); /* not initialised */
    MPI_T_source_get_num(&n);
}

void case_tools(void) {
    int provided, n = 0, length = 0, index, verbosity, binding, scope, more, stamp;
    MPI_Datatype type;
    MPI_T_enum kind;
    char text[10];
    MPI_T_cvar_get_num(&n); /* not initialised */
    MPI_T_finalize();
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    rec_off = 1; /* what there is to see is the library's own affair */
    MPI_T_cvar_get_num(&n);
    MPI_T_pvar_get_num(&n);
    MPI_T_category_get_num(&n);
    MPI_T_category_changed(&stamp);
    rec_off = 0;
    MPI_T_cvar_get_info(1000000, NULL, &length, &verbosity, &type, &kind, NULL, &length, &binding, &scope);
    MPI_T_pvar_get_info(1000000, NULL, &length, &verbosity, &index, &type, &kind, NULL, &length, &binding,
                        &scope, &more, &n);
    MPI_T_category_get_info(1000000, NULL, &length, NULL, &length, &n, &index, &more);
    MPI_T_category_get_cvars(1000000, 0, NULL);
    MPI_T_category_get_pvars(1000000, 0, NULL);
    MPI_T_category_get_categories(1000000, 0, NULL);
    MPI_T_cvar_get_index("fermata_no_such_variable", &index);
    MPI_T_pvar_get_index("fermata_no_such_variable", 1, &index);
    MPI_T_category_get_index("fermata_no_such_category", &index);
    MPI_T_cvar_handle handle;
    MPI_T_cvar_handle_alloc(1000000, NULL, &handle, &n);
    MPI_T_pvar_session session;
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_session_free(&session);
    variables();
    (void)text;
    MPI_T_finalize();
    MPI_T_finalize();
    MPI_T_finalize(); /* once too often */
}
