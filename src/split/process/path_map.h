// Where the folders of a program are now, when they were moved since the checkpoint.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fermata::split {
struct NotedFiles;
}

namespace fermata::split::process {

class PathMap {
  public:
    // "/old/inner=/new:/old=/newer", as `fermata restart --map` has checked it.
    static PathMap from_text(const std::string& text);

    bool empty() const { return moves_.empty(); }
    // `path` with the first of the old folders that it is, or is in, replaced.
    std::string operator()(const std::string& path) const;
    // All paths of a process state: open files, working directory, files of the program.
    std::string in_state(std::string_view state) const;
    // A line for each old folder that nothing of this state is in: probably misspelt.
    std::vector<std::string> unused_in(std::string_view state) const;
    // The names of what ranks share (image blob `shared`).
    std::string in_shared(std::string_view objects) const;
    // In upper memory, before anything of the program runs.
    void in_noted(NotedFiles* files) const;

  private:
    std::vector<std::pair<std::string, std::string>> moves_;
};

}  // namespace fermata::split::process
