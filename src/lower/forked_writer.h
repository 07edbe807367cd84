// A child of the rank that writes its image while the program goes on: its memory is a copy of the moment it
// was made, which the kernel copies page by page as the program writes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/fd.h"
#include "image/image.h"

namespace fermata::lower {

class ForkedWriter {
    // One word that parent and child share.
    class Gate {
      public:
        ~Gate();
        bool make() noexcept;
        void open() noexcept;
        void wait() noexcept;  // until open, a quarter of a second at most

      private:
        uint32_t* word_ = nullptr;
    };

  public:
    ForkedWriter() = default;
    ForkedWriter(const ForkedWriter&) = delete;
    ForkedWriter& operator=(const ForkedWriter&) = delete;
    ~ForkedWriter() { kill(); }

    // Makes the child, which waits for let_go(), does `first` and writer.write_rest() and nothing else (so
    // `first` uses no malloc and no lock either). It holds no descriptor but the
    // image's, runs none of libc's fork handlers, gives no SIGCHLD, is not seen by the program's wait(), and
    // dies with this process. All upper threads stand still. False when there is no memory or process to be
    // had.
    bool start(image::Writer& writer, const std::function<void()>& first);
    // The program goes on: now the child may use processors. It does so anyway after a quarter of a second.
    void let_go() noexcept;

    int descriptor() const { return pidfd_.get(); }  // readable when the child has ended
    // True once it has ended; `why` is then empty or says how it died.
    bool ended(std::string& why);
    void kill() noexcept;

  private:
    Fd pidfd_;
    Gate gate_;
};

// May the program of this rank write all of `bytes` again while a child holds them? "" or why not.
// `neighbours`: ranks on this node that ask the same.
std::string too_little_memory(uint64_t bytes, unsigned neighbours);

// Is the node about to run out of memory?
bool memory_is_short();

}  // namespace fermata::lower
