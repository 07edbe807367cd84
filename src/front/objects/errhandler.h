// Error handlers: all upper half. The real library always returns its errors.
#pragma once

#include "front/objects/error_codes.h"
#include "front/objects/registry.h"

namespace fermata::front {

struct ErrhandlerObject : Object {
    constexpr ErrhandlerObject() : Object(Kind::errhandler) {}
    enum class Does : uint32_t { aborts_all, aborts, returns, calls } does = Does::calls;
    Kind of = Kind::comm;      // whose errors: comm, win, file, session
    void* function = nullptr;  // the application's function
    mpi::ErrhandlerAdapter adapter = nullptr;
};

inline ErrhandlerObject* find_errhandler(uint32_t handle) noexcept {
    return static_cast<ErrhandlerObject*>(find_object(handle, Kind::errhandler));
}

// Every holder (handle, communicator, window, file) has a reference; predefined ones are not counted.
void errhandler_ref(ErrhandlerObject* handler) noexcept;
void errhandler_unref(ErrhandlerObject* handler) noexcept;
// Runs a handler on an error of `object`; returns what the application's call returns.
int handle_error(ErrhandlerObject* handler, uint32_t object, int code, const char* function) noexcept;
extern ErrhandlerObject errors_are_fatal, errors_abort, errors_return;

// Default handler of new files: the one of MPI_FILE_NULL (MPI-4.0 14.7).
extern ErrhandlerObject* file_null_errhandler;

}  // namespace fermata::front
