#include "api/veloc_words.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace fermata::api {
namespace {

const std::set<std::string> kWithoutMeaning = {"persistent_interval",
                                               "ec_interval",
                                               "watchdog_interval",
                                               "scratch_versions",
                                               "failure_domain",
                                               "axl_type",
                                               "chksum",
                                               "meta",
                                               "mode"};

std::string trimmed(const std::string& text) {
    const char* blank = " \t\r";
    const size_t first = text.find_first_not_of(blank);
    return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(blank) - first + 1);
}

template <typename... Args>
[[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) {
    throw Error(fmt::format(format, std::forward<Args>(args)...), ExitCode::usage);
}

}  // namespace

VelocWords parse_veloc_words(const std::string& text, const std::string& path) {
    VelocWords words;
    size_t number = 0;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        const std::string line = trimmed(text.substr(begin, end - begin));
        begin = end + 1;
        ++number;
        if (line.empty() || line[0] == '#' || line[0] == ';' || line[0] == '[') continue;
        const size_t is = line.find('=');
        if (is == std::string::npos) wrong("{}:{}: a line is 'key = value'", path, number);
        const std::string key = trimmed(line.substr(0, is)), value = trimmed(line.substr(is + 1));
        if (key == "scratch") {
            words.scratch = value;
        } else if (key == "persistent") {
            words.persistent = value;
        } else if (key == "fermata") {
            words.options = value;
        } else if (key == "max_versions") {
            auto [at, error] = std::from_chars(value.data(), value.data() + value.size(), words.versions);
            if (error != std::errc{} || at != value.data() + value.size())
                wrong("{}:{}: max_versions is a number, 0 for all", path, number);
        } else if (kWithoutMeaning.count(key) == 0) {
            words.unknown.push_back(fmt::format("{}:{}: '{}'", path, number, visible(line)));
        }
    }
    if (words.scratch.empty() || words.persistent.empty())
        wrong("{}: it needs scratch = FOLDER and persistent = FOLDER", path);
    return words;
}

}  // namespace fermata::api
