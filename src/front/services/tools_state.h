// Between the files of MPI_T: what the program has, one call of it, and what the library says of a variable.
#pragma once

#include "front/objects/api.h"
#include "front/requests/engine.h"
#include "front/services/tools.h"

namespace fermata::front {

struct Tools {
    int users = 0;
    int changes = 0;  // of the categories, by restarts
    Catalogue catalogues[3] = {{Which::control, {}}, {Which::performance, {}}, {Which::category, {}}};
    Vec<Enumeration*> enumerations;
    Vec<ControlHandle*> controls;
    Vec<ToolsSession*> sessions;
};
extern Tools* tools;  // from the first MPI_T_init_thread on
extern SpinLock tools_lock;

// One call of the program.
class ToolsCall {
  public:
    explicit ToolsCall(const char* function)
        : call_(function), library_(call_.record()), guard_(tools_lock) {}
    bool ready() const { return tools != nullptr && tools->users > 0; }

  private:
    Call call_;
    LockIfCareful library_;
    SpinGuard guard_;
};
#define TOOLS_CALL(name)  \
    ToolsCall call(name); \
    if (!call.ready()) return FM_T_ERR_NOT_INITIALIZED

// Everything of one variable but its texts.
struct Facts {
    int verbosity = 0, of_class = 0, bind = 0, scope = 0, readonly = 0, continuous = 0, atomic = 0;
    int members[3] = {};
    RealDatatype type{};
    uint64_t enumeration = 0;
};

// ---- the library's own functions, by what is asked for

int ask(Which which, int real, Facts* facts, char* name, int* name_length, char* text, int* text_length);
int index_below(Which which, const char* name, int of_class, int* index);

// ---- the catalogue

Catalogue& catalogue(Which which);
// Adds variables that the library has got meanwhile.
void look_at_more(Catalogue* c);
// The variable with this index; null if there is none, or none now.
Entry* entry_at(Which which, int index);
int index_of_real(Which which, int real);
int facts_of(Which which, int index, Facts* facts);

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

// The object that a handle is bound to: its word, and the library's. An error class.
int bound_object(int bind, const void* object, uint32_t* word, uint64_t* real);

template <typename T>
void put(T* place, T value) {
    if (place != nullptr) *place = value;
}

}  // namespace fermata::front
