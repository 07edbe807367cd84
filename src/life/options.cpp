#include "life/options.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace fermata::life {

void check_message_log(SubmitOptions& options) {
    auto refuse = [](const char* what) {
        throw Error(fmt::format("--message-log {}", what), ExitCode::usage);
    };
    if (options.launcher == launch::LauncherName::automatic) options.launcher = launch::LauncherName::own;
    if (options.launcher != launch::LauncherName::own)
        refuse(
            "(which --replicas implies) needs --launcher own: only ranks that Fermata itself has started are "
            "replaced");
    if (options.protocol != "cc-d")
        refuse("and --protocol do not go together: nobody counts collectives then");
}

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
