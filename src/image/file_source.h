// FileSource is a Source that reads an image from a file, or from a part of one.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "image/image.h"
#include "image/source.h"

namespace fermata::image {

class FileSource : public Source {
  public:
    // Throws when it cannot be opened.
    explicit FileSource(const Place& place);

    const std::string& name() const override { return name_; }
    std::optional<uint64_t> part() const override { return part_; }
    uint64_t size() const override { return size_; }
    void read(void* to, uint64_t size, uint64_t at) const override;
    uint64_t holes(uint64_t at, uint64_t size) const override;
    std::unique_ptr<Stream> stream(bool past_cache) const override;
    int descriptor() const override { return fd_.get(); }

  private:
    std::string name_;
    std::optional<uint64_t> part_;
    Fd fd_;
    uint64_t size_ = 0;
};

}  // namespace fermata::image
