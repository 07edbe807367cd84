// Steps of the core's start.
#pragma once

namespace fermata::front {

// Makes the rank's clock; from the library's constructor, once the lower half is known.
void start_clock() noexcept;

}  // namespace fermata::front
