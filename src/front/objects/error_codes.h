// Error classes, codes and their texts: those of the standard, and the application's own ones.
#pragma once

namespace fermata::front {

// Text of an error class or code; never null.
const char* error_text(int code) noexcept;
int error_class_of(int code) noexcept;
int last_used_code() noexcept;  // MPI_LASTUSEDCODE
bool error_code_is_known(int code) noexcept;

// The application's own. False: there is no such class or code.
int add_error_class() noexcept;
bool add_error_code(int error_class, int* code) noexcept;
bool set_error_text(int code, const char* text) noexcept;
// False also while it has a text, or a class codes (MPI-4.1; MPICH 4.2.1 says so).
bool remove_error_code(int code, bool wants_class) noexcept;

}  // namespace fermata::front
