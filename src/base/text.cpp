#include "base/text.h"

#include <cmath>
#include <cstdlib>

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

}  // namespace fermata
