#include "cli/scan.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "launch/launcher_options.h"

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

// mpiexec's way to read all programs from a file.
void refuse_list_of_programs(const CLI::App& sub, const std::string& word) {
    for (const char* name : {"app", "configfile"})
        if (name_in(word) == std::string("-") + name || name_in(word) == std::string("--") + name)
            wrong(sub,
                  "{} is not read: name its programs here with a ':' between them, fermata run -n 1 -- ./a : "
                  "-n 3 ./b",
                  word);
}

// As mpiexec has it: "-np 4", "-n4" in the words of CLI11.
std::string number_option(const std::string& word) {
    if (name_in(word) == "-np") return "-" + word;
    bool number_follows = word.size() > 2 && word.find_first_not_of("0123456789", 2) == std::string::npos;
    return word.starts_with("-n") && number_follows ? "--np=" + word.substr(2) : word;
}

// One of mpiexec's options at words[at], with what follows it; false when it is none.
bool take_launcher_option(const CLI::App& sub, const std::vector<std::string>& words, size_t& at,
                          std::vector<std::string>& launcher) {
    refuse_list_of_programs(sub, words[at]);
    auto follow = launch::words_after_launcher_option(words[at]);
    if (!follow) return false;
    if (at + *follow >= words.size())
        wrong(sub, "{} needs {} more word{}", words[at], *follow, *follow == 1 ? "" : "s");
    for (unsigned i = 0; i <= *follow; ++i) launcher.push_back(words[at + i]);
    at += *follow;
    return true;
}

// The words between two ":".
ScannedPart scan_part(const CLI::App& sub, const std::vector<std::string>& words) {
    ScannedPart part;
    for (size_t at = 0; at < words.size(); ++at) {
        if (!words[at].starts_with("-") || words[at] == "-" || words[at] == "--") {
            if (words[at] == "--") ++at;
            part.command.assign(words.begin() + static_cast<ptrdiff_t>(at), words.end());
            break;
        }
        std::string word = number_option(words[at]), name = name_in(word);
        if (name == "-n" || name == "--np") {
            bool none = name.size() == word.size() && at + 1 == words.size();
            if (none) wrong(sub, "{} needs a value", words[at]);
            part.ranks = name.size() < word.size() ? word.substr(name.size() + 1) : words[++at];
            continue;
        }
        if (option_of(sub, name))
            wrong(sub, "{} is for the whole job: it stands before the first program, not after a ':'", name);
        if (!take_launcher_option(sub, words, at, part.launcher))
            wrong(sub, "{} after a ':' is no option of mpiexec that is known", visible(word));
    }
    if (part.command.empty()) wrong(sub, "a ':' stands between two programs, and one of them is missing");
    return part;
}

// The command, and the programs behind it when it goes on with ":".
void take_programs(const CLI::App& sub, const std::vector<std::string>& words, Scanned& found) {
    auto end = std::find(words.begin(), words.end(), ":");
    found.command.assign(words.begin(), end);
    if (end != words.end() && found.command.empty())
        wrong(sub, "a ':' stands between two programs, and one of them is missing");
    while (end != words.end()) {
        auto next = std::find(end + 1, words.end(), ":");
        found.more.push_back(scan_part(sub, {end + 1, next}));
        end = next;
    }
}

// "50%", "all", "+0,2", "-3": what `fermata replicas` takes without an option.
bool names_ranks(const std::string& word) {
    return !word.empty() &&
           (word[0] != '-' || (word.size() > 1 && word[1] >= '0' && word[1] <= '9') || word == "-all");
}

}  // namespace

Scanned scan(const CLI::App& sub, const std::vector<std::string>& words) {
    Scanned found;
    const bool takes_program = sub.get_name() == "run";
    const bool takes_directory = sub.get_name() == "predict" || sub.get_name() == "report";
    const bool has_mpiexec = takes_program || sub.get_name() == "restart";
    for (size_t at = 0; at < words.size(); ++at) {
        std::string word = words[at];
        if (sub.get_name() == "replicas" && names_ranks(word)) {
            if (std::exchange(found.has_ranks, true))
                wrong(sub, "'{}' was not expected: one word says which ranks, as 0,4-7", visible(word));
            found.own.push_back("--of=" + word);
            continue;
        }
        if (!word.starts_with("-") || word == "-" || word == "--") {
            if (takes_directory && word != "--" && word != "-" && !found.has_directory) {
                found.has_directory = true;
                found.own.push_back("--ckpt-dir");
                found.own.push_back(word);
                continue;
            }
            if (!takes_program)
                unexpected_argument(sub, word == "--" && at + 1 < words.size() ? words[at + 1] : word);
            if (word == "--") ++at;
            take_programs(sub,
                          {words.begin() + static_cast<ptrdiff_t>(std::min(at, words.size())), words.end()},
                          found);
            break;
        }
        if (word == "-h" || word == "--help") {
            found.help = true;
            continue;
        }
        if (has_mpiexec) word = number_option(word);
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
                // A word of mpiexec begins with a dash, too.
                bool none = at + 1 == words.size() ||
                            (words[at + 1].starts_with("-") && words[at + 1].size() > 1 &&
                             (words[at + 1] == "--" || option_of(sub, name_in(words[at + 1]))) &&
                             name != "--mpiexec-args" && name != "--srun-args");
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
        if (!has_mpiexec || !take_launcher_option(sub, words, at, found.launcher))
            unknown_option(sub, word, has_mpiexec);
    }
    return found;
}

}  // namespace fermata::cli
