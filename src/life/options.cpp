#include "life/options.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/rank.h"
#include "base/text.h"
#include "launch/launcher_options.h"

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

void take_ranks_of_srun(SubmitOptions& options) {
    constexpr std::string_view kRanks = "--ntasks=";
    if (options.launcher != launch::LauncherName::srun) return;
    std::vector<std::string> others;
    for (const std::string& word : launch::srun_words(launch::split_words(options.mpiexec_args))) {
        if (!word.starts_with(kRanks)) {
            others.push_back(word);
            continue;
        }
        const std::string text = word.substr(kRanks.size());
        int ranks = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
        if (error != std::errc{} || end != text.data() + text.size() || ranks < 1 ||
            ranks > static_cast<int>(Rank::kMost) || (options.ranks > 0 && ranks != options.ranks))
            throw Error(options.ranks > 0
                            ? fmt::format("srun was given -n {}, and `fermata run` -n {}", visible(text),
                                          options.ranks)
                            : fmt::format("-n takes a number of ranks, not '{}'", visible(text)),
                        ExitCode::usage);
        options.ranks = ranks;
    }
    options.mpiexec_args = launcher_words(others, "");
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
