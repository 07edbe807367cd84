// An Event is one line of a job's journal (docs/formats/journal.md): what happened, to which job, when.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "journal/kind.h"

namespace fermata::journal {

// Beside the generations; what was there when it became too long has the second name.
inline constexpr const char* kName = "journal.jsonl";
inline constexpr const char* kOlder = "journal.jsonl.1";
inline constexpr uint64_t kMostBytes = 4u << 20;  // then it is rotated
inline constexpr size_t kMostLine = 64u << 10;    // a longer one is not one of ours

struct Event {
    Kind kind = Kind::start;
    uint64_t job = 0;     // image::Identity::job: the same over restarts
    int64_t time_ms = 0;  // since 1970
    // Facts that belong to this kind, by name.
    nlohmann::json fields = nlohmann::json::object();

    bool operator==(const Event&) const = default;
};

// With its newline. Text that is no UTF-8 becomes it, and a line that would be too long loses its longest
// texts' ends: whatever is told fits.
std::string to_line(const Event& event);
// Without the newline. Gives none when the line is not one of ours. Never throws for what is in the text.
std::optional<Event> parse_line(const std::string& line);

// For people: "checkpoint gen-000003: 1.2 GiB in 3.4 s".
std::string sentence(const Event& event);

// The value of a field; `otherwise` when it is not there or of another kind.
std::string text_in(const Event& event, const char* name, const std::string& otherwise = "");
double number_in(const Event& event, const char* name, double otherwise = 0);

}  // namespace fermata::journal
