// A Command is one line of PMI-1 ("cmd=put kvsname=a key=b value=c") as words with values.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fermata::pmi {

class Command {
  public:
    // Reads a line without its end. Throws Error that says what is wrong.
    static Command parse(std::string_view line);

    const std::string& name() const { return name_; }
    // Null: the line does not have it.
    const std::string* find(std::string_view word) const;
    // Throws Error that names the word.
    const std::string& get(std::string_view word) const;
    int number(std::string_view word) const;

  private:
    std::string name_;
    std::vector<std::pair<std::string, std::string>> words_;
};

// Part of a line of the user's terminal.
std::string shortened(std::string_view text);

}  // namespace fermata::pmi
