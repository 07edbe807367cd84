// MPI_T: performance variables.
#include "front/services/tools_state.h"

namespace fermata::front {

extern "C" {

int fm_T_pvar_session_create(uint64_t* session) {
    TOOLS_CALL("MPI_T_pvar_session_create");
    uint64_t real = 0;
    if (int rc = LOWER(T_pvar_session_create)(&real)) return rc;
    tools->sessions.push_back(fm_new<ToolsSession>(ToolsSession{real, {}}));
    *session = reinterpret_cast<uint64_t>(tools->sessions.back());
    return 0;
}

int fm_T_pvar_session_free(uint64_t* session) {
    TOOLS_CALL("MPI_T_pvar_session_free");
    ToolsSession* s = find_word(tools->sessions, *session);
    if (s == nullptr) return FM_T_ERR_INVALID_SESSION;
    int rc = s->real != 0 ? LOWER(T_pvar_session_free)(&s->real) : 0;
    while (!s->handles.empty()) forget(&s->handles, s->handles.back());
    forget(&tools->sessions, s);
    *session = 0;
    return rc;
}

int fm_T_pvar_handle_alloc(uint64_t session, int index, void* object, uint64_t* handle, int* count) {
    TOOLS_CALL("MPI_T_pvar_handle_alloc");
    ToolsSession* s = find_word(tools->sessions, session);
    if (s == nullptr || s->real == 0) return FM_T_ERR_INVALID_SESSION;
    Facts facts;
    if (int rc = facts_of(Which::performance, index, &facts)) return rc;
    PerformanceHandle made{index, facts.bind, 0, facts.continuous != 0, facts.readonly != 0, false, 0};
    uint64_t real;
    if (int rc = bound_object(facts.bind, object, &made.object, &real)) return rc;
    int elements = 0;
    int rc = LOWER(T_pvar_handle_alloc)(s->real, entry_at(Which::performance, index)->real, facts.bind, real,
                                        &made.real, &elements);
    if (rc != 0) return rc;
    s->handles.push_back(fm_new<PerformanceHandle>(made));
    *handle = reinterpret_cast<uint64_t>(s->handles.back());
    put(count, elements);
    return 0;
}

int fm_T_pvar_handle_free(uint64_t session, uint64_t* handle) {
    TOOLS_CALL("MPI_T_pvar_handle_free");
    ToolsSession* s = find_word(tools->sessions, session);
    PerformanceHandle* h = s != nullptr ? find_word(s->handles, *handle) : nullptr;
    if (h == nullptr) return s == nullptr ? FM_T_ERR_INVALID_SESSION : FM_T_ERR_INVALID_HANDLE;
    int rc = h->real != 0 ? LOWER(T_pvar_handle_free)(s->real, &h->real) : 0;
    forget(&s->handles, h);
    *handle = 0;
    return rc;
}

}  // extern "C"

namespace {

// MPI_T_PVAR_ALL_HANDLES: -1 in both libraries' mpi.h, 1 in the standard ABI.
bool all_of_them(uint64_t handle) { return handle == ~uint64_t{0} || handle == 1; }

// Does something to one variable, or to all of a session that `meant` takes.
template <typename Meant, typename Do>
int one_or_all(uint64_t session, uint64_t handle, Meant&& meant, Do&& act) {
    ToolsSession* s = find_word(tools->sessions, session);
    if (s == nullptr) return FM_T_ERR_INVALID_SESSION;
    if (!all_of_them(handle)) {
        PerformanceHandle* h = find_word(s->handles, handle);
        return h == nullptr || h->real == 0 ? FM_T_ERR_INVALID_HANDLE : act(s, h);
    }
    int rc = 0;
    for (PerformanceHandle* h : s->handles)
        if (h->real != 0 && meant(h))
            if (int one = act(s, h)) rc = one;
    return rc;
}

int one_only(uint64_t session, uint64_t handle, int (*act)(uint64_t, uint64_t, void*), void* value) {
    if (all_of_them(handle)) return FM_T_ERR_INVALID_HANDLE;
    return one_or_all(
        session, handle, [](const PerformanceHandle*) { return true; },
        [=](ToolsSession* s, PerformanceHandle* h) { return lower_function(act)(s->real, h->real, value); });
}

}  // namespace

extern "C" {

int fm_T_pvar_start(uint64_t session, uint64_t handle) {
    TOOLS_CALL("MPI_T_pvar_start");
    return one_or_all(
        session, handle, [](const PerformanceHandle* h) { return !h->continuous && !h->started; },
        [](ToolsSession* s, PerformanceHandle* h) {
            int rc = LOWER(T_pvar_start)(s->real, h->real);
            h->started = h->started || rc == 0;
            return rc;
        });
}
int fm_T_pvar_stop(uint64_t session, uint64_t handle) {
    TOOLS_CALL("MPI_T_pvar_stop");
    return one_or_all(
        session, handle, [](const PerformanceHandle* h) { return !h->continuous && h->started; },
        [](ToolsSession* s, PerformanceHandle* h) {
            int rc = LOWER(T_pvar_stop)(s->real, h->real);
            h->started = h->started && rc != 0;
            return rc;
        });
}
int fm_T_pvar_reset(uint64_t session, uint64_t handle) {
    TOOLS_CALL("MPI_T_pvar_reset");
    return one_or_all(
        session, handle, [](const PerformanceHandle* h) { return !h->readonly; },
        [](ToolsSession* s, PerformanceHandle* h) { return LOWER(T_pvar_reset)(s->real, h->real); });
}
int fm_T_pvar_read(uint64_t session, uint64_t handle, void* value) {
    TOOLS_CALL("MPI_T_pvar_read");
    return one_only(session, handle, front.table->T_pvar_read, value);
}
int fm_T_pvar_readreset(uint64_t session, uint64_t handle, void* value) {
    TOOLS_CALL("MPI_T_pvar_readreset");
    return one_only(session, handle, front.table->T_pvar_readreset, value);
}
int fm_T_pvar_write(uint64_t session, uint64_t handle, const void* value) {
    TOOLS_CALL("MPI_T_pvar_write");
    return one_or_all(
        session, handle, [](const PerformanceHandle*) { return false; },
        [=](ToolsSession* s, PerformanceHandle* h) { return LOWER(T_pvar_write)(s->real, h->real, value); });
}

}  // extern "C"

}  // namespace fermata::front
