// Paths that name this process's executable: the application, not the lower half.
#pragma once

namespace fermata::front::posix {

// The path to use instead: the application's, or `path` itself.
const char* instead_of(const char* path);

}  // namespace fermata::front::posix
