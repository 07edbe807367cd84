// System V shared memory of the lower half: shmat needs a place of our choice, shmdt must not leave a gap.
#pragma once

namespace fermata::split {

// Linux's convention: -errno on failure. No TLS.
long lower_shmat(int id, const void* address, int flags) noexcept;
long lower_shmdt(const void* address) noexcept;
// Has the lower half ever attached it? (The lower half may have let it go since.)
bool lower_segment(int id) noexcept;
// Attached above on behalf of the program.
void give_segment_to_program(int id) noexcept;

}  // namespace fermata::split
