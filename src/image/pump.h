// The pump is the pipeline of a writer: several threads take pieces of memory, pass over zero pages, form
// blocks, checksum and perhaps compress the blocks, and write them. It uses no malloc, no locks, no
// exceptions and no thread-local storage, so that it also runs in a child made by a bare fork of a process
// with many threads; its results lie in memory shared with that child.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "image/image.h"
#include "image/sink.h"

namespace fermata::image {

struct Piece {
    uint64_t address;
    const char* data;
    uint32_t length;
    bool ground;  // zero pages count, too
};

// Shared between the process and its forked child.
struct PumpResult {
    std::atomic<uint32_t> next_piece;
    std::atomic<uint32_t> blocks;
    std::atomic<uint64_t> extents;
    std::atomic<uint64_t> at;       // end of the file so far; a multiple of the page size
    std::atomic<uint64_t> content;  // bytes of the extents that were written here
    std::atomic<uint64_t> zeros;    // bytes of zero pages passed over
    Sink::State sink;
    std::atomic<int> mode;      // of the choice by measuring, see pump.cpp
    std::atomic<uint64_t> raw;  // bytes of memory that have been dealt with
    std::atomic<uint64_t> mode_since_ns, mode_since_raw, plain_speed;
    std::atomic<int> error;  // errno of the first failure, 0 = none
    std::atomic<uint64_t> error_at;
    const char* error_what;
    // by Writer::seal
    bool complete;
    uint64_t file_size;
    Checksum header;
};

struct Pump {
    Sink* sink = nullptr;
    Codec codec = Codec::none;
    int level = 1;
    bool measure = false;
    FileKey key;  // encrypts
    uint64_t largest_block = kLargestBlock;
    unsigned threads = 1;
    std::vector<Piece> pieces;
    uint32_t first_late = UINT32_MAX;  // pieces from here on may be left to a child
    Content kept;                      // content of earlier generations that this image refers to

    // One shared mapping, made by allocate().
    void* arena = nullptr;
    size_t arena_size = 0;
    PumpResult* result = nullptr;
    Block* blocks = nullptr;
    uint32_t max_blocks = 0;
    Extent* extents = nullptr;
    uint64_t max_extents = 0;
    // One private mapping: work memory and stacks of the threads.
    char* work = nullptr;
    size_t work_size = 0, work_each = 0;

    ~Pump();
    void allocate();
    // Writes pieces [.., end).
    void run(uint32_t end) noexcept;
    void fail(int error, const char* what, uint64_t at) noexcept;
    // The sink wants large pieces.
    bool large() const noexcept { return result->sink.large.load(std::memory_order_relaxed); }
    bool failed() const noexcept { return result->error.load(std::memory_order_relaxed) != 0; }
    // False after fail(). `thread` as in Sink::put.
    bool put(unsigned thread, const void* data, uint64_t size, uint64_t at) noexcept;
};

}  // namespace fermata::image
