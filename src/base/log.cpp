#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"

namespace fermata {

void start_log(const std::string& name) {
    const char* level = std::getenv("FERMATA_LOG");
    auto logger = std::make_shared<spdlog::logger>(name, std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_pattern("fermata %H:%M:%S.%f [%n] %v");
    logger->set_level(level ? spdlog::level::from_str(level) : spdlog::level::off);
    spdlog::set_default_logger(std::move(logger));
}

void say(const std::string& line) {
    // Names in it may come from files of others: nothing in them speaks to the terminal.
    std::string text = "fermata: ";
    for (size_t begin = 0; begin <= line.size();) {
        size_t end = std::min(line.find('\n', begin), line.size());
        text += visible(line.substr(begin, end - begin)) + "\n";
        begin = end + 1;
    }
    // One write, so that lines of several ranks do not mix.
    [[maybe_unused]] ssize_t n = ::write(2, text.data(), text.size());
}

}  // namespace fermata
