#include "base/cpu_level.h"

#include <sstream>

namespace fermata {
namespace {

constexpr CpuLevel kLevels[] = {
    {"x86-64", "fsgsbase"},  // not of the level: Fermata itself needs it
    {"x86-64-v2", "cx16 lahf_lm pni popcnt sse4_1 sse4_2 ssse3"},
    {"x86-64-v3", "abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"},
    {"x86-64-v4", "avx512bw avx512cd avx512dq avx512f avx512vl"},
};

bool has_word(std::string_view words, std::string_view word) {
    for (size_t at = 0; (at = words.find(word, at)) != words.npos; at += word.size()) {
        const size_t end = at + word.size();
        if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
    }
    return false;
}

}  // namespace

std::vector<std::string> cpu_level_names() {
    std::vector<std::string> names;
    for (const CpuLevel& level : kLevels) names.emplace_back(level.name);
    return names;
}

const CpuLevel* cpu_level(std::string_view name) {
    for (const CpuLevel& level : kLevels)
        if (level.name == name) return &level;
    return nullptr;
}

const CpuLevel& greatest_cpu_level(std::string_view instructions) {
    const CpuLevel* found = &kLevels[0];
    for (const CpuLevel& level : kLevels) {
        std::istringstream words{std::string(level.instructions)};
        for (std::string word; words >> word;)
            if (!has_word(instructions, word)) return *found;
        found = &level;
    }
    return *found;
}

std::string limited_to(const CpuLevel& level, std::string_view instructions) {
    auto has = [&](std::string_view word) {
        for (const CpuLevel& one : kLevels) {
            if (has_word(one.instructions, word)) return true;
            if (one.name == level.name) return false;
        }
        return false;
    };
    std::istringstream words{std::string(instructions)};
    std::string kept;
    for (std::string word; words >> word;)
        if (has(word)) kept += (kept.empty() ? "" : " ") + word;
    return kept;
}

}  // namespace fermata
