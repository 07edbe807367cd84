// State that the front keeps for a program that saves its own state: own_state.cpp.
#pragma once

#include "split/own_state.h"

namespace fermata::front::posix {

split::OwnState* own_state() noexcept;
// After a restart, before any thread of the program runs. With either thread pointer.
void own_state_restarted() noexcept;

}  // namespace fermata::front::posix
