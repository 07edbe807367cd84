#include "base/proc_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>

namespace fermata {

std::string read_proc(const std::string& path) {
    std::string text;
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return text;
    char part[4096];
    for (ssize_t size; (size = read(fd, part, sizeof part)) > 0;)
        text.append(part, static_cast<size_t>(size));
    close(fd);
    return text;
}

std::string field(const std::string& text, const std::string& key) {
    size_t at = text.compare(0, key.size() + 1, key + ":") == 0 ? 0 : text.find("\n" + key + ":");
    if (at == std::string::npos) return {};
    if (text[at] == '\n') ++at;
    at += key.size() + 1;
    size_t end = text.find('\n', at);
    size_t begin = text.find_first_not_of(" \t", at);
    if (begin == std::string::npos || begin >= end) return {};
    return text.substr(begin, end - begin);
}

std::optional<uint64_t> number_at_start(const std::string& text) {
    uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{}) return {};
    return value;
}

}  // namespace fermata
