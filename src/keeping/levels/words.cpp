#include "keeping/levels/words.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "keeping/levels/kind.h"

namespace fermata::keeping {
namespace {

using level::Levels;

// "memory, local and files"
std::string all_shapes() {
    std::string text;
    for (const Kind& kind : kinds())
        text += fmt::format("{}{}",
                            &kind == &kinds().front()  ? ""
                            : &kind == &kinds().back() ? " and "
                                                       : ", ",
                            kind.shape);
    return text;
}

Entry entry_of(const std::string& item) {
    Entry entry;
    std::istringstream parts(item);
    parts >> entry.name;
    for (std::string word; parts >> word;) entry.words.push_back(word);
    if (entry.name.empty()) refuse_levels("has an empty entry");
    if (entry.name == "auto") refuse_levels("has auto beside others, which stands alone");
    return entry;
}

// Takes the argument from the entry's name.
const Kind& kind_of(Entry& entry) {
    const size_t colon = entry.name.find(':');
    for (const Kind& kind : kinds()) {
        if (kind.takes_argument() != (colon != std::string::npos) || entry.name.substr(0, colon) != kind.name)
            continue;
        if (kind.takes_argument()) {
            entry.argument = entry.name.substr(colon + 1);
            entry.name.resize(colon);
        }
        return kind;
    }
    refuse_levels(fmt::format("knows no level '{}': there are {}", visible(entry.name), all_shapes()));
}

// Whatever is copied is at the first level before.
void check_periods(const Levels& levels) {
    if (!levels) refuse_levels("without memory or local is --interval");
    for (const Kind& kind : kinds()) {
        const std::optional<double> every = kind.period(levels);
        if (every && kind.needs_memory && !levels.memory)
            refuse_levels(fmt::format("has no memory, and {} keeps what is there", kind.name));
        if (every && *every > 0 && *every < levels.interval())
            refuse_levels(fmt::format("wants {} at least as often as {}", levels.memory ? "memory" : "local",
                                      kind.name));
    }
}

// They are measured and planned from there.
Levels automatic() {
    Levels levels;
    levels.automatic = true;
    levels.memory = 60;
    levels.buddy = levels.files = 0;
    return levels;
}

std::string text_of(const Kind& kind, const Levels& levels) {
    if (kind.text) return kind.text(levels);
    const std::optional<double> every = kind.period(levels);
    return !every ? "" : *every > 0 ? fmt::format("{} {:g}s", kind.name, *every) : std::string(kind.name);
}

}  // namespace

void refuse_levels(const std::string& why) {
    throw Error("--levels " + why + "; it takes a list such as \"memory 30s, buddy 2m, files 10m\"",
                ExitCode::usage);
}

double Entry::period() const {
    if (words.empty()) refuse_levels(fmt::format("wants to know how often: {} 10m", visible(title())));
    if (words.size() > 1) refuse_levels(fmt::format("has '{}' too much", visible(words[1])));
    const double seconds = parse_duration(words[0], "--levels");
    if (seconds <= 0) refuse_levels(fmt::format("wants more than 0 for {}", visible(title())));
    return seconds;
}

void read_described(const Entry& entry, Levels& levels) {
    levels.described[entry.name] = {entry.argument, entry.period()};
}

std::string text_of_described(const char* name, const Levels& levels) {
    const Levels::Wish* wish = levels.wish(name);
    return wish ? fmt::format("{}:{} {:g}s", name, wish->argument, wish->period) : "";
}

std::optional<double> period_of_described(const char* name, const Levels& levels) {
    const Levels::Wish* wish = levels.wish(name);
    return wish ? std::optional(wish->period) : std::nullopt;
}

Levels parse_levels(const std::string& words) {
    if (words == "auto") return automatic();
    Levels levels;
    std::set<std::string> named;
    std::istringstream list(words.ends_with(",") ? words + " " : words);
    for (std::string item; std::getline(list, item, ',');) {
        Entry entry = entry_of(item);
        const Kind& kind = kind_of(entry);
        if (!named.insert(entry.name).second) refuse_levels(fmt::format("names {} twice", entry.name));
        kind.read(entry, levels);
    }
    check_periods(levels);
    return levels;
}

std::string text_of(const Levels& levels) {
    std::vector<std::string> texts;
    for (const Kind& kind : kinds())
        if (std::string text = text_of(kind, levels); !text.empty()) texts.push_back(std::move(text));
    return fmt::format("{}{}", levels.automatic ? "auto: " : "", fmt::join(texts, ", "));
}

}  // namespace fermata::keeping
