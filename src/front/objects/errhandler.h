// Error handlers, classes, codes and strings: all upper half. The real library always returns its errors.
#pragma once

#include "front/objects/registry.h"

namespace fermata::front {

struct ErrhandlerObject : Object {
    ErrhandlerObject() : Object(Kind::errhandler) {}
    enum class Does : uint32_t { aborts_all, aborts, returns, calls } does = Does::calls;
    Kind of = Kind::comm;      // whose errors: comm, win, file, session
    void* function = nullptr;  // adapter with internal values
    void* cookie = nullptr;    // the application's function for the adapter
};

inline ErrhandlerObject* find_errhandler(uint32_t handle) noexcept {
    return static_cast<ErrhandlerObject*>(find_object(handle, Kind::errhandler));
}

// Text of an error class or code; never null.
const char* error_text(int code) noexcept;
int error_class_of(int code) noexcept;

}  // namespace fermata::front
