#include "split/loader/library_search.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>

#include "files/place.h"

namespace fermata::split {
namespace {

constexpr const char* kDefaultDirectories =
    "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib";

void replace_all(std::string& text, const std::string& from, const std::string& to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

// A library for this machine, not just a file of that name (multiarch directories hold others).
bool usable(const std::string& path) {
    files::Opened file = files::open_regular(path, O_RDONLY);
    Elf64_Ehdr header{};
    if (!file || ::pread(file.fd.get(), &header, sizeof header, 0) != sizeof header) return false;
    return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
           header.e_machine == EM_X86_64;
}

}  // namespace

std::string LibrarySearch::in_list(const std::string& name, const std::string& list,
                                   const std::string& owner) const {
    std::string origin = owner.substr(0, owner.rfind('/'));
    for (size_t at = 0; at <= list.size();) {
        size_t end = list.find_first_of(":;", at);
        if (end == std::string::npos) end = list.size();
        std::string directory = list.substr(at, end - at);
        at = end + 1;
        for (const char* word : {"$ORIGIN", "${ORIGIN}"}) replace_all(directory, word, origin);
        for (const char* word : {"$PLATFORM", "${PLATFORM}"}) replace_all(directory, word, "x86_64");
        std::string with_lib = directory;
        for (const char* word : {"$LIB", "${LIB}"}) {
            replace_all(directory, word, "lib/x86_64-linux-gnu");
            replace_all(with_lib, word, "lib64");
        }
        if (directory.empty()) directory = with_lib = ".";
        for (const std::string& d : {directory, with_lib})
            if (usable(d + "/" + name)) return d + "/" + name;
    }
    return "";
}

// The format since glibc 2.2: "glibc-ld.so.cache1.1", count, string size, …, entries {flags, key, value,
// osversion, hwcap}, strings (sysdeps/generic/dl-cache.h). An older header may come first.
const std::map<std::string, std::string>& LibrarySearch::cache() {
    if (cache_read_) return cache_;
    cache_read_ = true;
    std::ifstream file("/etc/ld.so.cache", std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    size_t at = bytes.find("glibc-ld.so.cache1.1");
    if (at == std::string::npos) return cache_;
    struct Entry {
        int32_t flags;
        uint32_t key, value, os;
        uint64_t hwcap;
    };
    uint32_t count;
    if (at + 48 > bytes.size()) return cache_;
    std::memcpy(&count, bytes.data() + at + 20, 4);
    if (count > (bytes.size() - at - 48) / sizeof(Entry)) return cache_;
    for (uint32_t i = 0; i < count; ++i) {
        Entry e;
        std::memcpy(&e, bytes.data() + at + 48 + i * sizeof e, sizeof e);
        // 0x0303: ELF, libc6, x86-64.
        if ((e.flags & 0xffff) != 0x0303 || at + e.key >= bytes.size() || at + e.value >= bytes.size())
            continue;
        cache_.emplace(bytes.c_str() + at + e.key, bytes.c_str() + at + e.value);
    }
    return cache_;
}

std::string LibrarySearch::find(const std::string& name, const std::vector<const ElfFile*>& chain) {
    if (name.find('/') != std::string::npos) return usable(name) ? name : "";
    const ElfFile& object = *chain.back();
    std::string found;
    if (object.runpath.empty())
        for (size_t i = chain.size(); i-- > 0 && found.empty();)
            if (chain[i]->runpath.empty() && !chain[i]->rpath.empty())
                found = in_list(name, chain[i]->rpath, chain[i]->path);
    if (found.empty() && !library_path_.empty()) found = in_list(name, library_path_, object.path);
    if (found.empty() && !object.runpath.empty()) found = in_list(name, object.runpath, object.path);
    if (found.empty()) {
        auto it = cache().find(name);
        if (it != cache().end() && access(it->second.c_str(), R_OK) == 0) found = it->second;
    }
    if (found.empty()) found = in_list(name, kDefaultDirectories, object.path);
    return found;
}

}  // namespace fermata::split
