// What the split room throws: one line that says what, where and what to do. Never thrown over the gate.
#pragma once

#include <stdexcept>

namespace fermata::split {

struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace fermata::split
