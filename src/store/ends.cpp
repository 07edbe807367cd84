// Jobs that ended with exit code 0, so that nobody repeats their last minutes: a small file beside the
// generations for each, `.ended-JOB`.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "store/store.h"

namespace fermata::store {
namespace {

constexpr std::string_view kEnded = ".ended-";
constexpr uint64_t kMostEnd = 16u << 20;  // a command line is bounded by the kernel to some MiB
// Other users' are for `list` only; words of a byte take twenty times as much memory.
constexpr uint64_t kMostOfOthers = 64u << 10;

std::string name_of(uint64_t job) { return fmt::format("{}{:016x}", kEnded, job); }

}  // namespace

std::vector<JobEnd> Store::ends() const {
    std::vector<JobEnd> all;
    for (const std::string& name : folder_.names()) {
        if (!name.starts_with(kEnded)) continue;
        try {
            const uint64_t most = folder_.is_others(name) ? kMostOfOthers : kMostEnd;
            auto json = nlohmann::json::parse(folder_.text(name, most), nullptr, false);
            JobEnd end;
            end.job = std::stoull(json.at("job").get<std::string>(), nullptr, 16);
            end.name = json.at("name");
            end.command = words_of_utf8(json.at("command").get<std::vector<std::string>>());
            end.when = json.at("when");
            if (name == name_of(end.job)) all.push_back(std::move(end));
        } catch (const std::exception&) {
            // Cut off by a crash, or somebody else's: then nothing is known to have ended.
        }
    }
    std::sort(all.begin(), all.end(), [](const JobEnd& a, const JobEnd& b) { return a.when < b.when; });
    return all;
}

void Store::note_end(const JobEnd& end) const {
    nlohmann::ordered_json json = {{"job", fmt::format("{:016x}", end.job)},
                                   {"name", end.name},
                                   {"when", end.when},
                                   {"command", words_as_utf8(end.command)}};
    folder_.replace(name_of(end.job),
                    json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void Store::forget_end(uint64_t job) const noexcept { folder_.remove_file(name_of(job)); }

}  // namespace fermata::store
