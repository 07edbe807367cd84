// Domains says which nodes may fail together: those behind one switch, in one chassis. A site writes it into
// a file; without one every node is a domain of its own.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace fermata::level {

class Domains {
  public:
    Domains() = default;
    // Lines of a node and its domain; "#" begins a comment. Throws Error (exit code 2) that names the line.
    static Domains parse(const std::string& text, const std::string& path);
    static Domains from_file(const std::string& path);

    // A node that the file does not name stands alone.
    std::string of(const std::string& node) const;
    // Finds the nodes that the file does not name; without a file none.
    std::vector<std::string> unnamed(const std::vector<std::string>& nodes) const;
    // "", or the line that names those.
    std::string why_not(const std::vector<std::string>& nodes) const;

  private:
    std::string path_;
    std::map<std::string, std::string> of_;
};

}  // namespace fermata::level
