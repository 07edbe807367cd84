// Entries that Debian's libmpichfort.so.12 (MPICH 4.0.2) asks of MPICH beside MPI itself: attributes as
// Fortran sees them.
//
// The library passes a type with each value: 0 a pointer (C), 1 an INTEGER(KIND=MPI_ADDRESS_KIND), 3 an
// INTEGER (mpich's MPIR_Attr_type). Key values and generalized requests of mpif.h and `use mpi` are made by
// procedures of our own, which libmpichfort's lose against because the front is preloaded; those of mpi_f08
// by C's functions, and then the two set_ functions are told that the callbacks are Fortran's.
#include "front/fortran/mpich_fortran.h"

using namespace fermata::abi;

namespace {

// Fortran's predefined key values are C's plus one (mpif.h of 4.0.2); only the attributes 0x6440xxxx and
// 0x6600xxxx of communicators and windows are predefined.
int c_keyval(int keyval) {
    const int kind = keyval & 0x7fff0000;
    return (kind == 0x64400000 || kind == 0x66000000) && (keyval & 1) == 0 ? keyval - 1 : keyval;
}

AttrLanguage language(int type) {
    return type == 3 ? AttrLanguage::fortran_int : type == 1 ? AttrLanguage::fortran_aint : AttrLanguage::c;
}

// The value is stored as a whole word by get; the callers pass a MPI_Aint or pointer sized place.
int finish(int rc, int keyval, void* value, const int* flag, int type) {
    if (rc != FM_SUCCESS || *flag == 0) return out_errclass(rc);
    if (type == 0) {
        after_get_attr(keyval, value, flag);
    } else if (type == 1) {
        auto* word = static_cast<int64_t*>(value);
        *word = attribute_value(in_keyval(keyval), *word);
    } else {
        // libmpichfort reads an MPI_Aint even for INTEGER attributes.
        int narrow_value;
        memcpy(&narrow_value, value, sizeof narrow_value);
        auto word = static_cast<intptr_t>(attribute_value(in_keyval(keyval), narrow_value));
        memcpy(value, &word, sizeof word);
    }
    return 0;
}

}  // namespace

#define ATTRIBUTES(T)                                                                                     \
    FRONT_FORTRAN int MPII_##T##_set_attr(A_##T object, int keyval, void* value, int type) {              \
        return out_errclass(fm_##T##_set_attr(in_##T(object), in_keyval(keyval), value, language(type))); \
    }                                                                                                     \
    FRONT_FORTRAN int MPII_##T##_get_attr(A_##T object, int keyval, void* value, int* flag, int type) {   \
        keyval = c_keyval(keyval);                                                                        \
        int rc = fm_##T##_get_attr(in_##T(object), in_keyval(keyval), value, flag, language(type));       \
        return finish(rc, keyval, value, flag, type);                                                     \
    }
ATTRIBUTES(Comm)
ATTRIBUTES(Win)
using A_Type = A_Datatype;
static Datatype in_Type(A_Type type) { return in_Datatype(type); }
ATTRIBUTES(Type)

FRONT_FORTRAN void MPII_Keyval_set_proxy(int keyval, void*, void*) {
    const int key = in_keyval(keyval);
    switch (fm_keyval_owner(key)) {
        case Kind::comm:
            return fm_keyval_is_fortran(key, adapter_MPI_Comm_copy_attr_function,
                                        adapter_MPI_Comm_delete_attr_function);
        case Kind::datatype:
            return fm_keyval_is_fortran(key, adapter_MPI_Type_copy_attr_function,
                                        adapter_MPI_Type_delete_attr_function);
        case Kind::win:
            return fm_keyval_is_fortran(key, adapter_MPI_Win_copy_attr_function,
                                        adapter_MPI_Win_delete_attr_function);
        default:
            return;
    }
}
FRONT_FORTRAN void MPII_Grequest_set_lang_f77(A_Request request) {
    fm_grequest_is_fortran(in_Request(request), adapter_MPI_Grequest_query_function,
                           adapter_MPI_Grequest_free_function, adapter_MPI_Grequest_cancel_function);
}
