#include "cli/history.h"

#include "base/error.h"
#include "base/text.h"
#include "files/folder.h"
#include "files/owners.h"
#include "journal/reader.h"

namespace fermata::cli {

journal::History history_in(const std::string& directory, const std::string& name) {
    files::believe_everybody();  // nothing of what is read runs
    const auto folder = files::Folder::find_at(directory);
    if (!folder)
        throw Error(fmt::format("there is no directory {}: name a checkpoint directory (--ckpt-dir)",
                                visible(directory)));
    const journal::Contents contents = journal::read(*folder);
    if (contents.events.empty())
        throw Error(fmt::format("no journal of a job in {}: `fermata run --ckpt-dir` writes one",
                                visible(directory)));
    std::vector<journal::History> all = journal::histories(contents.events);
    auto number_of = [](const journal::History& job) { return fmt::format("{:016x}", job.job); };
    if (name.empty()) {
        for (journal::History& job : all)
            if (job.job == contents.events.back().job) return std::move(job);
    }
    std::vector<std::string> names;
    for (auto job = all.rbegin(); job != all.rend(); ++job) {
        if (job->name() == name || number_of(*job) == name) return std::move(*job);
        names.push_back(visible(job->name()));
    }
    throw Error(fmt::format("no job '{}' in the journal of {}; its newest are: {}", visible(name),
                            visible(directory), [&] {
                                std::string list;
                                for (size_t i = 0; i < names.size() && i < 5; ++i)
                                    list += (i ? ", " : "") + names[i];
                                return list;
                            }()));
}

void write_page(const std::string& path, const std::string& text) {
    const auto [directory, name] = files::split_path(files::absolute_path(path));
    if (name.empty()) throw Error(fmt::format("{} is no name of a file", visible(path)), ExitCode::usage);
    files::Folder::at(directory).replace(name, text);
}

}  // namespace fermata::cli
