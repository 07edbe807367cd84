#include "root/plan/replicas.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/text.h"

namespace fermata::root {
namespace {

[[noreturn]] void refuse(const std::string& words, const std::string& why) {
    throw Error(fmt::format("--replicas {}: {}", visible(words), why), ExitCode::usage);
}

uint32_t number_in(std::string_view word, const std::string& words) {
    uint32_t number = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc{} || end != word.data() + word.size())
        refuse(words, "say all, a number of ranks, a part of them (50%), or their list (0,4-7)");
    return number;
}

tree::Ranks spread(uint32_t count, uint32_t ranks) {
    tree::Ranks chosen;
    for (uint64_t i = 0; i < count; ++i) chosen.add(tree::Ranks(static_cast<int32_t>(i * ranks / count)));
    return chosen;
}

tree::Ranks listed(const std::string& words, uint32_t ranks) {
    tree::Ranks chosen;
    std::string_view left = words;
    while (!left.empty()) {
        const size_t comma = std::min(left.find(','), left.size());
        const std::string_view one = left.substr(0, comma);
        left.remove_prefix(std::min(comma + 1, left.size()));
        const size_t dash = one.find('-');
        const uint32_t first = number_in(one.substr(0, dash), words);
        const uint32_t last = dash == one.npos ? first : number_in(one.substr(dash + 1), words);
        if (last < first || last >= ranks) refuse(words, fmt::format("the job has ranks 0 to {}", ranks - 1));
        for (uint32_t rank = first; rank <= last; ++rank) chosen.add(tree::Ranks(static_cast<int32_t>(rank)));
    }
    return chosen;
}

}  // namespace

tree::Ranks replicated(const std::string& words, uint32_t ranks) {
    if (words == "all") return spread(ranks, ranks);
    if (words.find_first_of(",-") != words.npos) return listed(words, ranks);
    if (!words.empty() && words.back() == '%') {
        const uint32_t part = number_in(std::string_view(words).substr(0, words.size() - 1), words);
        if (part > 100) refuse(words, "more than all");
        return spread(static_cast<uint32_t>((uint64_t{ranks} * part + 99) / 100), ranks);
    }
    const uint32_t count = number_in(words, words);
    if (count > ranks) refuse(words, fmt::format("the job has {} ranks", ranks));
    return spread(count, ranks);
}

std::string words_of(const tree::Ranks& ranks) {
    if (ranks.empty()) return "0";
    std::string words;  // with a dash in each: "3" alone would be a number
    for (const wire::Run& run : ranks.runs())
        words += fmt::format("{}{}-{}", words.empty() ? "" : ",", run.first,
                             run.first + static_cast<int32_t>(run.count) - 1);
    return words;
}

tree::Ranks replicated(const std::string& words, uint32_t ranks, const tree::Ranks& now) {
    if (words.empty() || (words[0] != '+' && words[0] != '-')) return replicated(words, ranks);
    const std::string rest = words.substr(1);
    const bool all = rest == "all" || (!rest.empty() && rest.back() == '%');
    const tree::Ranks named = all ? replicated(rest, ranks) : listed(rest, ranks);
    if (named.empty()) refuse(words, "name ranks behind the sign, as +0,4-7");
    tree::Ranks then = now;
    if (words[0] == '+')
        then.add(named);
    else
        then.take_away(named);
    return then;
}

}  // namespace fermata::root
