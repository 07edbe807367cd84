#include "pmi/command.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/text.h"

namespace fermata::pmi {

std::string shortened(std::string_view text) {
    constexpr size_t kMost = 60;
    return visible(std::string(text.substr(0, kMost))) + (text.size() > kMost ? "…" : "");
}

Command Command::parse(std::string_view line) {
    for (char c : line)
        if (static_cast<unsigned char>(c) < ' ') fail("control characters in '{}'", shortened(line));
    // MPICH 4.2 gives the reason of an MPI_Abort in words.
    const bool has_words = line.starts_with("cmd=abort ");
    Command command;
    for (size_t at = 0;;) {
        at = line.find_first_not_of(' ', at);
        if (at == line.npos) break;
        const size_t end = std::min(line.find(' ', at), line.size());
        const std::string_view word = line.substr(at, end - at);
        const size_t equals = word.find('=');
        at = end;
        if (has_words && (equals == word.npos || equals == 0 || command.find(word.substr(0, equals))))
            continue;
        if (equals == word.npos || equals == 0) fail("'{}' is no word=value", shortened(word));
        std::string key(word.substr(0, equals));
        if (command.find(key)) fail("'{}' twice", shortened(key));
        command.words_.emplace_back(std::move(key), word.substr(equals + 1));
    }
    const std::string* name = command.find("cmd");
    if (!name) name = command.find("mcmd");
    if (!name) fail("no command in '{}'", shortened(line));
    command.name_ = *name;
    return command;
}

const std::string* Command::find(std::string_view word) const {
    for (const auto& [key, value] : words_)
        if (key == word) return &value;
    return nullptr;
}

const std::string& Command::get(std::string_view word) const {
    const std::string* value = find(word);
    if (!value) fail("{} without {}", shortened(name_), word);
    return *value;
}

int Command::number(std::string_view word) const {
    const std::string& text = get(word);
    int value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        fail("{}={} is no number", word, shortened(text));
    return value;
}

}  // namespace fermata::pmi
