#include "base/text.h"

#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace fermata {

double parse_duration(const std::string& text, const std::string& what) {
    const char* at = text.c_str();
    double total = 0;
    bool any = false;
    while (*at) {
        char* end = nullptr;
        double value = std::strtod(at, &end);
        if (end == at || !std::isfinite(value) || value < 0) break;
        std::string unit;
        while (*end && ((*end >= 'a' && *end <= 'z'))) unit += *end++;
        double scale = unit.empty() || unit == "s"    ? 1
                       : unit == "ms"                 ? 1e-3
                       : unit == "m" || unit == "min" ? 60
                       : unit == "h"                  ? 3600
                       : unit == "d"                  ? 86400
                                                      : -1;
        if (scale < 0) break;
        total += value * scale;
        any = true;
        at = end;
    }
    if (!any || *at)
        throw Error(fmt::format("{}: '{}' is not a duration (examples: 0.5s, 10m, 1h30m)", what, text),
                    ExitCode::usage);
    if (total > kLongestDuration)
        throw Error(fmt::format("{}: '{}' is longer than 100 years", what, text), ExitCode::usage);
    return total;
}

double parse_bytes(const std::string& text, const std::string& what, bool rate) {
    const char* at = text.c_str();
    char* end = nullptr;
    const double value = std::isdigit(static_cast<unsigned char>(*at)) ? std::strtod(at, &end) : 0;
    std::string unit = end ? end : "";
    if (rate && unit.ends_with("/s")) unit.resize(unit.size() - 2);
    double scale = unit.empty() || unit == "B" ? 1 : 0;
    constexpr std::string_view kPrefixes = "KMGTPE";
    const size_t power =
        unit.empty() ? std::string::npos : kPrefixes.find(static_cast<char>(std::toupper(unit[0])));
    if (power != std::string::npos && (unit.substr(1) == "B" || unit.substr(1) == "iB"))
        scale = std::pow(unit.size() == 3 ? 1024.0 : 1000.0, static_cast<double>(power + 1));
    const double bytes = value * scale;
    if (!(bytes > 0) || bytes > 1e24)
        throw Error(
            fmt::format("{}: '{}' is not {} (examples: {})", what, visible(text),
                        rate ? "a bandwidth" : "a size", rate ? "500MB/s, 2GiB/s" : "16GB, 512MiB, 1.5TB"),
            ExitCode::usage);
    return bytes;
}

std::string human_duration(double seconds) {
    if (!(seconds < 1e12)) return "never";
    if (seconds == 0) return "0 s";
    if (seconds < 0.1) return fmt::format("{:.1f} ms", seconds * 1e3);
    if (seconds < 10) return fmt::format("{:.2f} s", seconds);
    if (seconds < 120) return fmt::format("{:.1f} s", seconds);
    if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
    if (seconds < 2 * 86400) return fmt::format("{:.1f} h", seconds / 3600);
    if (seconds < 2 * 365.25 * 86400) return fmt::format("{:.1f} d", seconds / 86400);
    return fmt::format("{:.1f} years", seconds / (365.25 * 86400));
}

std::string human_size(uint64_t bytes) {
    static const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = static_cast<double>(bytes);
    int unit = 0;
    while (value >= 1024 && unit < 5) {
        value /= 1024;
        ++unit;
    }
    return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string local_time_text(time_t when) {
    struct tm local {};
    ::localtime_r(&when, &local);
    char text[32];
    ::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
    return text;
}

namespace {

struct Character {
    size_t length = 0;  // bytes; 0: these are no UTF-8
    uint32_t point = 0;
};

Character utf8_character(const std::string& text, size_t at) {
    auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    unsigned first = byte(at);
    if (first < 0x80) return {1, first};
    size_t length = first >= 0xc2 && first < 0xe0   ? 2
                    : first >= 0xe0 && first < 0xf0 ? 3
                    : first >= 0xf0 && first < 0xf5 ? 4
                                                    : 0;
    if (length == 0) return {};
    uint32_t point = first & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; ++i) {
        if ((byte(at + i) & 0xc0) != 0x80) return {};
        point = point << 6 | (byte(at + i) & 0x3f);
    }
    bool shortest = length == 2 || (length == 3 ? point >= 0x800 : point >= 0x10000 && point < 0x110000);
    bool surrogate = point >= 0xd800 && point < 0xe000;
    return shortest && !surrogate ? Character{length, point} : Character{};
}

bool may_be_shown(uint32_t point) {
    bool control = point < 0x20 || (point >= 0x7f && point < 0xa0);  // C0, DEL, C1
    bool turns = (point >= 0x202a && point <= 0x202e) ||
                 (point >= 0x2066 && point <= 0x2069);  // the reading direction
    bool line = point == 0x2028 || point == 0x2029;
    return !control && !turns && !line;
}

// Characters for private use, one for each byte: F4 8F BC 80 to F4 8F BF BF.
constexpr uint32_t kBytes = 0x10ff00;
constexpr bool is_byte(uint32_t point) { return point >= kBytes && point <= kBytes + 0xff; }

}  // namespace

std::string as_utf8(const std::string& bytes) {
    std::string text;
    for (size_t at = 0; at < bytes.size();) {
        auto [length, point] = utf8_character(bytes, at);
        if (length != 0 && !is_byte(point)) {
            text += bytes.substr(at, length);
            at += length;
        } else {
            auto byte = static_cast<unsigned char>(bytes[at++]);
            text += "\xf4\x8f";
            text += static_cast<char>(0xbc + (byte >> 6));
            text += static_cast<char>(0x80 + (byte & 0x3f));
        }
    }
    return text;
}

std::string bytes_of_utf8(const std::string& text) {
    std::string bytes;
    for (size_t at = 0; at < text.size();) {
        auto [length, point] = utf8_character(text, at);
        if (length != 0 && is_byte(point))
            bytes += static_cast<char>(point - kBytes);
        else
            bytes += text.substr(at, std::max<size_t>(length, 1));
        at += std::max<size_t>(length, 1);
    }
    return bytes;
}

std::string text_of_numbers(const std::set<uint32_t>& numbers) {
    std::string text;
    for (auto at = numbers.begin(); at != numbers.end();) {
        const uint32_t first = *at;
        uint32_t last = first;
        while (++at != numbers.end() && *at == last + 1) last = *at;
        text += fmt::format("{}{}", text.empty() ? "" : ",", first);
        if (last > first) text += fmt::format("{}{}", last == first + 1 ? "," : "-", last);
    }
    return text;
}

std::string visible(const std::string& text) {
    std::string shown;
    for (size_t at = 0; at < text.size();) {
        auto [length, point] = utf8_character(text, at);
        if (length == 0 || !may_be_shown(point))
            shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at++]));
        else
            shown += text.substr(at, length), at += length;
    }
    return shown;
}

std::string text_of_end(int status) {
    return WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                               : fmt::format("exit code {}", WEXITSTATUS(status));
}

std::string shell_quoted(const std::string& word) {
    auto plain = [](unsigned char c) { return std::isalnum(c) || std::strchr("-_./:=+,@%^", c); };
    if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
    std::string quoted = "'";
    for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
    std::string best;
    size_t least = 1 + (word.size() < 4 ? 1 : word.size() < 9 ? 2 : word.size() / 3);
    for (const std::string& candidate : candidates) {
        // Levenshtein's distance, a row at a time.
        std::vector<size_t> row(candidate.size() + 1);
        for (size_t i = 0; i < row.size(); ++i) row[i] = i;
        for (size_t i = 0; i < word.size(); ++i) {
            size_t diagonal = row[0];
            row[0] = i + 1;
            for (size_t k = 0; k < candidate.size(); ++k)
                diagonal = std::exchange(
                    row[k + 1], std::min({row[k] + 1, row[k + 1] + 1, diagonal + (word[i] != candidate[k])}));
        }
        if (row.back() < least && row.back() < candidate.size()) least = row.back(), best = candidate;
    }
    return best;
}

}  // namespace fermata
