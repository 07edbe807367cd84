#include "split/thread_pointer/code_book.h"

#include <Zydis/Zydis.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "base/fd.h"
#include "split/pages/pagemap.h"

namespace fermata::split::thread_pointer {
namespace {

constexpr const char* kFolder = ".code";
constexpr char kDecoder[] = FERMATA_DECODER_SOURCES;
// Smaller ones are decoded sooner than their file is opened.
constexpr uint64_t kWorthIt = 64 << 10;
constexpr uint64_t kMostBytes = 4 << 20;
// Libraries are renewed now and then, and nobody takes the old ones away.
constexpr size_t kMostFiles = 4096;

uint64_t nanoseconds(const struct timespec& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// Gives none for an object that has no name in the book.
std::optional<CodeHead> head_of(const MappedObject& object) {
    const Range code = object.extent();
    struct stat file {};
    const char* path = object.name.empty() ? "/proc/self/exe" : object.name.c_str();
    if (object.build_id.empty() || code.size() < kWorthIt || ::stat(path, &file) != 0) return {};
    CodeHead head;
    static_assert(sizeof kDecoder == sizeof head.decoder + 1);
    std::memcpy(head.decoder.data(), kDecoder, sizeof head.decoder);
    head.zydis = ZydisGetVersion();
    head.device = file.st_dev;
    head.inode = file.st_ino;
    head.size = static_cast<uint64_t>(file.st_size);
    head.modified_ns = nanoseconds(file.st_mtim);
    head.changed_ns = nanoseconds(file.st_ctim);
    head.begin = code.begin() - object.base;
    head.end = code.end() - object.base;
    if (head.end > UINT32_MAX) return {};
    return head;
}

// All pages of the code are the file's: neither relocations nor a hook of somebody's have been written there.
bool as_in_file(const MappedObject& object) {
    const Fd pagemap(open_pagemap());
    bool same = true;
    for (Range code : object.code)
        for_each_page_word(pagemap.get(), {page_down(code.begin()), page_up(code.end())},
                           [&](uint64_t, uint64_t word) {
                               bool there = (word & kWordPresent) != 0;
                               if ((word & kWordSwapped) != 0 || (there && (word & kWordFile) == 0))
                                   same = false;
                           });
    return same;
}

}  // namespace

CodeBook::CodeBook(const std::string& directory) noexcept try {
    if (directory.empty()) return;
    auto base = files::Folder::find_at(directory);
    auto ours = [](const files::Folder& one) {
        return one.owner() == ::geteuid() && (one.mode() & 077) == 0;
    };
    if (!base || !ours(*base)) return;
    auto folder = base->find(kFolder);
    if (!folder) folder = base->make(kFolder);
    if (!folder) folder = base->find(kFolder);  // another rank was faster
    if (folder && ours(*folder)) folder_ = *folder;
} catch (const std::exception&) {  // then there is no book
}

Accesses CodeBook::accesses_of(const MappedObject& object) const {
    std::optional<CodeHead> head = folder_ ? head_of(object) : std::nullopt;
    if (!head) return find_accesses(object);
    if (auto accesses = known(object, *head)) return std::move(*accesses);
    Accesses accesses = find_accesses(object);
    if (accesses.doubt.empty()) note(object, *head, accesses);
    return accesses;
}

std::optional<Accesses> CodeBook::known(const MappedObject& object, const CodeHead& head) const noexcept try {
    if (!folder_.has(object.build_id) || !as_in_file(object)) return {};
    auto prefixes = prefixes_in(folder_.text(object.build_id, kMostBytes), head);
    if (!prefixes) return {};
    Accesses accesses;
    accesses.prefixes.reserve(prefixes->size());
    for (uint32_t prefix : *prefixes) {
        const uint64_t at = object.base + prefix;
        auto holds = [at](Range code) { return code.contains(at); };
        if (std::none_of(object.code.begin(), object.code.end(), holds)) return {};
        if (*reinterpret_cast<const uint8_t*>(at) != kFs) return {};
        accesses.prefixes.push_back(at);
    }
    return accesses;
} catch (const std::exception&) {
    return {};
}

void CodeBook::note(const MappedObject& object, const CodeHead& head, const Accesses& accesses) const noexcept
    try {
    if (!as_in_file(object)) return;
    Prefixes prefixes;
    for (uint64_t at : accesses.prefixes) prefixes.push_back(static_cast<uint32_t>(at - object.base));
    std::sort(prefixes.begin(), prefixes.end());
    const std::string bytes = bytes_of(head, prefixes);
    if (bytes.size() > kMostBytes || folder_.names().size() >= kMostFiles) return;
    folder_.replace_unsynced(object.build_id, bytes);
} catch (const std::exception&) {  // the next start decodes again
}

}  // namespace fermata::split::thread_pointer
