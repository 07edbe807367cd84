// Parts that the generated Fortran entry points use: strings, special bodies, callbacks. Included after an
// ABI's header.
//
// A Fortran procedure takes everything by reference, INTEGER ierror last and the lengths of its strings after
// that.
#pragma once

#include "front/abi/special.h"

// Every compiler of the last forty years has its mangling, and Open MPI's own modules have two more. One
// definition, pmpi_x_; mpi_x_ and its kin are weak, so that tools may interpose them.
#define FRONT_NAME(name, of) ".globl " name "\n.type " name ", @function\n.set " name ", " of "\n"
#define FRONT_WEAK(name, of) ".weak " name "\n.type " name ", @function\n.set " name ", " of "\n"
#define FRONT_NAMES(x, X)                                                                        \
    asm(FRONT_NAME("pmpi_" x, "pmpi_" x "_") FRONT_NAME("pmpi_" x "__", "pmpi_" x "_")           \
            FRONT_NAME("PMPI_" X, "pmpi_" x "_") FRONT_WEAK("mpi_" x, "pmpi_" x "_")             \
                FRONT_WEAK("mpi_" x "_", "pmpi_" x "_") FRONT_WEAK("mpi_" x "__", "pmpi_" x "_") \
                    FRONT_WEAK("MPI_" X, "pmpi_" x "_"));
#define FRONT_OPENMPI_NAMES(x, C)                                                                \
    asm(FRONT_NAME("ompi_" x "_f", "pmpi_" x "_") FRONT_NAME("PMPI_" C "_f", "pmpi_" x "_")      \
            FRONT_NAME("PMPI_" C "_f08", "pmpi_" x "_") FRONT_WEAK("MPI_" C "_f", "pmpi_" x "_") \
                FRONT_WEAK("MPI_" C "_f08", "pmpi_" x "_"));
// The names of a function that is MPIX_ there: aliases of pmpi_x_, or of a definition called pmpix_x_.
#define FRONT_MPIX_ALIASES(x, X, C, of)                                                                  \
    asm(FRONT_NAME("ompix_" x "_f", of) FRONT_NAME("pmpix_" x, of) FRONT_NAME("pmpix_" x "__", of)       \
            FRONT_NAME("PMPIX_" X, of) FRONT_NAME("PMPIX_" C "_f", of) FRONT_NAME("PMPIX_" C "_f08", of) \
                FRONT_WEAK("mpix_" x, of) FRONT_WEAK("mpix_" x "_", of) FRONT_WEAK("mpix_" x "__", of)   \
                    FRONT_WEAK("MPIX_" X, of) FRONT_WEAK("MPIX_" C "_f", of)                             \
                        FRONT_WEAK("MPIX_" C "_f08", of));
#define FRONT_MPIX_NAMES(x, X, C)                   \
    asm(FRONT_NAME("pmpix_" x "_", "pmpi_" x "_")); \
    FRONT_MPIX_ALIASES(x, X, C, "pmpi_" x "_")

namespace fermata::abi {

// A blank-padded Fortran string as a C one, without the blanks at both ends.
class FString {
  public:
    FString(const char* text, int length) : copy_(length + 1) {
        while (length > 0 && text[length - 1] == ' ') --length;
        while (length > 0 && *text == ' ') ++text, --length;
        if (length > 0) memcpy(copy_.data(), text, static_cast<size_t>(length));
        copy_[length > 0 ? length : 0] = 0;
    }
    const char* c_str() { return copy_.data(); }

  private:
    Temp<char, 512> copy_;
};

// `count` blank-padded strings, `stride` strings apart, as C ones with a null at the end; count < 0: those
// before the first blank one. Null stays null. Memory of the application.
inline char** c_strings(const char* text, int length, int64_t count, int64_t stride = 1) {
    if (text == nullptr) return nullptr;
    char** list = nullptr;
    for (int64_t n = 0;; ++n, text += stride * length) {
        list = static_cast<char**>(realloc(list, sizeof(char*) * static_cast<size_t>(n + 1)));
        list[n] = nullptr;
        if (n == count) return list;
        FString one(text, length);
        if (count < 0 && *one.c_str() == 0) return list;
        list[n] = strdup(one.c_str());
    }
}
inline void free_strings(char** list) {
    for (char** one = list; one != nullptr && *one != nullptr; ++one) free(*one);
    free(list);
}

class FStrings {
  public:
    FStrings(const char* text, int length, int64_t count) : list_(c_strings(text, length, count)) {}
    ~FStrings() { free_strings(list_); }
    FStrings(const FStrings&) = delete;
    FStrings& operator=(const FStrings&) = delete;
    char** data() { return list_; }

  private:
    char** list_;
};

// CHARACTER array(rows, *): each row up to its first blank string.
class FStringRows {
  public:
    FStringRows(const char* text, int length, int rows) : rows_(rows) {
        if (text == nullptr) return;
        list_ = static_cast<char***>(malloc(sizeof(char**) * static_cast<size_t>(rows + 1)));
        for (int row = 0; row < rows; ++row)
            list_[row] = c_strings(text + static_cast<int64_t>(row) * length, length, -1, rows);
    }
    ~FStringRows() {
        for (int row = 0; list_ != nullptr && row < rows_; ++row) free_strings(list_[row]);
        free(list_);
    }
    FStringRows(const FStringRows&) = delete;
    FStringRows& operator=(const FStringRows&) = delete;
    char*** data() { return list_; }

  private:
    char*** list_ = nullptr;
    int rows_;
};

inline void pad_string(char* to, int length, const char* from) {
    if (length <= 0) return;
    size_t n = strnlen(from, static_cast<size_t>(length));
    memcpy(to, from, n);
    memset(to + n, ' ', static_cast<size_t>(length) - n);
}

// Fortran counts completed requests from 1. MPI_UNDEFINED is negative.
inline void from_one(int* index) {
    if (*index >= 0) ++*index;
}

// Fortran gets the value of a predefined attribute itself; some are constants of the ABI.
inline int64_t attribute_value(int keyval, int64_t value) {
    const int v = static_cast<int>(value);
    switch (keyval) {
        case FM_IO:
        case FM_HOST:
            return out_rank(v);
        case FM_LASTUSEDCODE:
            return v <= FM_ERR_LASTCODE ? A_ERR_LASTCODE : v;
        case FM_WIN_CREATE_FLAVOR:
            return out_win_flavor(v);
        case FM_WIN_MODEL:
            return out_win_model(v);
        default:
            return value;
    }
}

// The functions that front_c.py leaves to hand-written code.
inline int F_Abort(A_Comm comm, int code) { return out_errclass(fm_Abort(in_Comm(comm), code)); }
inline int F_Pcontrol(int level) { return fm_Pcontrol(level); }
inline int F_Get_version(int* version, int* subversion) {
    *version = kAbiVersion;
    *subversion = kAbiSubversion;
    return 0;
}
inline int F_Type_extent(A_Datatype type, int64_t* extent) {
    Count lb;
    return out_errclass(fm_Type_get_extent(in_Datatype(type), &lb, extent));
}
inline int F_Type_lb(A_Datatype type, int64_t* lb) {
    Count extent;
    return out_errclass(fm_Type_get_extent(in_Datatype(type), lb, &extent));
}
inline int F_Type_ub(A_Datatype type, int64_t* ub) {
    Count lb = 0, extent = 0;
    int rc = fm_Type_get_extent(in_Datatype(type), &lb, &extent);
    *ub = lb + extent;
    return out_errclass(rc);
}

// Callbacks. Their namespace keeps them apart from the C front's of the same names, which are in the same
// library: the linker would take either for both.
inline namespace fortran {

inline void adapter_MPI_User_function(void* fn, void* in, void* inout, Count* len, Datatype* type) {
    int n = static_cast<int>(*len);
    int t = out_Datatype(*type);
    reinterpret_cast<void (*)(void*, void*, int*, int*)>(fn)(in, inout, &n, &t);
}

inline int out_object(Kind kind, uint32_t object) {
    switch (kind) {
        case Kind::datatype:
            return static_cast<int>(out_Datatype(static_cast<Datatype>(object)));
        case Kind::win:
            return static_cast<int>(out_Win(static_cast<Win>(object)));
        case Kind::file:
            return static_cast<int>(out_File(static_cast<File>(object)));
        default:
            return static_cast<int>(out_Comm(static_cast<Comm>(object)));
    }
}
// Word is INTEGER for the callbacks of MPI-1, INTEGER(KIND=MPI_ADDRESS_KIND) since MPI-2.
template <Kind kind, typename Word>
int fortran_copy(void* fn, uint32_t object, int keyval, void* extra_state, void* value_in, void** value_out,
                 int* flag) {
    int handle = out_object(kind, object), key = out_keyval(keyval), rc = 0;
    auto extra = static_cast<Word>(reinterpret_cast<intptr_t>(extra_state));
    auto in = static_cast<Word>(reinterpret_cast<intptr_t>(value_in));
    Word out = 0;
    *flag = 0;
    reinterpret_cast<void (*)(int*, int*, Word*, Word*, Word*, int*, int*)>(fn)(&handle, &key, &extra, &in,
                                                                                &out, flag, &rc);
    *value_out = reinterpret_cast<void*>(static_cast<intptr_t>(out));
    return in_errclass(rc);
}
template <Kind kind, typename Word>
int fortran_delete(void* fn, uint32_t object, int keyval, void* value, void* extra_state) {
    int handle = out_object(kind, object), key = out_keyval(keyval), rc = 0;
    auto extra = static_cast<Word>(reinterpret_cast<intptr_t>(extra_state));
    auto in = static_cast<Word>(reinterpret_cast<intptr_t>(value));
    reinterpret_cast<void (*)(int*, int*, Word*, Word*, int*)>(fn)(&handle, &key, &in, &extra, &rc);
    return in_errclass(rc);
}
template <Kind kind>
void fortran_errhandler(void* fn, uint32_t object, int* code, const char*) {
    int handle = out_object(kind, object), value = out_errclass(*code);
    reinterpret_cast<void (*)(int*, int*)>(fn)(&handle, &value);
    *code = in_errclass(value);
}
inline constexpr CopyAdapter adapter_MPI_Copy_function = fortran_copy<Kind::comm, int>;
inline constexpr CopyAdapter adapter_MPI_Comm_copy_attr_function = fortran_copy<Kind::comm, int64_t>;
inline constexpr CopyAdapter adapter_MPI_Type_copy_attr_function = fortran_copy<Kind::datatype, int64_t>;
inline constexpr CopyAdapter adapter_MPI_Win_copy_attr_function = fortran_copy<Kind::win, int64_t>;
inline constexpr DeleteAdapter adapter_MPI_Delete_function = fortran_delete<Kind::comm, int>;
inline constexpr DeleteAdapter adapter_MPI_Comm_delete_attr_function = fortran_delete<Kind::comm, int64_t>;
inline constexpr DeleteAdapter adapter_MPI_Type_delete_attr_function =
    fortran_delete<Kind::datatype, int64_t>;
inline constexpr DeleteAdapter adapter_MPI_Win_delete_attr_function = fortran_delete<Kind::win, int64_t>;
inline constexpr ErrhandlerAdapter adapter_MPI_Comm_errhandler_function = fortran_errhandler<Kind::comm>;
inline constexpr ErrhandlerAdapter adapter_MPI_Win_errhandler_function = fortran_errhandler<Kind::win>;
inline constexpr ErrhandlerAdapter adapter_MPI_File_errhandler_function = fortran_errhandler<Kind::file>;
inline constexpr ErrhandlerAdapter adapter_MPI_Session_errhandler_function = fortran_errhandler<Kind::comm>;

// Generalized requests: extra_state is the program's variable itself, as in MPICH and Open MPI.
inline int adapter_MPI_Grequest_query_function(void* fn, void* extra_state, Status* status) {
    A_Status s{};
    int rc = 0;
    reinterpret_cast<void (*)(void*, A_Status*, int*)>(fn)(extra_state, &s, &rc);
    in_status(status, &s);
    return in_errclass(rc);
}
inline int adapter_MPI_Grequest_free_function(void* fn, void* extra_state) {
    int rc = 0;
    reinterpret_cast<void (*)(void*, int*)>(fn)(extra_state, &rc);
    return in_errclass(rc);
}
inline int adapter_MPI_Grequest_cancel_function(void* fn, void* extra_state, int complete) {
    int rc = 0;
    reinterpret_cast<void (*)(void*, int*, int*)>(fn)(extra_state, &complete, &rc);
    return in_errclass(rc);
}
inline int adapter_MPI_Datarep_conversion_function(void* fn, void* userbuf, Datatype type, Count count,
                                                   void* filebuf, Offset position, void* extra_state) {
    auto extra = reinterpret_cast<intptr_t>(extra_state);
    int t = out_Datatype(type), n = static_cast<int>(count), rc = 0;
    reinterpret_cast<void (*)(void*, int*, int*, void*, Offset*, intptr_t*, int*)>(fn)(
        userbuf, &t, &n, filebuf, &position, &extra, &rc);
    return in_errclass(rc);
}
inline int adapter_MPI_Datarep_extent_function(void* fn, Datatype type, Aint* extent, void* extra_state) {
    auto extra = reinterpret_cast<intptr_t>(extra_state);
    int t = out_Datatype(type), rc = 0;
    reinterpret_cast<void (*)(int*, Aint*, intptr_t*, int*)>(fn)(&t, extent, &extra, &rc);
    return in_errclass(rc);
}

}  // namespace fortran

}  // namespace fermata::abi
