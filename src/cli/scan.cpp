#include "cli/scan.h"

#include "base/error.h"
#include "base/text.h"
#include "job/launcher_options.h"

namespace fermata::cli {
namespace {

template <typename... Args>
[[noreturn]] void wrong(const CLI::App& sub, fmt::format_string<Args...> format, Args&&... args) {
    throw Error(fmt::format("{} (fermata {} --help)", fmt::format(format, std::forward<Args>(args)...),
                            sub.get_name()),
                ExitCode::usage);
}

std::string name_in(const std::string& word) { return word.substr(0, word.find('=')); }

const CLI::Option* option_of(const CLI::App& sub, const std::string& name) {
    return sub.get_option_no_throw(name);
}

[[noreturn]] void unknown_option(const CLI::App& sub, const std::string& word, bool has_mpiexec) {
    std::vector<std::string> names;
    for (const CLI::Option* option : sub.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back(name);
    std::string near = nearest(name_in(word).substr(word.starts_with("--") ? 2 : 1), names);
    wrong(sub, "{} is no option of `fermata {}`{}{}", visible(word), sub.get_name(),
          near.empty() ? "" : fmt::format(", the nearest is --{}", near),
          has_mpiexec ? fmt::format("; if it is mpiexec's: --mpiexec-args={}", shell_quoted(visible(word)))
                      : "");
}

[[noreturn]] void unexpected_argument(const CLI::App& sub, const std::string& word) {
    if (sub.get_name() == "restart" && !word.starts_with("gen-"))
        wrong(sub,
              "restart takes no '{}': program and arguments come from the generation, its directory is named "
              "with "
              "--ckpt-dir",
              visible(word));
    bool generation = word.starts_with("gen-") && option_of(sub, "--generation");
    std::string advice = generation ? "a generation is named with --generation"
                         : option_of(sub, "--ckpt-dir") != nullptr
                             ? "a checkpoint directory is named with --ckpt-dir"
                             : "it takes options only";
    wrong(sub, "'{}' was not expected: {}", visible(word), advice);
}

}  // namespace

Scanned scan(const CLI::App& sub, const std::vector<std::string>& words) {
    Scanned found;
    const bool takes_program = sub.get_name() == "run";
    const bool has_mpiexec = takes_program || sub.get_name() == "restart";
    for (size_t at = 0; at < words.size(); ++at) {
        std::string word = words[at];
        if (!word.starts_with("-") || word == "-" || word == "--") {
            if (!takes_program)
                unexpected_argument(sub, word == "--" && at + 1 < words.size() ? words[at + 1] : word);
            if (word == "--") ++at;
            found.command.assign(words.begin() + static_cast<ptrdiff_t>(at), words.end());
            break;
        }
        if (word == "-h" || word == "--help") {
            found.help = true;
            continue;
        }
        // As mpiexec has them.
        if (name_in(word) == "-np") word = "-" + word;
        bool number_follows = word.size() > 2 && word.find_first_not_of("0123456789", 2) == std::string::npos;
        if (has_mpiexec && word.starts_with("-n") && number_follows) word = "--np=" + word.substr(2);
        std::string name = name_in(word);
        if (const CLI::Option* option = option_of(sub, name)) {
            if (option->get_items_expected_min() == 0) {  // a flag
                found.own.push_back(word);
                continue;
            }
            std::string value;
            if (name.size() < word.size()) {
                value = word.substr(name.size() + 1);
            } else {
                // What mpiexec's words begin with is a dash, too.
                bool none = at + 1 == words.size() ||
                            (words[at + 1].starts_with("-") && words[at + 1].size() > 1 &&
                             (words[at + 1] == "--" || option_of(sub, name_in(words[at + 1]))) &&
                             name != "--mpiexec-args");
                if (none) wrong(sub, "{} needs a value", name);
                value = words[++at];
            }
            // CLI11 takes "--a=" for one whose value follows, and "-b" after --a for another option.
            if (value.starts_with("-")) {
                found.own.push_back("--" + option->get_lnames().at(0) + "=" + value);
            } else {
                found.own.push_back(name);
                found.own.push_back(value);
            }
            continue;
        }
        auto follow = has_mpiexec ? job::words_after_launcher_option(word) : std::nullopt;
        if (!follow) unknown_option(sub, word, has_mpiexec);
        if (at + *follow >= words.size())
            wrong(sub, "{} needs {} more word{}", word, *follow, *follow == 1 ? "" : "s");
        for (unsigned i = 0; i <= *follow; ++i) found.launcher.push_back(words[at + i]);
        at += *follow;
    }
    return found;
}

}  // namespace fermata::cli
