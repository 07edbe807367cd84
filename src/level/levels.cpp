#include "level/levels.h"

#include <fmt/format.h>

#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "erasure/scheme.h"

namespace fermata::level {
namespace {

constexpr std::string_view kErasure = "rs:";

[[noreturn]] void refuse(const std::string& why) {
    throw Error("--levels " + why + "; it takes a list such as \"memory 30s, files 10m\"", ExitCode::usage);
}

}  // namespace

Levels Levels::parse(const std::string& words) {
    Levels levels;
    std::istringstream list(words.ends_with(",") ? words + " " : words);
    for (std::string item; std::getline(list, item, ',');) {
        std::istringstream parts(item);
        std::string name, period, more;
        parts >> name >> period >> more;
        if (name.empty()) refuse("has an empty entry");
        if (name.starts_with(kErasure) && !erasure::Scheme::parse(name.substr(kErasure.size())))
            refuse(fmt::format("wants K+M of at most {} nodes behind rs:, such as rs:4+2, not '{}'",
                               erasure::Scheme::kMost, visible(name.substr(kErasure.size()))));
        for (const char* later : {"local", "buddy", "rs:", "auto"})
            if (name.starts_with(later))
                throw Error(
                    fmt::format("--levels: '{}' is not there yet; there are memory and files", visible(name)),
                    ExitCode::usage);
        if (name != "memory" && name != "files")
            refuse(fmt::format("knows no level '{}': there are memory and files", visible(name)));
        if (period.empty()) refuse(fmt::format("wants to know how often: {} 10m", name));
        if (!more.empty()) refuse(fmt::format("has '{}' too much", visible(more)));
        const double seconds = parse_duration(period, "--levels");
        if (seconds <= 0) refuse(fmt::format("wants more than 0 for {}", name));
        auto& level = name == "memory" ? levels.memory : levels.files;
        if (level) refuse(fmt::format("names {} twice", name));
        level = seconds;
    }
    if (!levels.memory) refuse("without memory is --interval");
    if (levels.files && *levels.files < *levels.memory) refuse("wants memory at least as often as files");
    return levels;
}

std::string Levels::to_text() const {
    if (!memory) return {};
    std::string text = fmt::format("memory {:g}s", *memory);
    if (files) text += fmt::format(", files {:g}s", *files);
    return text;
}

}  // namespace fermata::level
