// A Fault is an error of the API on its way to the caller: a code and one sentence.
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

#include "fermata/fermata_core.h"

namespace fermata::api {

struct Fault {
    fermata_code code = FERMATA_OK;
    std::string sentence;
    explicit operator bool() const { return code != FERMATA_OK; }
};

template <typename... Args>
[[noreturn]] void refuse(fermata_code code, fmt::format_string<Args...> format, Args&&... args) {
    throw Fault{code, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace fermata::api
