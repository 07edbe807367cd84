// The catalogues of MPI_T: which variables the library below has, and finding them again in another one.
#include "front/services/tools_state.h"

namespace fermata::front {

Tools* tools;
SpinLock tools_lock;

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

namespace {

int number(Which which, int* n) {
    return which == Which::control       ? LOWER(T_cvar_get_num)(n)
           : which == Which::performance ? LOWER(T_pvar_get_num)(n)
                                         : LOWER(T_category_get_num)(n);
}

}  // namespace

int index_below(Which which, const char* name, int of_class, int* index) {
    return which == Which::control       ? LOWER(T_cvar_get_index)(name, index)
           : which == Which::performance ? LOWER(T_pvar_get_index)(name, of_class, index)
                                         : LOWER(T_category_get_index)(name, index);
}

namespace {

// The variable's name, and class, into the entry.
void name_entry(Which which, Entry* entry) {
    char name[1024] = {}, text[8] = {};
    int name_length = sizeof name, text_length = sizeof text;
    Facts facts;
    if (ask(which, entry->real, &facts, name, &name_length, text, &text_length) != 0) return;
    entry->name = name;
    entry->of_class = facts.of_class;
}

}  // namespace

Catalogue& catalogue(Which which) { return tools->catalogues[static_cast<int>(which)]; }

// Adds variables that the library has got meanwhile.
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

int facts_of(Which which, int index, Facts* facts) {
    Entry* entry = entry_at(which, index);
    if (entry == nullptr) return FM_T_ERR_INVALID_INDEX;
    char name[8], text[8];
    int name_length = sizeof name, text_length = sizeof text;
    return ask(which, entry->real, facts, name, &name_length, text, &text_length);
}

namespace {

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

}  // namespace

int bound_object(int bind, const void* object, uint32_t* word, uint64_t* real) {
    *word = object != nullptr ? *static_cast<const uint32_t*>(object) : 0;
    *real = real_object(bind, *word);
    return bind != FM_T_BIND_NO_OBJECT && *real == 0 ? FM_T_ERR_INVALID_HANDLE : 0;
}

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

}  // namespace fermata::front
