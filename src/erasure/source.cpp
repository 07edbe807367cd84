#include "erasure/source.h"

#include "base/error.h"
#include "base/invariant.h"
#include "erasure/contents.h"

namespace fermata::erasure {

void Folders::read(Member member, const std::string& file, uint64_t offset, void* to, size_t bytes) {
    always(number(member) < folders_.size(), "a member that the group does not have");
    const auto& folder = folders_.at(number(member));
    if (!folder) fail("member {} is not there", number(member));
    if (of_ != member || name_ != file) {
        of_.reset();
        fd_ = folder_of(*folder, file).read(name_in_folder(file));
        of_ = member;
        name_ = file;
    }
    pread_all(fd_.get(), to, bytes, offset, folder->path_of(file));
}

}  // namespace fermata::erasure
