#include "lower/cpu.h"

#include <fcntl.h>

#include <set>
#include <sstream>

#include "base/error.h"
#include "base/fd.h"

namespace fermata::lower {
namespace {

// True for instructions that user programs can use; /proc/cpuinfo also lists those that concern kernels and
// hypervisors only.
bool instruction_set(const std::string& flag) {
    static const std::set<std::string> kNames = {
        "3dnowprefetch", "abm",      "adx",        "aes",     "apx",       "avx",       "avx2",  "bmi1",
        "bmi2",          "cldemote", "clflushopt", "clwb",    "clzero",    "cmpccxadd", "cx16",  "enqcmd",
        "erms",          "f16c",     "fma",        "fma4",    "fsgsbase",  "fsrm",      "gfni",  "hle",
        "lahf_lm",       "movbe",    "movdir64b",  "movdiri", "pclmulqdq", "pku",       "pni",   "popcnt",
        "prefetchi",     "raoint",   "rdpid",      "rdrand",  "rdseed",    "rdtscp",    "rtm",   "serialize",
        "sha512",        "sha_ni",   "sm3",        "sm4",     "sse4_1",    "sse4_2",    "sse4a", "ssse3",
        "tbm",           "vaes",     "vpclmulqdq", "waitpkg", "xgetbv1",   "xop",       "xsave", "xsavec",
        "xsaveopt"};
    return kNames.count(flag) || flag.starts_with("avx512") || flag.starts_with("avx_") ||
           flag.starts_with("avx10") || flag.starts_with("amx_");
}

// All words of /proc/cpuinfo's flags.
std::string read_flags() {
    // The first processor's part; the whole text takes long on large nodes.
    Fd fd = open_file("/proc/cpuinfo", O_RDONLY);
    std::string text(16384, '\0');
    size_t size = 0;
    for (ssize_t n; size < text.size() && (n = ::read(fd.get(), text.data() + size, text.size() - size)) > 0;)
        size += static_cast<size_t>(n);
    text.resize(size);
    size_t at = text.find("\nflags");
    size_t colon = at == std::string::npos ? at : text.find(':', at);
    if (colon == std::string::npos) fail("/proc/cpuinfo names no instruction sets");
    return text.substr(colon + 1, text.find('\n', colon) - colon - 1);
}

std::string instructions_of(const std::string& flags) {
    std::istringstream words(flags);
    std::string found;
    for (std::string word; words >> word;)
        if (instruction_set(word)) found += (found.empty() ? "" : " ") + word;
    return found;
}

}  // namespace

const std::string& cpu_flags() {
    static const std::string all = read_flags();
    return all;
}

const std::string& cpu_instructions() {
    static const std::string all = instructions_of(cpu_flags());
    return all;
}

std::string missing_instructions(const std::string& wanted, const std::string& present) {
    std::istringstream words(wanted);
    std::string missing;
    for (std::string word; words >> word;)
        if ((" " + present + " ").find(" " + word + " ") == std::string::npos)
            missing += (missing.empty() ? "" : " ") + word;
    return missing;
}

}  // namespace fermata::lower
