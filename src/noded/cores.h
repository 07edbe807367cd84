// The processors that this process may use, core by core.
#pragma once

#include <cstddef>
#include <vector>

namespace fermata::noded {

// Numbers of processors; those of one core (its hardware threads) stand together. Never empty.
std::vector<std::vector<int>> own_cores();
// Binds the calling thread to these processors. May be called after fork().
void bind_to(const std::vector<int>& processors) noexcept;

}  // namespace fermata::noded
