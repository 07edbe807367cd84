#include "level/levels.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "erasure/scheme.h"

namespace fermata::level {
namespace {

constexpr const char* kAnywhere = "anywhere";
constexpr std::string_view kErasure = "rs:";

[[noreturn]] void refuse(const std::string& why) {
    throw Error("--levels " + why + "; it takes a list such as \"memory 30s, buddy 2m, files 10m\"",
                ExitCode::usage);
}

// One entry of the list: NAME [PERIOD] [WORD].
struct Entry {
    std::string name, period, more, beyond;
};

Entry entry_of(const std::string& item) {
    Entry entry;
    std::istringstream parts(item);
    parts >> entry.name >> entry.period >> entry.more >> entry.beyond;
    if (entry.name.empty()) refuse("has an empty entry");
    if (entry.name == "auto") refuse("has auto beside others, which stands alone");
    if (entry.name != "memory" && entry.name != "local" && entry.name != "buddy" && entry.name != "files" &&
        !entry.name.starts_with(kErasure))
        refuse(fmt::format("knows no level '{}': there are memory, local, buddy, rs:K+M and files",
                           visible(entry.name)));
    return entry;
}

double seconds_of(const Entry& entry) {
    if (entry.period.empty()) refuse(fmt::format("wants to know how often: {} 10m", entry.name));
    const double seconds = parse_duration(entry.period, "--levels");
    if (seconds <= 0) refuse(fmt::format("wants more than 0 for {}", entry.name));
    return seconds;
}

Levels::Parity parity_of(const Entry& entry) {
    const std::string words = entry.name.substr(kErasure.size());
    const auto scheme = erasure::Scheme::parse(words);
    if (!scheme)
        refuse(fmt::format("wants K+M of at most {} nodes behind rs:, such as rs:4+2, not '{}'",
                           erasure::Scheme::kMost, visible(words)));
    return {*scheme, seconds_of(entry)};
}

// Whatever is copied is at the first level before.
void check_periods(const Levels& levels) {
    if (!levels) refuse("without memory or local is --interval");
    const char* first = levels.memory ? "memory" : "local";
    if (levels.files && *levels.files < levels.interval())
        refuse(fmt::format("wants {} at least as often as files", first));
    if (!levels.memory && (levels.buddy || levels.parity))
        refuse("has no memory, and buddy and rs keep what is there");
    if (!levels.memory) return;
    if (levels.local && *levels.local < *levels.memory) refuse("wants memory at least as often as local");
    if (levels.buddy && *levels.buddy > 0 && *levels.buddy < *levels.memory)
        refuse("wants memory at least as often as buddy");
    if (levels.parity && levels.parity->period < *levels.memory)
        refuse("wants memory at least as often as rs");
}

}  // namespace

Levels Levels::parse(const std::string& words) {
    Levels levels;
    if (words == "auto") {
        levels.automatic = true;
        levels.memory = 60;  // until something is measured
        levels.buddy = levels.files = 0;
        return levels;
    }
    std::istringstream list(words.ends_with(",") ? words + " " : words);
    for (std::string item; std::getline(list, item, ',');) {
        Entry entry = entry_of(item);
        if (entry.name.starts_with(kErasure)) {
            if (levels.parity) refuse("names rs twice");
            if (!entry.more.empty()) refuse(fmt::format("has '{}' too much", visible(entry.more)));
            levels.parity = parity_of(entry);
            continue;
        }
        auto& level = entry.name == "memory"  ? levels.memory
                      : entry.name == "local" ? levels.local
                      : entry.name == "buddy" ? levels.buddy
                                              : levels.files;
        if (level) refuse(fmt::format("names {} twice", entry.name));
        if (entry.name == "buddy") {
            if (entry.period == kAnywhere && entry.more.empty()) std::swap(entry.period, entry.more);
            levels.buddy_anywhere = entry.more == kAnywhere;
            if (levels.buddy_anywhere) entry.more = std::exchange(entry.beyond, "");
        }
        if (!entry.more.empty()) refuse(fmt::format("has '{}' too much", visible(entry.more)));
        level = entry.name == "buddy" && entry.period.empty() ? 0 : seconds_of(entry);
    }
    check_periods(levels);
    return levels;
}

uint64_t Levels::rate(double of_node, double period) const {
    constexpr uint64_t kLeast = 64u << 20;  // slower than this no copy need be
    if (copy_limit > 0) return copy_limit;
    return period <= 0 ? 0 : std::max(static_cast<uint64_t>(of_node / (period / 2)), kLeast);
}

std::string Levels::to_text() const {
    if (!*this) return {};
    std::string text = automatic ? "auto: " : "";
    if (memory) text += fmt::format("memory {:g}s", *memory);
    if (local) text += fmt::format("{}local {:g}s", memory ? ", " : "", *local);
    if (buddy) text += *buddy > 0 ? fmt::format(", buddy {:g}s", *buddy) : ", buddy";
    if (buddy && buddy_anywhere) text += fmt::format(" {}", kAnywhere);
    if (parity) text += fmt::format(", {}{} {:g}s", kErasure, parity->scheme.to_text(), parity->period);
    if (files) text += *files > 0 ? fmt::format(", files {:g}s", *files) : ", files";
    return text;
}

}  // namespace fermata::level
