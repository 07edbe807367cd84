#include "lower/command.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace fermata::lower {
namespace {

std::optional<size_t> number_in(std::string_view text) {
    size_t number = 0;
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc{} || at != text.data() + text.size()) return {};
    return number;
}

struct PartOfRank {
    int number;
    std::vector<std::string> words;
};

// words: what stands behind "--parts".
PartOfRank part_of(const std::vector<std::string>& words, int rank) {
    if (rank < 0) fail("the launcher does not say which rank this is, and there are several programs");
    if (words.empty()) fail("--parts needs a value");
    std::string_view lengths = words[0];
    size_t begin = 1, ranks = 0;
    for (int number = 0; !lengths.empty(); ++number) {
        std::string_view one = lengths.substr(0, lengths.find(','));
        lengths.remove_prefix(std::min(lengths.size(), one.size() + 1));
        size_t colon = one.find(':');
        auto mine = number_in(one.substr(0, colon));
        auto count = colon == one.npos ? std::nullopt : number_in(one.substr(colon + 1));
        if (!mine || !count || *count > words.size() - begin) fail("--parts {} is damaged", words[0]);
        ranks += *mine;
        if (static_cast<size_t>(rank) < ranks)
            return {number,
                    {words.begin() + static_cast<ptrdiff_t>(begin),
                     words.begin() + static_cast<ptrdiff_t>(begin + *count)}};
        begin += *count;
    }
    fail("rank {} is none of the {} that have a program", rank, ranks);
}

}  // namespace

std::string own_directory() {
    char path[4096];
    ssize_t n = ::readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) fail_errno("cannot read /proc/self/exe");
    std::string self(path, static_cast<size_t>(n));
    return self.substr(0, self.rfind('/'));
}

Command command_in(std::vector<std::string> words, int rank) {
    Command command;
    command.front_dir = own_directory() + "/../../lib/fermata/fronts";
    if (char* real = ::realpath(command.front_dir.c_str(), nullptr)) {
        command.front_dir = real;
        ::free(real);
    }
    if (!words.empty() && words[0] == "--parts") {
        PartOfRank part = part_of({words.begin() + 1, words.end()}, rank);
        command.number = part.number;
        words = std::move(part.words);
    }
    size_t at = 0;
    if (at + 1 < words.size() && words[at] == "--argv0") {
        command.argv0 = words[at + 1];
        at += 2;
    }
    if (at < words.size() && words[at] == "--") ++at;
    if (at < words.size()) command.program = words[at++];
    command.arguments.assign(words.begin() + static_cast<ptrdiff_t>(at), words.end());
    return command;
}

}  // namespace fermata::lower
