#include "image/file_checksum.h"

#include <algorithm>
#include <memory>

#include "base/fd.h"
#include "image/hash.h"

namespace fermata::image {
namespace {

constexpr uint64_t kPart = 1 << 20;

}  // namespace

Checksum checksum_of_file(const files::Folder& folder, const std::string& name, uint64_t bytes) {
    const Fd file = folder.read(name);
    const auto buffer = std::make_unique<std::byte[]>(kPart);
    Hash hash;
    for (uint64_t at = 0; at < bytes;) {
        const auto size = static_cast<size_t>(std::min(bytes - at, kPart));
        pread_all(file.get(), buffer.get(), size, at, folder.path_of(name));
        hash.add(buffer.get(), size);
        at += size;
    }
    return hash.sum();
}

}  // namespace fermata::image
