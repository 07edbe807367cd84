// System V shared memory of the lower half: shmat needs a place of our choice, shmdt must not leave a gap.
#pragma once

namespace fermata::split {

// Linux's convention: -errno on failure. No TLS.
long lower_shmat(int id, const void* address, int flags) noexcept;
long lower_shmdt(const void* address) noexcept;

}  // namespace fermata::split
