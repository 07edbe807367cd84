#include "level/domains.h"

#include <fmt/ranges.h>

#include <sstream>

#include "base/error.h"
#include "base/fd.h"
#include "base/text.h"

namespace fermata::level {

Domains Domains::parse(const std::string& text, const std::string& path) {
    Domains domains;
    domains.path_ = path;
    std::istringstream lines(text);
    size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        auto refuse = [&](const std::string& why) {
            throw Error(fmt::format("--domains: {}:{}: {}", path, number, why), ExitCode::usage);
        };
        std::istringstream words(line.substr(0, line.find('#')));
        std::string node, domain, more;
        words >> node >> domain >> more;
        if (node.empty()) continue;
        if (domain.empty() || !more.empty())
            refuse("a line has a node and its failure domain, as \"n17 switch3\"");
        if (!domains.of_.emplace(node, domain).second)
            refuse(fmt::format("{} stands there twice", visible(node)));
    }
    if (domains.of_.empty()) throw Error(fmt::format("--domains: {} names no node", path), ExitCode::usage);
    return domains;
}

Domains Domains::from_file(const std::string& path) {
    try {
        return parse(read_file(path), path);
    } catch (const Error& error) {
        throw Error(error.what(), ExitCode::usage);
    }
}

// No name of a domain of the file has a blank.
std::string Domains::of(const std::string& node) const {
    auto found = of_.find(node);
    return found == of_.end() ? "node " + node : found->second;
}

std::vector<std::string> Domains::unnamed(const std::vector<std::string>& nodes) const {
    std::vector<std::string> all;
    if (of_.empty()) return all;
    for (const std::string& node : nodes)
        if (!of_.count(node)) all.push_back(node);
    return all;
}

std::string Domains::why_not(const std::vector<std::string>& nodes) const {
    const std::vector<std::string> missing = unnamed(nodes);
    return missing.empty() ? ""
                           : fmt::format("the file of --domains does not name {}", fmt::join(missing, ", "));
}

}  // namespace fermata::level
