#include "life/cpu_words.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace fermata::life {
namespace {

// Names of what is new in a level, for each library that can be told to go without it.
struct Words {
    std::string_view level;
    const char* glibc;     // sysdeps/x86/include/cpu-features.h
    const char* numpy;     // NPY_DISABLE_CPU_FEATURES: names of 1.20 to 2.3, which warn of others
    const char* openblas;  // OPENBLAS_CORETYPE: the best kernels of the level
    const char* mkl;       // MKL_ENABLE_INSTRUCTIONS, likewise
};
constexpr Words kWords[] = {
    {"x86-64", "", "", "Prescott", "SSE4_2"},
    {"x86-64-v2", "-SSE3,-SSSE3,-SSE4_1,-SSE4_2,-POPCNT", "", "Nehalem", "SSE4_2"},
    {"x86-64-v3", "-AVX,-AVX2,-AVX_Fast_Unaligned_Load,-BMI1,-BMI2,-F16C,-FMA,-LZCNT,-MOVBE",
     "AVX F16C FMA3 AVX2", "Haswell", "AVX2"},
    {"x86-64-v4", "-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD,-AVX512DQ,-XSAVEC", "AVX512F AVX512CD AVX512_SKX",
     "SkylakeX", "AVX512"},
    {"", "-AVX512ER,-AVX512PF,-AVX512_VBMI,-AVX512_VBMI2,-FMA4,-XOP,-RTM", "AVX512_CLX AVX512_CNL AVX512_ICL",
     "", ""},
};
constexpr char kHwcaps[] = "glibc.cpu.hwcaps=";

void add(std::string& all, const std::string& more, char between) {
    if (more.empty()) return;
    if (!all.empty()) all += between;
    all += more;
}

// ld.so takes the last of two: a user's own words are in front of ours, in the same.
std::string with_hwcaps(const std::string& tunables, const std::string& words) {
    std::string all, theirs;
    for (size_t at = 0; at < tunables.size();) {
        const size_t end = std::min(tunables.find(':', at), tunables.size());
        const std::string one = tunables.substr(at, end - at);
        if (one.starts_with(kHwcaps))
            theirs = one.substr(sizeof kHwcaps - 1);
        else
            add(all, one, ':');
        at = end + 1;
    }
    add(theirs, words, ',');
    add(all, kHwcaps + theirs, ':');
    return all;
}

}  // namespace

std::map<std::string, std::string> cpu_environment(const CpuLevel& level, const std::string& tunables) {
    std::string glibc, numpy;
    std::map<std::string, std::string> environment;
    bool above = false;
    for (const Words& words : kWords) {
        if (above) {
            add(glibc, words.glibc, ',');
            add(numpy, words.numpy, ' ');
        }
        if (level.name != words.level) continue;
        above = true;
        environment = {{"OPENBLAS_CORETYPE", words.openblas}, {"MKL_ENABLE_INSTRUCTIONS", words.mkl}};
    }
    environment["NPY_DISABLE_CPU_FEATURES"] = numpy;
    std::erase_if(environment, [](const auto& one) { return std::getenv(one.first.c_str()) != nullptr; });
    environment["GLIBC_TUNABLES"] = with_hwcaps(tunables, glibc);
    return environment;
}

}  // namespace fermata::life
