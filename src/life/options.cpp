#include "life/options.h"

#include <algorithm>

#include "base/text.h"

namespace fermata::life {

std::string launcher_words(const std::vector<std::string>& options, const std::string& args) {
    std::string words;
    for (const std::string& word : options) words += shell_quoted(word) + " ";
    return words + args;
}

std::vector<launch::Part> parts_of(const SubmitOptions& options) {
    std::vector<launch::Part> parts = {
        {options.ranks, launcher_words(options.launcher_options, options.mpiexec_args), options.command, ""}};
    parts.insert(parts.end(), options.more.begin(), options.more.end());
    // As MPICH's mpiexec has it; Open MPI's is refused.
    if (parts.size() > 1)
        for (launch::Part& part : parts) part.ranks = std::max(part.ranks, 1);
    return parts;
}

}  // namespace fermata::life
