// A Sink takes the bytes of an image: at offsets from its beginning, in any order, from several threads at
// once, also from a child made by a bare fork of a process with many threads. So its noexcept functions use
// no malloc, no lock of libc and no thread-local storage. Files are the first implementation (file_sink.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "image/image.h"

namespace fermata::image {

class Sink {
  public:
    // Stands for a thread that has no number.
    static constexpr unsigned kNobody = UINT32_MAX;

    // Why bytes did not get there; `code` is an errno, 0 = they did.
    struct Failure {
        int code = 0;
        const char* what = "";  // "write", as in "cannot write FILE at offset 17"
        uint64_t at = 0;
        explicit operator bool() const noexcept { return code != 0; }
    };
    // State that a process and its forked child both change; lies in memory that they share.
    struct State {
        // Large pieces of whole pages are wanted, from memory that is used again and again.
        std::atomic<bool> large{false};
        std::atomic<uint64_t> reserved{0};  // there may be room up to here that nobody needs
    };

    virtual ~Sink() = default;
    virtual const std::string& name() const = 0;  // for messages
    // The image is one of several parts: its place is said by place(), later than begin().
    virtual bool is_part() const = 0;

    // First of all. Some `expected` bytes come. Whether large pieces are wanted.
    virtual bool begin(uint64_t expected, WriteOptions::Direct direct) = 0;
    // Bytes of address space that each writing thread gives; then `threads` of them, the first at `space`,
    // the others `stride` bytes further on each. `state` stays valid.
    virtual size_t space() const = 0;
    virtual void prepare(State* state, unsigned threads, char* space, size_t stride) = 0;
    // The image may use [begin, begin + room).
    virtual void place(uint64_t begin, uint64_t room) noexcept = 0;

    // Around the writing of many threads.
    virtual void enter() noexcept = 0;
    virtual void leave() noexcept = 0;
    // `thread`: number of a thread between enter() and leave(), or kNobody.
    virtual Failure put(unsigned thread, const void* data, uint64_t size, uint64_t at) noexcept = 0;
    // Pieces of any size come from now on.
    virtual void expect_small() noexcept = 0;
    // The image ends here: nobody writes any more, what was reserved beyond goes back.
    virtual void end(uint64_t at) noexcept = 0;
    // All is on storage, or an errno.
    virtual int sync() noexcept = 0;
    // Throws when something went wrong after all.
    virtual void close() = 0;
    // The descriptor that writing needs, -1 = none: a child keeps it open.
    virtual int descriptor() const = 0;
};

}  // namespace fermata::image
