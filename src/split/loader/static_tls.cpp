#include "split/loader/static_tls.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "split/loader/elf_file.h"
#include "split/loader/static_tls_name.h"

namespace fermata::split {
namespace {

// glibc's own value of the tunable (2.36).
constexpr uint64_t kReserve = 512;

uint64_t tls_of(const std::string& path) {
    ElfFile file;
    if (!file.read(path).empty()) return 0;
    for (const Elf64_Phdr& segment : file.segments)
        if (segment.p_type == PT_TLS) return segment.p_memsz + std::max<uint64_t>(segment.p_align, 1) - 1;
    return 0;
}

}  // namespace

uint64_t static_tls_of(const ProgramCheck& check) {
    uint64_t bytes = 0;  // of the program itself ld.so knows
    for (const std::string& library : check.libraries) bytes += tls_of(library);
    for (const std::string& library : check.preloaded) bytes += tls_of(library);
    return bytes;
}

std::string static_tls_variable(uint64_t more, const std::string& theirs) {
    constexpr std::string_view kTunable = "glibc.rtld.optional_static_tls=";
    uint64_t reserve = kReserve;
    if (size_t at = theirs.find(kTunable); at != std::string::npos)
        reserve = std::strtoull(theirs.c_str() + at + kTunable.size(), nullptr, 0);
    return kStaticTlsVariable + std::to_string(reserve + more);
}

}  // namespace fermata::split
