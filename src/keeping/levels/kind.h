// Kind describes a level: its words in `--levels`, and the class that makes its copies. The list of all kinds
// is in kinds.cpp; a new level is a row there.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "keeping/levels/copies.h"

namespace fermata::keeping {

// Throws Error (exit code 2): "--levels", `why`, and an example.
[[noreturn]] void refuse_levels(const std::string& why);

// One entry of `--levels`: NAME[:ARGUMENT] [PERIOD] [MORE].
struct Entry {
    std::string name, argument;
    std::vector<std::string> words;
    // Seconds, when there is one word behind the name, and it is a period; else refuses.
    double period() const;
    // "rs:4+2"
    std::string title() const { return argument.empty() ? name : name + ":" + argument; }
};

struct Kind {
    std::string_view name;   // "rs"
    std::string_view shape;  // "rs:K+M": how people write it; only with a colon it takes an argument
    // Takes its entry of the list, which has none of this kind yet.
    void (*read)(const Entry&, level::Levels&);
    // Seconds between two generations there; 0 = each has its turn; none: the job has no such level.
    std::optional<double> (*period)(const level::Levels&);
    // The same words again; "" = the job has no such level. Null: the name, and the period.
    std::string (*text)(const level::Levels&) = nullptr;
    bool needs_memory = false;  // it keeps what is in memory
    // Makes the object that copies; none: generations come there otherwise.
    std::unique_ptr<Copies> (*make)(Means&) = nullptr;

    bool takes_argument() const { return shape.find(':') != std::string_view::npos; }
};

// For `make`.
template <class Level>
std::unique_ptr<Copies> make_level(Means& means) {
    return std::make_unique<Level>(means);
}

// All of them, in the order in which they are listed and have their turns.
const std::vector<Kind>& kinds();

// For a level of which `--levels` says an argument and a period only (level::Levels::described).
void read_described(const Entry& entry, level::Levels& levels);
std::string text_of_described(const char* name, const level::Levels& levels);
std::optional<double> period_of_described(const char* name, const level::Levels& levels);

}  // namespace fermata::keeping
