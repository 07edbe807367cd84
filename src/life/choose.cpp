#include "life/choose.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/log.h"
#include "files/owners.h"
#include "image/image.h"
#include "level/place.h"

namespace fermata::life {
namespace {

constexpr uint64_t kVerifyAtMost = 256u << 20;  // bytes a restart reads twice for an early, single error

// A generation of a program's own state (src/api) holds no process.
std::string why_not_to_start(const store::GenerationInfo& own) {
    return fmt::format(
        "{} holds the state that the program saved itself (libfermata): start the program, which restores "
        "it: {}",
        own.directory, command_line(own.manifest->command));
}

// The checks that read images: every header, and all data while that is quick and not to be read later. The
// ranks find what they miss. By rank: why its image is not the one that the manifest names.
std::map<uint32_t, std::string> broken_images(const store::GenerationInfo& generation, bool mapped,
                                              const image::Key* key) {
    const store::Manifest& manifest = *generation.manifest;
    std::map<uint32_t, std::string> broken;
    for (const store::ImageEntry& entry : manifest.images) try {
            if (!manifest.layout.together())
                if (const std::string damage = generation.damage_of({entry.file, entry.bytes});
                    !damage.empty())
                    fail("{}", damage);
            image::Reader reader(generation.place(entry), key);
            if (!generation.is_of(entry, reader))
                fail("{}/{} is not the image that the manifest names", generation.directory, entry.file);
            if (!mapped && manifest.bytes() <= kVerifyAtMost) reader.verify();
        } catch (const image::KeyError&) {
            throw;
        } catch (const Error& error) {
            broken[entry.rank.number()] = error.what() + generation.note_of(entry);
        }
    return broken;
}

// Nodes may have a generation of this job in memory, also one that is in files by now: then damage in files
// is no reason to refuse it before they are asked.
bool may_be_at_nodes(const store::Store& store, uint64_t job, const SubmitOptions& options) {
    if (options.levels || !level::nodes_here(job).empty()) return true;
    const std::vector<store::GenerationInfo> all = store.list();
    return std::any_of(all.begin(), all.end(), [&](const store::GenerationInfo& one) {
        return one.job == job && one.manifest && one.manifest->on_nodes();
    });
}

// Looks at one in files, whose needs were looked at. Throws Error when it cannot be had from here nor from
// nodes.
void look_at_images(store::GenerationInfo& info, const store::Store& store, const SubmitOptions& options) {
    if (info.manifest->layout.together()) store.check(info);
    try {
        info.check_layout();
    } catch (const image::KeyError&) {
        throw;
    } catch (const Error& error) {
        throw Error(error.what(), ExitCode::damaged);
    }
    info.broken = broken_images(info, options.mapped, store.key());
    if (info.broken.empty()) return;
    if (info.manifest->layout.together()) throw Error(info.broken.begin()->second, ExitCode::damaged);
    if (!may_be_at_nodes(store, info.manifest->job, options)) {
        store.check(info);
        throw Error(info.broken.begin()->second, ExitCode::damaged);
    }
}

// Newest first; those of other users and of jobs that have ended are left out, with a line.
std::vector<store::GenerationInfo> candidates(const store::Store& store, const Candidates& which) {
    std::vector<store::GenerationInfo> left, all = store.list();
    std::vector<store::JobEnd> ends = store.ends();
    const store::JobEnd* ended = nullptr;
    uint32_t last_of_ended = 0;
    std::string own;  // why a generation of a program's own state is none of these
    for (auto one = all.rbegin(); one != all.rend(); ++one) {
        if (!one->manifest && one->damage.empty()) continue;  // never committed
        if (which.job && one->job != which.job) continue;
        if (which.below && one->number >= *which.below) continue;
        if (one->manifest && one->manifest->step) {
            if (own.empty()) own = why_not_to_start(*one);
            continue;
        }
        if (!files::believed(one->folder.owner())) {
            if (left.empty())
                say(fmt::format("{} belongs to {} and is passed over; --allow-owner {} takes it",
                                Generation(one->number).name(), files::name_of_user(one->folder.owner()),
                                one->folder.owner()));
            continue;
        }
        auto end = std::find_if(ends.begin(), ends.end(), [&](const auto& e) { return e.job == one->job; });
        if (end != ends.end() && !which.ended_too) {
            if (!ended) ended = &*end, last_of_ended = one->number;
            continue;
        }
        left.push_back(std::move(*one));
    }
    if (left.empty() && ended)
        throw Error(
            fmt::format("job {} in {} has ended with exit code 0 ({}): nothing is left to be continued; "
                        "--generation {} (or latest) goes back to its last checkpoint all the same",
                        ended->name, store.directory(), ended->when, last_of_ended),
            ExitCode::ended);
    if (left.empty() && !own.empty()) throw Error(own, ExitCode::refused);
    if (left.empty()) {
        // The words for what is there instead.
        (void)store.choose({}, false);
        throw Error(fmt::format("no complete generation in {}", store.directory()), ExitCode::damaged);
    }
    if (ended && last_of_ended > left[0].number)
        say(fmt::format(
            "{} is the newest of a job that has not ended; newer ones are of {}, which ended with "
            "exit code 0 ({})",
            Generation(left[0].number).name(), ended->name, ended->when));
    for (const store::GenerationInfo& one : left)
        if (!which.job && one.manifest && left[0].manifest && one.job != left[0].job) {
            say(
                fmt::format("{} also holds {} of job {}, which has not ended: {}; --generation {} continues "
                            "that one",
                            store.directory(), Generation(one.number).name(), one.manifest->job_name,
                            command_line(one.manifest->whole_command()), one.number));
            break;
        }
    return left;
}

}  // namespace

std::vector<store::GenerationInfo> choose_generation(const store::Store& store, const SubmitOptions& options,
                                                     const Candidates& which) {
    auto checked = [&](store::GenerationInfo one) {
        if (one.manifest && one.manifest->step) throw Error(why_not_to_start(one), ExitCode::refused);
        store.check_manifest(one);
        // The nodes look at those that they have.
        if (!one.manifest->on_nodes()) look_at_images(one, store, options);
        return one;
    };
    if (options.from.generation) {
        for (store::GenerationInfo& one : store.list()) {
            if (one.number != *options.from.generation) continue;
            one.folder.check_owner(one.directory);
            return {checked(one)};
        }
        store.choose(options.from.generation, false);  // has the words for it
    }
    std::vector<store::GenerationInfo> list;
    for (const store::GenerationInfo& one : candidates(store, which)) {
        try {
            if (!list.empty() && one.job != list[0].job) continue;
            list.push_back(checked(one));
            if (!list.back().is_up_to_nodes()) return list;
        } catch (const image::KeyError&) {
            throw;
        } catch (const Error& damage) {
            if (!which.fallback && list.empty())
                throw Error(fmt::format("{}; --fallback takes the one before", damage.what()), damage.code());
            say(fmt::format("{}; trying the one before", damage.what()));
        }
    }
    if (!list.empty()) return list;
    throw Error(fmt::format("no complete generation in {}", store.directory()), ExitCode::damaged);
}

std::string command_line(const std::vector<std::string>& words) {
    return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace fermata::life
