#include "base/error.h"

#include <filesystem>
#include <new>

#include "base/invariant.h"

namespace fermata {

void fail_with(fmt::string_view format, fmt::format_args args) { throw Error(fmt::vformat(format, args)); }

void fail_errno_with(fmt::string_view format, fmt::format_args args) {
    int code = errno;
    throw Error(fmt::vformat(format, args) + ": " + std::strerror(code));
}

void invariant_broken(const char* what) {
    fail("internal error: {} (please report it, with the command)", what);
}

std::string line_of(const std::exception& error) {
    if (auto* files = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
        std::string paths = files->path1().string();
        if (!files->path2().empty()) paths += " or " + files->path2().string();
        return fmt::format("cannot use {}: {}", paths, files->code().message());
    }
    if (auto* system = dynamic_cast<const std::system_error*>(&error))
        return "the system refused: " + system->code().message();
    if (dynamic_cast<const std::bad_alloc*>(&error)) return "there is not enough memory";
    if (dynamic_cast<const Error*>(&error)) return error.what();
    return fmt::format("unexpected: {} (please report it, with the command)", error.what());
}

}  // namespace fermata
