#include "image/save_options.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "image/codec.h"

namespace fermata::image {
namespace {

constexpr unsigned kMostThreads = 64, kLongestChain = 1000;
constexpr int kMostLevel = 19;  // above, zstd needs memory by the hundred MiB

// Reads a number that takes all characters, and is within the bounds.
template <class Number>
std::optional<Number> number(const std::string& text, Number least, Number most) {
    Number value{};
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || at != text.data() + text.size() || value < least || value > most) return {};
    return value;
}

bool compress(WriteOptions& write, const std::string& value) {
    std::string name = value.substr(0, value.find(':'));
    WriteOptions as_default;
    write.measure = value == "auto";
    write.level = as_default.level;
    if (write.measure) {
        write.codec = Codec::shuffle_lz4;
        return true;
    }
    for (Codec codec : {Codec::none, Codec::lz4, Codec::zstd, Codec::shuffle_lz4, Codec::shuffle_zstd}) {
        if (name != name_of(codec)) continue;
        write.codec = codec;
        if (name.size() == value.size()) return true;
        auto level = number(value.substr(name.size() + 1), 1, kMostLevel);
        if (level) write.level = *level;
        return level && (codec == Codec::zstd || codec == Codec::shuffle_zstd);
    }
    return false;
}

// One word with its value; false when there is no such thing.
bool take(SaveOptions& o, const std::string& word, bool of_the_wire) {
    size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    if (equals == std::string::npos) {
        if (name == "forked") return o.forked = true;
        if (name == "trust-memory") return o.trust_memory = true;
        if (name != "incremental") return false;
        o.incremental = Incremental::pages;
        return true;
    }
    std::string value = word.substr(equals + 1);
    auto chosen = [&](auto& to, auto... pairs) {
        bool found = false;
        ((value == pairs.first ? (to = pairs.second, found = true) : false), ...);
        return found;
    };
    auto set = [](auto& to, auto given) {
        if (given) to = *given;
        return given.has_value();
    };
    using Direct = WriteOptions::Direct;
    if (name == "busy") return chosen(o.refuse_busy, std::pair("refuse", true));
    if (name == "incremental")
        return chosen(o.incremental, std::pair("hashes", Incremental::hashes),
                      std::pair("split", Incremental::split));
    if (name == "chain") return set(o.chain, number(value, 1u, kLongestChain));
    if (name == "compress") return compress(o.write, value);
    if (name == "io")
        return chosen(o.write.direct, std::pair("direct", Direct::yes), std::pair("buffered", Direct::no));
    if (name == "layout") return set(o.write.layout, Layout::of(value));
    if (name == "threads") return set(o.write.threads, number(value, 1u, kMostThreads));
    if (name == "base" && of_the_wire) return set(o.base, number(value, uint32_t{1}, UINT32_MAX));
    return false;
}

SaveOptions parsed(const std::string& words, bool of_the_wire) {
    SaveOptions options;
    for (size_t at = 0; at < words.size();) {
        size_t end = std::min(words.find_first_of(" ,\t\n", at), words.size());
        std::string word = words.substr(at, end - at);
        at = end + 1;
        if (!word.empty() && !take(options, word, of_the_wire))
            throw Error(fmt::format("--save-options has no '{}'; its words: {}", word, save_option_words()),
                        ExitCode::usage);
    }
    return options;
}

}  // namespace

std::string save_option_words() {
    return fmt::format(
        "forked, trust-memory, busy=refuse, incremental[=hashes|split], chain=1-{}, "
        "compress=none|lz4|zstd[:1-{}]|shuffle-lz4|shuffle-zstd[:1-{}]|auto, io=direct|buffered, "
        "layout=files|shared|node|group:N, threads=1-{}",
        kLongestChain, kMostLevel, kMostLevel, kMostThreads);
}

SaveOptions SaveOptions::parse(const std::string& words) { return parsed(words, false); }

SaveOptions SaveOptions::from_text(const std::string& text) { return parsed(text, true); }

std::string SaveOptions::to_text() const {
    const SaveOptions plain;
    std::string text;
    auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
    if (forked) add("forked");
    if (trust_memory) add("trust-memory");
    if (refuse_busy) add("busy=refuse");
    if (incremental == Incremental::pages) add("incremental");
    if (incremental == Incremental::split) add("incremental=split");
    if (incremental == Incremental::hashes) add("incremental=hashes");
    if (chain != plain.chain) add(fmt::format("chain={}", chain));
    if (write.measure)
        add("compress=auto");
    else if (write.codec != plain.write.codec)
        add(fmt::format("compress={}{}", name_of(write.codec),
                        write.level != plain.write.level ? fmt::format(":{}", write.level) : ""));
    if (write.direct != WriteOptions::Direct::automatic)
        add(write.direct == WriteOptions::Direct::yes ? "io=direct" : "io=buffered");
    if (write.layout.together()) add("layout=" + write.layout.word());
    if (write.threads) add(fmt::format("threads={}", write.threads));
    if (base) add(fmt::format("base={}", base));
    return text;
}

}  // namespace fermata::image
