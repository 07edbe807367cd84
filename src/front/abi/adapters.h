// How the application's C callbacks are called: with handles, statuses and codes of its own ABI.
// Included after the header of an ABI; see the comment at the top of fermata_types.h for the contract.
#pragma once

namespace fermata::abi {

inline void adapter_MPI_User_function(void* fn, void* in, void* inout, Count* len, Datatype* type) {
    int n = static_cast<int>(*len);
    A_Datatype t = out_Datatype(*type);
    reinterpret_cast<void (*)(void*, void*, int*, A_Datatype*)>(fn)(in, inout, &n, &t);
}
inline void adapter_MPI_User_function_c(void* fn, void* in, void* inout, Count* len, Datatype* type) {
    A_Datatype t = out_Datatype(*type);
    reinterpret_cast<void (*)(void*, void*, Count*, A_Datatype*)>(fn)(in, inout, len, &t);
}

template <typename H>
inline auto out_object(uint32_t object) {
    if constexpr (kKindOf<H> == Kind::comm) return out_Comm(static_cast<Comm>(object));
    if constexpr (kKindOf<H> == Kind::datatype) return out_Datatype(static_cast<Datatype>(object));
    if constexpr (kKindOf<H> == Kind::win) return out_Win(static_cast<Win>(object));
    if constexpr (kKindOf<H> == Kind::file) return out_File(static_cast<File>(object));
    if constexpr (kKindOf<H> == Kind::session) return out_Session(static_cast<Session>(object));
}
template <typename H>
inline int copy_adapter(void* fn, uint32_t object, int keyval, void* extra_state, void* value_in,
                        void** value_out, int* flag) {
    auto handle = out_object<H>(object);
    return in_errclass(reinterpret_cast<int (*)(decltype(handle), int, void*, void*, void*, int*)>(fn)(
        handle, out_keyval(keyval), extra_state, value_in, value_out, flag));
}
template <typename H>
inline int delete_adapter(void* fn, uint32_t object, int keyval, void* value, void* extra_state) {
    auto handle = out_object<H>(object);
    return in_errclass(reinterpret_cast<int (*)(decltype(handle), int, void*, void*)>(fn)(
        handle, out_keyval(keyval), value, extra_state));
}
template <typename H>
inline void errhandler_adapter(void* fn, uint32_t object, int* code, const char* function) {
    auto handle = out_object<H>(object);
    int value = out_errclass(*code);
    // The handlers are varargs functions; what follows the code is up to the library (MPI-4.0 9.3.1).
    reinterpret_cast<void (*)(decltype(handle)*, int*, ...)>(fn)(&handle, &value, function);
    *code = in_errclass(value);
}
inline constexpr CopyAdapter adapter_MPI_Comm_copy_attr_function = copy_adapter<Comm>;
inline constexpr CopyAdapter adapter_MPI_Copy_function = copy_adapter<Comm>;
inline constexpr CopyAdapter adapter_MPI_Type_copy_attr_function = copy_adapter<Datatype>;
inline constexpr CopyAdapter adapter_MPI_Win_copy_attr_function = copy_adapter<Win>;
inline constexpr DeleteAdapter adapter_MPI_Comm_delete_attr_function = delete_adapter<Comm>;
inline constexpr DeleteAdapter adapter_MPI_Delete_function = delete_adapter<Comm>;
inline constexpr DeleteAdapter adapter_MPI_Type_delete_attr_function = delete_adapter<Datatype>;
inline constexpr DeleteAdapter adapter_MPI_Win_delete_attr_function = delete_adapter<Win>;
inline constexpr ErrhandlerAdapter adapter_MPI_Comm_errhandler_function = errhandler_adapter<Comm>;
inline constexpr ErrhandlerAdapter adapter_MPI_Win_errhandler_function = errhandler_adapter<Win>;
inline constexpr ErrhandlerAdapter adapter_MPI_File_errhandler_function = errhandler_adapter<File>;
inline constexpr ErrhandlerAdapter adapter_MPI_Session_errhandler_function = errhandler_adapter<Session>;

inline int adapter_MPI_Grequest_query_function(void* fn, void* extra_state, Status* status) {
    A_Status s{};
    int rc = reinterpret_cast<int (*)(void*, A_Status*)>(fn)(extra_state, &s);
    in_status(status, &s);
    return in_errclass(rc);
}
inline int adapter_MPI_Grequest_free_function(void* fn, void* extra_state) {
    return in_errclass(reinterpret_cast<int (*)(void*)>(fn)(extra_state));
}
inline int adapter_MPI_Grequest_cancel_function(void* fn, void* extra_state, int complete) {
    return in_errclass(reinterpret_cast<int (*)(void*, int)>(fn)(extra_state, complete));
}
inline int adapter_MPI_Datarep_conversion_function(void* fn, void* userbuf, Datatype type, Count count,
                                                   void* filebuf, Offset position, void* extra_state) {
    return in_errclass(reinterpret_cast<int (*)(void*, A_Datatype, int, void*, Offset, void*)>(fn)(
        userbuf, out_Datatype(type), static_cast<int>(count), filebuf, position, extra_state));
}
inline int adapter_MPI_Datarep_conversion_function_c(void* fn, void* userbuf, Datatype type, Count count,
                                                     void* filebuf, Offset position, void* extra_state) {
    return in_errclass(reinterpret_cast<int (*)(void*, A_Datatype, Count, void*, Offset, void*)>(fn)(
        userbuf, out_Datatype(type), count, filebuf, position, extra_state));
}
inline int adapter_MPI_Datarep_extent_function(void* fn, Datatype type, Aint* extent, void* extra_state) {
    return in_errclass(
        reinterpret_cast<int (*)(A_Datatype, Aint*, void*)>(fn)(out_Datatype(type), extent, extra_state));
}

}  // namespace fermata::abi
