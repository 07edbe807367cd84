// Source reads what members of a group have of its generation, here or on other nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "erasure/layout.h"
#include "files/folder.h"

namespace fermata::erasure {

class Source {
  public:
    virtual ~Source() = default;
    // Exactly `bytes` of a file of the member, by its name in the directory of the generation ("files/…" for
    // the program's). Throws Error when they cannot be had. One thread at a time.
    virtual void read(Member member, const std::string& file, uint64_t offset, void* to, size_t bytes) = 0;
    // Says which read of this member comes after those that are expected already: it may begin now. After
    // that comes this read, or none of that member any more.
    virtual void expect(Member, const std::string& /*file*/, uint64_t /*offset*/, size_t /*bytes*/) {}
};

// Directories of this machine: one for each member; none: that one is lost.
class Folders : public Source {
  public:
    explicit Folders(std::vector<std::optional<files::Folder>> folders) : folders_(std::move(folders)) {}
    void read(Member member, const std::string& file, uint64_t offset, void* to, size_t bytes) override;

  private:
    const std::vector<std::optional<files::Folder>> folders_;
    // The last one stays open: reads follow each other.
    std::optional<Member> of_;
    std::string name_;
    Fd fd_;
};

}  // namespace fermata::erasure
