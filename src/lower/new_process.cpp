#include "lower/new_process.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "lower/meeting.h"
#include "lower/say_each.h"
#include "lower/services.h"
#include "lower/shared_ranks.h"
#include "split/devices/kinds.h"
#include "split/process/state.h"

namespace fermata::lower {

NewProcess::NewProcess(const tree::AgentConfig& config, const MpiFacts& facts, image::KeyPointer key)
    : config_(config), facts_(facts), wanted_{config.restore,
                                              config.images,
                                              config.seal,
                                              facts.rank(),
                                              facts.size,
                                              split::process::PathMap::from_text(config.moved),
                                              std::move(key)} {}

void NewProcess::put_back_files() {
    split::process::PutBack mine = put_files_back(wanted_, config_.files);
    say_each(facts_.rank(), mine.warnings);
    if (!mine.error.empty()) fail("{}", mine.error);
    int files = sum_of_all(facts_.private_world, mine.files);
    if (files > 0 && facts_.rank() == Rank(0))
        say(
            fmt::format("{} of the program's files {} as at {} again; newer versions are kept beside {} "
                        "(*.after-{}, *.end-after-{})",
                        files, files == 1 ? "is" : "are", config_.generation.name(),
                        files == 1 ? "it" : "them", config_.generation.name(), config_.generation.name()));
}

LoadedImage NewProcess::load() {
    LoadedImage image =
        load_image(wanted_, config_.mapped, peers(facts_.private_world, facts_.rank(), config_.node));
    say_each(facts_.rank(), image.warnings);
    return image;
}

std::string NewProcess::restore(const LoadedImage& image) {
    split::process::Restored restored =
        split::process::restore(image.process_state, process_limits(), {image.generation, config_.files});
    say_each(facts_.rank(), restored.warnings);
    if (!restored.error.empty()) return restored.error;
    try {
        split::devices::restore_all();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

}  // namespace fermata::lower
