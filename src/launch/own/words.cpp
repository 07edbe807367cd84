#include "launch/own/words.h"

#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace fermata::launch::own {
namespace {

[[noreturn]] void wrong(const std::string& line) { throw Error(line, ExitCode::usage); }

// A word and what follows it, one after the other.
class Line {
  public:
    explicit Line(const std::vector<std::string>& words) : words_(words) {}

    bool next() {
        if (at_ == words_.size()) return false;
        word_ = words_[at_++];
        size_t dashes = word_.starts_with("--") ? 2 : word_.starts_with("-") ? 1 : 0;
        size_t equals = word_.find('=');
        name_ = dashes == 0 ? "" : word_.substr(dashes, equals == word_.npos ? equals : equals - dashes);
        value_ = equals == word_.npos || dashes == 0 ? std::nullopt : std::optional(word_.substr(equals + 1));
        return true;
    }
    const std::string& word() const { return word_; }
    bool is(std::initializer_list<const char*> names) const {
        for (const char* name : names)
            if (name_ == name) return true;
        return false;
    }
    std::string value() {
        if (value_) return *std::exchange(value_, std::nullopt);
        if (at_ == words_.size()) wrong(fmt::format("{} wants a word behind it", word_));
        return words_[at_++];
    }

  private:
    const std::vector<std::string>& words_;
    size_t at_ = 0;
    std::string word_, name_;
    std::optional<std::string> value_;
};

unsigned number_of(Line& line) {
    std::string text = line.value();
    unsigned value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value == 0 || value > 1'000'000)
        wrong(fmt::format("{} takes a number, not '{}'", line.word(), visible(text)));
    return value;
}

// "-x NAME" hands on what Fermata itself has, "-x NAME=VALUE" sets it.
void add_variable(std::vector<std::string>& all, const std::string& text) {
    if (text.find('=') != text.npos)
        all.push_back(text);
    else if (const char* here = std::getenv(text.c_str()))
        all.push_back(text + "=" + here);
}

void bind(Words& words, Line& line) {
    std::string how = line.value();
    if (how == "none")
        words.bind = Bind::none;
    else if (how == "core")
        words.bind = Bind::core;
    else
        wrong(fmt::format("--bind-to {}: the launcher own binds to core, or none", visible(how)));
}

void map(Words& words, Line& line) {
    std::string how = line.value();
    if (how.ends_with(":oversubscribe") || how.ends_with(":OVERSUBSCRIBE")) {
        words.oversubscribe = true;
        how = how.substr(0, how.rfind(':'));
    }
    if (how == "slot" || how == "core" || how == "node" || how.empty())
        words.by_node = how == "node";
    else
        wrong(fmt::format("--map-by {}: the launcher own places by slot, or node", visible(how)));
}

// What changes nothing here.
void pass_over(Line& line) {
    if (line.is({"allow-run-as-root", "nooversubscribe", "envall", "genvall", "quiet"})) return;
    wrong(
        fmt::format("{} is not understood by the launcher own (usage.md has what is); --launcher mpiexec "
                    "hands it to the site's",
                    visible(line.word())));
}

}  // namespace

Words understand(const std::vector<std::string>& all) {
    Words words;
    Line line(all);
    while (line.next()) {
        if (line.is({"hosts", "host", "H"})) {
            words.hosts = line.value();
        } else if (line.is({"hostfile", "machinefile", "f", "default-hostfile"})) {
            words.hostfile = line.value();
        } else if (line.is({"wdir", "wd"})) {
            words.directory = line.value();
        } else if (line.is({"x"})) {
            add_variable(words.environment, line.value());
        } else if (line.is({"env", "genv"})) {
            auto& where = line.is({"genv"}) ? words.for_all : words.environment;
            std::string name = line.value();
            where.push_back(name + "=" + line.value());
        } else if (line.is({"bind-to"})) {
            bind(words, line);
        } else if (line.is({"map-by"})) {
            map(words, line);
        } else if (line.is({"bynode"})) {
            words.by_node = true;
        } else if (line.is({"byslot"})) {
            words.by_node = false;
        } else if (line.is({"ppn", "N", "npernode"})) {
            words.per_node = number_of(line);
        } else if (line.is({"oversubscribe"})) {
            words.oversubscribe = true;
        } else {
            pass_over(line);
        }
    }
    return words;
}

}  // namespace fermata::launch::own
