// MPI_T: initialisation, categories and control variables.
#include <string.h>

#include "front/objects/objects.h"
#include "front/services/tools_state.h"

namespace fermata::front {
namespace {

// Finds the type of a variable (MPI-4.0 14.3.5 lists them; MPI_C_BOOL is Open MPI's) that is this one below.
Datatype type_of(RealDatatype real) {
    for (Datatype type :
         {FM_INT, FM_UNSIGNED, FM_UNSIGNED_LONG, FM_UNSIGNED_LONG_LONG, FM_COUNT, FM_CHAR, FM_DOUBLE,
          FM_C_BOOL, FM_LONG, FM_INT32_T, FM_UINT32_T, FM_INT64_T, FM_UINT64_T, FM_BYTE})
        if (to_real(type) == real && real != RealDatatype{}) return type;
    return FM_DATATYPE_NULL;
}

uint64_t enumeration_word(Which which, int index, uint64_t real) {
    if (real == 0) return 0;
    for (Enumeration* one : tools->enumerations)
        if (one->which == which && one->index == index) {
            one->real = real;
            return reinterpret_cast<uint64_t>(one);
        }
    auto* made = fm_new<Enumeration>(Enumeration{which, index, real});
    tools->enumerations.push_back(made);
    return reinterpret_cast<uint64_t>(made);
}

// Size of one value.
size_t bytes_of(const ControlHandle* h, const void* value) {
    auto room = static_cast<size_t>(h->count) * h->element;
    if (h->element != 1) return room;
    size_t length = strnlen(static_cast<const char*>(value), room);
    return length < room ? length + 1 : room;
}

void close_everything() {
    while (!tools->controls.empty()) {
        if (tools->controls.back()->real != 0) LOWER(T_cvar_handle_free)(&tools->controls.back()->real);
        forget(&tools->controls, tools->controls.back());
    }
    while (!tools->sessions.empty()) {
        ToolsSession* session = tools->sessions.back();
        if (session->real != 0) LOWER(T_pvar_session_free)(&session->real);
        while (!session->handles.empty()) forget(&session->handles, session->handles.back());
        forget(&tools->sessions, session);
    }
}

}  // namespace

extern "C" {

int fm_T_ready() { return tools != nullptr && tools->users > 0 ? 0 : FM_T_ERR_NOT_INITIALIZED; }

int fm_T_init_thread(int required, int* provided) {
    ToolsCall call("MPI_T_init_thread");
    objects_boot();
    if (tools == nullptr) {
        if (int rc = LOWER(ToolsStart)()) return rc;
        tools = fm_new<Tools>();
    }
    tools->users++;
    put(provided, required);
    return 0;
}

// The one below stays: what it would take away at the last one, a later initialisation needs again.
int fm_T_finalize() {
    TOOLS_CALL("MPI_T_finalize");
    if (--tools->users == 0) close_everything();
    return 0;
}

int fm_T_bind(bool performance, int index) {
    ToolsCall call("MPI_T_handle_alloc");
    Facts facts;
    bool known =
        call.ready() && facts_of(performance ? Which::performance : Which::control, index, &facts) == 0;
    return known ? facts.bind : FM_T_BIND_NO_OBJECT;
}

}  // extern "C"

namespace {

int get_number(Which which, int* n) {
    look_at_more(&catalogue(which));
    put(n, static_cast<int>(catalogue(which).list.size()));
    return 0;
}

int get_index(Which which, const char* name, int of_class, int* index) {
    if (name == nullptr || index == nullptr) return FM_T_ERR_INVALID;
    int real = -1;
    if (int rc = index_below(which, name, of_class, &real)) return rc;
    int found = index_of_real(which, real);
    if (found < 0) return FM_T_ERR_INVALID_NAME;
    *index = found;
    return 0;
}

int get_facts(Which which, int index, Facts* facts, char* name, int* name_length, char* text,
              int* text_length) {
    Entry* entry = entry_at(which, index);
    if (entry == nullptr) return FM_T_ERR_INVALID_INDEX;
    return ask(which, entry->real, facts, name, name_length, text, text_length);
}

// Members of a category: indices below become ours.
int get_members(int (*get)(int, int, int*), int kind, int index, int length, int indices[]) {
    static constexpr Which kOf[] = {Which::control, Which::performance, Which::category};
    Facts facts;
    if (int rc = facts_of(Which::category, index, &facts)) return rc;
    Entry* entry = entry_at(Which::category, index);
    if (int rc = lower_function(get)(entry->real, length, indices)) return rc;
    for (int i = 0; i < length && i < facts.members[kind]; i++)
        indices[i] = index_of_real(kOf[kind], indices[i]);
    return 0;
}

}  // namespace

extern "C" {

int fm_T_cvar_get_num(int* n) {
    TOOLS_CALL("MPI_T_cvar_get_num");
    return get_number(Which::control, n);
}
int fm_T_pvar_get_num(int* n) {
    TOOLS_CALL("MPI_T_pvar_get_num");
    return get_number(Which::performance, n);
}
int fm_T_category_get_num(int* n) {
    TOOLS_CALL("MPI_T_category_get_num");
    return get_number(Which::category, n);
}
int fm_T_cvar_get_index(const char* name, int* index) {
    TOOLS_CALL("MPI_T_cvar_get_index");
    return get_index(Which::control, name, 0, index);
}
int fm_T_pvar_get_index(const char* name, int of_class, int* index) {
    TOOLS_CALL("MPI_T_pvar_get_index");
    return get_index(Which::performance, name, of_class, index);
}
int fm_T_category_get_index(const char* name, int* index) {
    TOOLS_CALL("MPI_T_category_get_index");
    return get_index(Which::category, name, 0, index);
}

int fm_T_cvar_get_info(int index, char* name, int* name_length, int* verbosity, Datatype* type,
                       uint64_t* enumeration, char* text, int* text_length, int* bind, int* scope) {
    TOOLS_CALL("MPI_T_cvar_get_info");
    Facts facts;
    if (int rc = get_facts(Which::control, index, &facts, name, name_length, text, text_length)) return rc;
    put(verbosity, facts.verbosity);
    put(type, type_of(facts.type));
    put(enumeration, enumeration_word(Which::control, index, facts.enumeration));
    put(bind, facts.bind);
    put(scope, facts.scope);
    return 0;
}

int fm_T_pvar_get_info(int index, char* name, int* name_length, int* verbosity, int* of_class, Datatype* type,
                       uint64_t* enumeration, char* text, int* text_length, int* bind, int* readonly,
                       int* continuous, int* atomic) {
    TOOLS_CALL("MPI_T_pvar_get_info");
    Facts facts;
    if (int rc = get_facts(Which::performance, index, &facts, name, name_length, text, text_length))
        return rc;
    put(verbosity, facts.verbosity);
    put(of_class, facts.of_class);
    put(type, type_of(facts.type));
    put(enumeration, enumeration_word(Which::performance, index, facts.enumeration));
    put(bind, facts.bind);
    put(readonly, facts.readonly);
    put(continuous, facts.continuous);
    put(atomic, facts.atomic);
    return 0;
}

int fm_T_enum_get_info(uint64_t word, int* n, char* name, int* name_length) {
    TOOLS_CALL("MPI_T_enum_get_info");
    Enumeration* one = find_word(tools->enumerations, word);
    if (one == nullptr || one->real == 0) return FM_T_ERR_INVALID_HANDLE;
    int items = 0;
    if (int rc = LOWER(T_enum_get_info)(one->real, &items, name, name_length)) return rc;
    put(n, items);
    return 0;
}

int fm_T_enum_get_item(uint64_t word, int index, int* value, char* name, int* name_length) {
    TOOLS_CALL("MPI_T_enum_get_item");
    Enumeration* one = find_word(tools->enumerations, word);
    if (one == nullptr || one->real == 0) return FM_T_ERR_INVALID_HANDLE;
    int found = 0;
    if (int rc = LOWER(T_enum_get_item)(one->real, index, &found, name, name_length)) return rc;
    put(value, found);
    return 0;
}

// ---- categories

int fm_T_category_get_info(int index, char* name, int* name_length, char* text, int* text_length,
                           int* controls, int* performance, int* categories) {
    TOOLS_CALL("MPI_T_category_get_info");
    Facts facts;
    if (int rc = get_facts(Which::category, index, &facts, name, name_length, text, text_length)) return rc;
    put(controls, facts.members[0]);
    put(performance, facts.members[1]);
    put(categories, facts.members[2]);
    return 0;
}
int fm_T_category_get_cvars(int index, int length, int indices[]) {
    TOOLS_CALL("MPI_T_category_get_cvars");
    return get_members(front.table->T_category_get_cvars, 0, index, length, indices);
}
int fm_T_category_get_pvars(int index, int length, int indices[]) {
    TOOLS_CALL("MPI_T_category_get_pvars");
    return get_members(front.table->T_category_get_pvars, 1, index, length, indices);
}
int fm_T_category_get_categories(int index, int length, int indices[]) {
    TOOLS_CALL("MPI_T_category_get_categories");
    return get_members(front.table->T_category_get_categories, 2, index, length, indices);
}
int fm_T_category_get_num_events(int index, int* n) {
    TOOLS_CALL("MPI_T_category_get_num_events");
    if (entry_at(Which::category, index) == nullptr) return FM_T_ERR_INVALID_INDEX;
    put(n, 0);
    return 0;
}
int fm_T_category_get_events(int index, int, int*) {
    TOOLS_CALL("MPI_T_category_get_events");
    return entry_at(Which::category, index) == nullptr ? FM_T_ERR_INVALID_INDEX : 0;
}
int fm_T_category_changed(int* stamp) {
    TOOLS_CALL("MPI_T_category_changed");
    int below = 0;
    if (int rc = LOWER(T_category_changed)(&below)) return rc;
    put(stamp, tools->changes + below);
    return 0;
}

// ---- control variables

int fm_T_cvar_handle_alloc(int index, void* object, uint64_t* handle, int* count) {
    TOOLS_CALL("MPI_T_cvar_handle_alloc");
    Facts facts;
    if (int rc = facts_of(Which::control, index, &facts)) return rc;
    const TypeObject* type = find(type_of(facts.type));
    ControlHandle made{index, facts.bind, 0, 0, type != nullptr ? static_cast<uint32_t>(type->size) : 1, 0};
    uint64_t real;
    if (int rc = bound_object(facts.bind, object, &made.object, &real)) return rc;
    int rc = LOWER(T_cvar_handle_alloc)(entry_at(Which::control, index)->real, facts.bind, real, &made.real,
                                        &made.count);
    if (rc != 0) return rc;
    tools->controls.push_back(fm_new<ControlHandle>(made));
    *handle = reinterpret_cast<uint64_t>(tools->controls.back());
    put(count, made.count);
    return 0;
}

int fm_T_cvar_handle_free(uint64_t* handle) {
    TOOLS_CALL("MPI_T_cvar_handle_free");
    ControlHandle* h = find_word(tools->controls, *handle);
    if (h == nullptr) return FM_T_ERR_INVALID_HANDLE;
    int rc = h->real != 0 ? LOWER(T_cvar_handle_free)(&h->real) : 0;
    forget(&tools->controls, h);
    *handle = 0;
    return rc;
}

int fm_T_cvar_read(uint64_t handle, void* value) {
    TOOLS_CALL("MPI_T_cvar_read");
    ControlHandle* h = find_word(tools->controls, handle);
    if (h == nullptr || h->real == 0) return FM_T_ERR_INVALID_HANDLE;
    return LOWER(T_cvar_read)(h->real, value);
}

int fm_T_cvar_write(uint64_t handle, const void* value) {
    TOOLS_CALL("MPI_T_cvar_write");
    ControlHandle* h = find_word(tools->controls, handle);
    if (h == nullptr || h->real == 0) return FM_T_ERR_INVALID_HANDLE;
    if (int rc = LOWER(T_cvar_write)(h->real, value)) return rc;
    if (h->bind == FM_T_BIND_NO_OBJECT)
        entry_at(Which::control, h->index)
            ->written.assign(static_cast<const char*>(value), bytes_of(h, value));
    return 0;
}

}  // extern "C"

}  // namespace fermata::front
