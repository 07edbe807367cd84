#include "launch/own/library_below.h"

#include <unistd.h>

#include "base/error.h"
#include "launch/launcher_options.h"
#include "launch/library_at.h"
#include "launch/own/words.h"
#include "launch/rank_environment.h"

namespace fermata::launch::own {
namespace {

std::vector<std::string> variables_in(const std::string& mpiexec_args) {
    Words words = understand(split_words(mpiexec_args));
    std::vector<std::string> all = words.for_all;
    all.insert(all.end(), words.environment.begin(), words.environment.end());
    words.for_all.clear();
    words.environment.clear();
    if (!(words == Words{}))
        throw Error(
            "--mpiexec-args of a renewal: the ranks stay where they are; variables (-x, -env, -genv) are "
            "what can change",
            ExitCode::usage);
    return all;
}

}  // namespace

void LibraryBelow::plan(const Renewal& wanted) {
    Served next = now_;
    if (!wanted.mpi.empty())
        next.library = choose_library(wanted.mpi, now_.library.mpi, find_places(), false);
    if (::access(next.library.lower.c_str(), X_OK) != 0) fail_errno("{}", next.library.lower);
    std::vector<std::string> more = variables_in(wanted.mpiexec_args);
    more.insert(more.end(), wanted.environment.begin(), wanted.environment.end());
    for (const std::string& word : more) {
        const std::string name = word.substr(0, word.find('=') + 1);
        std::erase_if(next.environment, [&](const std::string& one) { return one.starts_with(name); });
        next.environment.push_back(word);
    }
    next_ = std::move(next);
}

wire::Renew LibraryBelow::order(uint32_t world) const {
    wire::Renew order;
    order.world = world;
    order.mpi = next_.library.mpi;
    order.lower = next_.library.lower;
    order.environment = next_.environment;
    for (const std::string& word : needed_by(next_.library)) order.environment.push_back(word);
    if (!next_.library.root.empty()) order.reach = place_of(next_.library);
    return order;
}

}  // namespace fermata::launch::own
