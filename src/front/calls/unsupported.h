// The answer to MPI functions that this build does not support.
#pragma once

namespace fermata::front {

// One line that names the function, then MPI_ERR_UNSUPPORTED_OPERATION through the default error handler.
int unsupported(const char* function) noexcept;
// One line with the reason; returns the class, which is for the front to raise.
int refused(const char* function, const char* why) noexcept;

}  // namespace fermata::front
