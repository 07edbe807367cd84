#include "report/html.h"

#include <fmt/core.h>
#include <time.h>

#include "base/text.h"
#include "draw/svg.h"

namespace fermata::report {

std::string number(const std::string& name, double value, const std::string& text) {
    return fmt::format("<span data-k=\"{}\" data-v=\"{}\">{}</span>", draw::escaped(name), value,
                       draw::escaped(text));
}

std::string seconds(const std::string& name, double value) {
    return number(name, value, human_duration(value));
}

std::string count(const std::string& name, size_t value) {
    return number(name, static_cast<double>(value), std::to_string(value));
}

std::string bytes(const std::string& name, double value) {
    return number(name, value, human_size(static_cast<uint64_t>(value)));
}

std::string bandwidth(const std::string& name, double value) {
    return number(name, value, human_size(static_cast<uint64_t>(value)) + "/s");
}

std::string utc(int64_t ms) {
    const auto when = static_cast<time_t>(ms / 1000);
    struct tm parts {};
    ::gmtime_r(&when, &parts);
    char text[40];
    ::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
    return text;
}

std::string moment(const std::string& name, int64_t ms) {
    return fmt::format("<span data-k=\"{}\" data-v=\"{}\">{}</span>", draw::escaped(name), ms, utc(ms));
}

std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
    std::string text = "<table><thead><tr>";
    for (const std::string& cell : head) text += "<th>" + draw::escaped(cell) + "</th>";
    text += "</tr></thead><tbody>\n";
    for (const auto& row : rows) {
        text += "<tr>";
        for (const std::string& cell : row) text += "<td>" + cell + "</td>";
        text += "</tr>\n";
    }
    return text + "</tbody></table>\n";
}

}  // namespace fermata::report
