// FileSink is a Sink that writes an image into a file, or into a part of a file that other ranks write to
// as well. It goes past the page cache, into huge pages of tmpfs, or through the page cache, as suits the
// storage.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "image/memory_file.h"
#include "image/sink.h"

namespace fermata::image {

class FileSink : public Sink {
  public:
    // A new file (0600); throws if it exists.
    static std::unique_ptr<FileSink> create(const Place& place);
    // Part of a file that exists.
    static std::unique_ptr<FileSink> part_of(const Place& file);
    // `place`: of a file of its own; a part has none.
    FileSink(std::string name, Fd fd, std::optional<Place> place)
        : name_(std::move(name)), fd_(std::move(fd)), place_(std::move(place)), part_(!place_) {}

    const std::string& name() const override { return name_; }
    bool is_part() const override { return part_; }
    bool begin(uint64_t expected, WriteOptions::Direct direct) override;
    size_t space() const override;
    void prepare(State* state, unsigned threads, char* space, size_t stride) override;
    void place(uint64_t begin, uint64_t room) noexcept override;
    void enter() noexcept override;
    void leave() noexcept override;
    Failure put(unsigned thread, const void* data, uint64_t size, uint64_t at) noexcept override;
    void expect_small() noexcept override;
    void end(uint64_t at) noexcept override;
    int sync() noexcept override;
    void close() override;
    int descriptor() const override { return fd_.get(); }

  private:
    void use_again(uint64_t expected);
    void reserve(uint64_t end) noexcept;
    void leave_direct() noexcept;
    Failure write(const char* data, uint64_t size, uint64_t at) noexcept;

    std::string name_;
    Fd fd_;
    std::optional<Place> place_;
    bool part_;
    bool used_again_ = false;  // it may be longer than the image, and holds what it held
    uint64_t begin_ = 0, room_ = 0;
    State* state_ = nullptr;
    MemoryFile memory_;                // the file, if it is one, between enter() and leave()
    std::vector<FileWindow> windows_;  // of the threads, if it is one
};

}  // namespace fermata::image
