#include "front/services/tools.h"

#include <string.h>

#include "front/objects/api.h"
#include "front/objects/objects.h"
#include "front/requests/engine.h"

namespace fermata::front {
namespace {

struct Tools {
    int users = 0;
    int changes = 0;  // of the categories, by restarts
    Catalogue catalogues[3] = {{Which::control, {}}, {Which::performance, {}}, {Which::category, {}}};
    Vec<Enumeration*> enumerations;
    Vec<ControlHandle*> controls;
    Vec<ToolsSession*> sessions;
};
Tools* tools;  // from the first MPI_T_init_thread on
SpinLock tools_lock;

// One call of the program.
class ToolsCall {
  public:
    explicit ToolsCall(const char* function) : call_(function), slow_(call_.record()), guard_(tools_lock) {}
    bool ready() const { return tools != nullptr && tools->users > 0; }

  private:
    Call call_;
    LockIfCareful slow_;
    SpinGuard guard_;
};
#define TOOLS_CALL(name)  \
    ToolsCall call(name); \
    if (!call.ready()) return FM_T_ERR_NOT_INITIALIZED

// ---- what the library says

// Everything of one variable but its texts.
struct Facts {
    int verbosity = 0, of_class = 0, bind = 0, scope = 0, readonly = 0, continuous = 0, atomic = 0;
    int members[3] = {};
    RealDatatype type{};
    uint64_t enumeration = 0;
};

int ask(Which which, int real, Facts* facts, char* name, int* name_length, char* text, int* text_length) {
    switch (which) {
        case Which::control:
            return LOWER(T_cvar_get_info)(real, name, name_length, &facts->verbosity, &facts->type,
                                          &facts->enumeration, text, text_length, &facts->bind,
                                          &facts->scope);
        case Which::performance:
            return LOWER(T_pvar_get_info)(real, name, name_length, &facts->verbosity, &facts->of_class,
                                          &facts->type, &facts->enumeration, text, text_length, &facts->bind,
                                          &facts->readonly, &facts->continuous, &facts->atomic);
        default:
            return LOWER(T_category_get_info)(real, name, name_length, text, text_length, &facts->members[0],
                                              &facts->members[1], &facts->members[2]);
    }
}

int number(Which which, int* n) {
    return which == Which::control       ? LOWER(T_cvar_get_num)(n)
           : which == Which::performance ? LOWER(T_pvar_get_num)(n)
                                         : LOWER(T_category_get_num)(n);
}

int index_below(Which which, const char* name, int of_class, int* index) {
    return which == Which::control       ? LOWER(T_cvar_get_index)(name, index)
           : which == Which::performance ? LOWER(T_pvar_get_index)(name, of_class, index)
                                         : LOWER(T_category_get_index)(name, index);
}

// The variable's name, and class, into the entry.
void name_entry(Which which, Entry* entry) {
    char name[1024] = {}, text[8] = {};
    int name_length = sizeof name, text_length = sizeof text;
    Facts facts;
    if (ask(which, entry->real, &facts, name, &name_length, text, &text_length) != 0) return;
    entry->name = name;
    entry->of_class = facts.of_class;
}

// ---- the catalogue

Catalogue& catalogue(Which which) { return tools->catalogues[static_cast<int>(which)]; }

// What the library has got meanwhile.
void look_at_more(Catalogue* c) {
    int n = 0;
    if (number(c->which, &n) != 0) return;
    for (; c->known < n; c->known++) {
        Entry entry;
        entry.real = c->known;
        name_entry(c->which, &entry);
        c->list.push_back(entry);
    }
}

// The variable with this index; null if there is none, or none now.
Entry* entry_at(Which which, int index) {
    Catalogue& c = catalogue(which);
    if (index < 0) return nullptr;
    if (static_cast<size_t>(index) >= c.list.size()) look_at_more(&c);
    if (static_cast<size_t>(index) >= c.list.size()) return nullptr;
    Entry* entry = &c.list[static_cast<size_t>(index)];
    if (entry->real >= 0 && entry->name.empty()) name_entry(which, entry);
    return entry->real >= 0 ? entry : nullptr;
}

int index_of_real(Which which, int real) {
    Catalogue& c = catalogue(which);
    if (real >= c.known) look_at_more(&c);
    if (static_cast<size_t>(real) < c.list.size() && c.list[static_cast<size_t>(real)].real == real)
        return real;
    for (size_t i = 0; i < c.list.size(); i++)
        if (c.list[i].real == real) return static_cast<int>(i);
    return -1;
}

// Another library: the same names.
void find_again(Catalogue* c) {
    int n = 0;
    if (number(c->which, &n) != 0) n = 0;
    Vec<char> ours(static_cast<size_t>(n), 0);
    for (Entry& entry : c->list) {
        int index = -1;
        bool there = !entry.name.empty() &&
                     index_below(c->which, entry.name.c_str(), entry.of_class, &index) == 0 && index >= 0 &&
                     index < n;
        entry.real = there ? index : -1;
        if (there) ours[static_cast<size_t>(index)] = 1;
    }
    for (int i = 0; i < n; i++) {
        if (ours[static_cast<size_t>(i)] != 0) continue;
        Entry entry;
        entry.real = i;
        name_entry(c->which, &entry);
        if (!entry.name.empty()) c->list.push_back(entry);
    }
    c->known = n;
}

// ---- handles

template <typename T>
T* find_word(const Vec<T*>& list, uint64_t word) {
    for (T* one : list)
        if (reinterpret_cast<uint64_t>(one) == word) return one;
    return nullptr;
}

template <typename T>
void forget(Vec<T*>* list, T* one) {
    for (size_t i = 0; i < list->size(); i++)
        if ((*list)[i] == one) list->erase(list->begin() + static_cast<ptrdiff_t>(i));
    fm_delete(one);
}

uint64_t real_object(int bind, uint32_t word) {
    switch (bind) {
        case FM_T_BIND_MPI_COMM:
            return static_cast<uint64_t>(to_real(Comm{word}));
        case FM_T_BIND_MPI_DATATYPE:
            return static_cast<uint64_t>(to_real(Datatype{word}));
        case FM_T_BIND_MPI_FILE:
            return static_cast<uint64_t>(to_real(File{word}));
        case FM_T_BIND_MPI_OP:
            return static_cast<uint64_t>(to_real(Op{word}));
        case FM_T_BIND_MPI_WIN:
            return static_cast<uint64_t>(to_real(Win{word}));
        default:
            return 0;
    }
}

// Of the types that variables may have (MPI-4.0 14.3.5; MPI_C_BOOL is Open MPI's), the one that is that one
// below.
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

int facts_of(Which which, int index, Facts* facts) {
    Entry* entry = entry_at(which, index);
    if (entry == nullptr) return FM_T_ERR_INVALID_INDEX;
    char name[8], text[8];
    int name_length = sizeof name, text_length = sizeof text;
    return ask(which, entry->real, facts, name, &name_length, text, &text_length);
}

int bound_object(int bind, const void* object, uint32_t* word, uint64_t* real) {
    *word = object != nullptr ? *static_cast<const uint32_t*>(object) : 0;
    *real = real_object(bind, *word);
    return bind != FM_T_BIND_NO_OBJECT && *real == 0 ? FM_T_ERR_INVALID_HANDLE : 0;
}

// Of one value.
size_t bytes_of(const ControlHandle* h, const void* value) {
    auto room = static_cast<size_t>(h->count) * h->element;
    if (h->element != 1) return room;
    size_t length = strnlen(static_cast<const char*>(value), room);
    return length < room ? length + 1 : room;
}

template <typename T>
void put(T* place, T value) {
    if (place != nullptr) *place = value;
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

void tools_rebuild() noexcept {
    if (tools == nullptr) return;
    LOWER(ToolsStart)();
    for (Catalogue& c : tools->catalogues) find_again(&c);
    tools->changes += 1 << 20;
    for (Entry& entry : catalogue(Which::control).list) {
        if (entry.written.empty() || entry.real < 0) continue;
        uint64_t handle = 0;
        int count = 0;
        if (LOWER(T_cvar_handle_alloc)(entry.real, FM_T_BIND_NO_OBJECT, 0, &handle, &count) != 0) continue;
        LOWER(T_cvar_write)(handle, entry.written.data());
        LOWER(T_cvar_handle_free)(&handle);
    }
    for (Enumeration* one : tools->enumerations) {
        Facts facts;
        one->real = facts_of(one->which, one->index, &facts) == 0 ? facts.enumeration : 0;
    }
    for (ControlHandle* h : tools->controls) {
        Entry* entry = entry_at(Which::control, h->index);
        h->real = 0;
        if (entry != nullptr) LOWER(T_cvar_handle_alloc)
        (entry->real, h->bind, real_object(h->bind, h->object), &h->real, &h->count);
    }
    for (ToolsSession* session : tools->sessions) {
        session->real = 0;
        bool there = LOWER(T_pvar_session_create)(&session->real) == 0;
        for (PerformanceHandle* h : session->handles) {
            Entry* entry = entry_at(Which::performance, h->index);
            int count = 0;
            h->real = 0;
            if (!there || entry == nullptr) continue;
            LOWER(T_pvar_handle_alloc)
            (session->real, entry->real, h->bind, real_object(h->bind, h->object), &h->real, &count);
            if (h->real != 0 && h->started) LOWER(T_pvar_start)(session->real, h->real);
        }
    }
}

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

// ---- performance variables

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

// What is done to one variable, or to all of a session that `meant` says it can be done to.
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
