// A second lower half for a program that lives: a child of this process keeps the memory of the upper half,
// drops this lower half, and starts another one's executable in its place, as the kernel's execve would.
//
// In the process that stands still, on a thread of its lower half:
//
//     SecondHalf second(wanted);      maps the executable, its dynamic loader and their stack
//     if (fork without libc == 0) second.enter();
//
// The child has one thread. Its main() finds what was handed over by SecondHalf::handed_over(), starts as a
// first one does, with a call of resume_layout() for ensure_layout() and the upper half there in partition(),
// and takes the upper half over. The parent stays as it is until it knows that the child is ready; a child
// that fails is no loss.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/range.h"

namespace fermata::split::hop {

struct Wanted {
    std::string program;                     // path of the executable, position independent
    std::vector<std::string> arguments{};    // with argv[0]
    std::vector<std::string> environment{};  // NAME=value
    std::string handed_over{};               // bytes for its main()
    std::vector<int> descriptors{};          // of this lower half's, which the second one goes on with
};

class SecondHalf {
  public:
    // Throws fermata::Error when something cannot be mapped.
    explicit SecondHalf(const Wanted& wanted);
    ~SecondHalf();
    SecondHalf(const SecondHalf&) = delete;
    SecondHalf& operator=(const SecondHalf&) = delete;

    // Never returns. In the child, without libc's locks: only system calls.
    [[noreturn]] void enter() noexcept;

    // Returns the bytes, in a process whose lower half is not its first. Takes the variable that names them
    // out of the environment, and their memory away.
    static std::optional<std::string> handed_over();

  private:
    struct Block;  // memory that both halves have
    void unmap() noexcept;
    Range block_, executable_, loader_;
    uint64_t entry_ = 0, stack_pointer_ = 0;
    std::vector<Range> closed_;  // numbers of descriptors
};

}  // namespace fermata::split::hop
