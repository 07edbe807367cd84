#include "noded/inspection.h"

#include "base/error.h"
#include "level/repair.h"
#include "store/store.h"
#include "tree/ranks.h"

namespace fermata::noded {
namespace {

void inspect_one(const store::GenerationInfo& info, const image::Key* key, const tree::Ranks& ranks,
                 const std::function<bool()>& given_up, wire::Inspected& answer) {
    const Generation generation(info.number);
    level::Copies copies(info, key, level::kept_files_of);
    copies.look(
        [&](Rank rank) { return !given_up() && ranks.contains(static_cast<int32_t>(rank.number())); });
    if (copies.damage().empty()) return;
    const std::vector<level::Shelf> none;
    const level::ParityHere no_parity(none, info.manifest->job, generation);
    const level::Repair::Report report = level::Repair(copies, no_parity).run();
    for (const std::string& line : report.mended) answer.mended.push_back({generation, -1, line});
    for (const std::string& line : report.left) answer.left.push_back({generation, -1, line});
}

}  // namespace

wire::Inspected inspect(const FilesOfJob& files, const std::vector<wire::Repair>& shares,
                        const std::function<bool()>& given_up) {
    wire::Inspected answer;
    for (const wire::Repair& share : shares) try {
            if (given_up()) break;
            const store::Store store =
                store::Store::for_reading(files.directory, image::Key::from_file_or_none(files.key_file));
            const auto ranks = tree::Ranks::of(share.ranks);
            for (const store::GenerationInfo& info : store.list())
                if (ranks && Generation(info.number) == share.generation && info.manifest)
                    inspect_one(info, store.key(), *ranks, given_up, answer);
        } catch (const std::exception& error) {
            answer.left.push_back({share.generation, -1, error.what()});
        }
    return answer;
}

}  // namespace fermata::noded
