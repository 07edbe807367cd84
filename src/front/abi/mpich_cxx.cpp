// MPICH's C++ bindings (libmpichcxx.so.12) tell MPICH how functions of the application are called that take
// references to objects of C++.
//
// The library has one caller for all ops and one for all error handlers, and hands it over with each of them.
#include "front/abi/mpich.h"

using namespace fermata::abi;

namespace {

using OpCaller = void (*)(const void* in, void* inout, int len, A_Datatype type, void* function);
using ErrorCaller = void (*)(int kind, int* handle, int* code, void* function);
enum : int { kComm = 0, kFile = 1, kWin = 2 };  // the library's kinds

OpCaller op_caller;
ErrorCaller error_caller;

void call_op(void* fn, void* in, void* inout, Count* len, Datatype* type) {
    op_caller(in, inout, static_cast<int>(*len), out_Datatype(*type), fn);
}

template <int kind>
void call_handler(void* fn, uint32_t object, int* code, const char*) {
    int value = out_errclass(*code);
    A_File file = out_File(static_cast<File>(object));
    int handle = kind == kWin ? out_Win(static_cast<Win>(object)) : out_Comm(static_cast<Comm>(object));
    error_caller(kind, kind == kFile ? reinterpret_cast<int*>(&file) : &handle, &value, fn);
    *code = in_errclass(value);
}

}  // namespace

FRONT_API void MPII_Op_set_cxx(A_Op op, OpCaller caller) {
    op_caller = caller;
    fm_op_calls(in_Op(op), call_op, nullptr);
}

FRONT_API void MPII_Errhandler_set_cxx(A_Errhandler errhandler, ErrorCaller caller) {
    error_caller = caller;
    switch (fm_errhandler_owner(in_Errhandler(errhandler))) {
        case Kind::file:
            return fm_errhandler_calls(in_Errhandler(errhandler), call_handler<kFile>);
        case Kind::win:
            return fm_errhandler_calls(in_Errhandler(errhandler), call_handler<kWin>);
        default:
            return fm_errhandler_calls(in_Errhandler(errhandler), call_handler<kComm>);
    }
}
