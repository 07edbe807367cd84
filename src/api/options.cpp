#include "api/options.h"

#include <charconv>
#include <set>

#include "api/fault.h"
#include "base/error.h"
#include "base/text.h"

namespace fermata::api {
namespace {

// Words of --save-options that apply to a program's own state; the others are about processes.
const std::set<std::string> kImageWords = {"compress", "layout", "io", "threads"};

unsigned number_of(const std::string& key, const std::string& value) {
    unsigned number = 0;
    auto [at, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || at != value.data() + value.size())
        refuse(FERMATA_ARGUMENT, "{}={}: a number is needed", visible(key), visible(value));
    return number;
}

}  // namespace

Options parse_options(const std::string& words) try {
    Options options;
    std::string image;
    for (size_t begin = 0; begin < words.size();) {
        size_t end = words.find_first_of(", ", begin);
        std::string word = words.substr(begin, end - begin);
        begin = end == std::string::npos ? words.size() : end + 1;
        if (word.empty()) continue;
        std::string key = word.substr(0, word.find('=')),
                    value = word.find('=') == std::string::npos ? "" : word.substr(word.find('=') + 1);
        if (key == "keep")
            options.keep = value == "all" ? 0 : number_of(key, value);
        else if (key == "memory" && (value == "node" || value == "buddy"))
            options.memory = value == "node" ? Options::Memory::node : Options::Memory::buddy;
        else if (key == "flush")
            options.flush = number_of(key, value);
        else if (key == "interval")
            options.interval = parse_duration(value, "interval");
        else if (key == "walltime")
            options.walltime = parse_duration(value, "walltime");
        else if (key == "signals" && (value == "yes" || value == "no"))
            options.signals = value == "yes";
        else if (key == "key" && !value.empty())
            options.key_file = value;
        else if (kImageWords.count(key))
            image += (image.empty() ? "" : ",") + word;
        else
            refuse(FERMATA_ARGUMENT,
                   "'{}' is no option: keep=, memory=node|buddy, flush=, interval=, walltime=, "
                   "signals=yes|no, key=FILE, "
                   "layout=files|shared|node|group:N, "
                   "compress=, io=, threads=",
                   visible(word));
    }
    options.write = image::SaveOptions::parse(image).write;
    if (options.memory != Options::Memory::none && options.together())
        refuse(FERMATA_ARGUMENT, "memory= keeps a file per rank: layout={} does not go with it",
               options.write.layout.word());
    return options;
} catch (const Error& error) {
    refuse(FERMATA_ARGUMENT, "{}", error.what());
}

}  // namespace fermata::api
