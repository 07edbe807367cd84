#include "life/submit.h"

#include <signal.h>

#include <algorithm>

#include "base/log.h"
#include "base/process_limits.h"
#include "base/signals.h"
#include "base/text.h"
#include "files/folder.h"
#include "files/owners.h"
#include "launch/launcher_options.h"
#include "launch/library.h"
#include "launch/program_place.h"
#include "launch/slurm.h"
#include "life/choose.h"
#include "life/supervisor.h"
#include "split/loader/behind.h"
#include "wire/auth.h"

namespace fermata::life {
namespace {

uint64_t random_number() { return std::stoull(wire::random_id(8), nullptr, 16); }

// Segments of several programs; one alone is the whole job's.
std::vector<store::Segment> segments_of(const std::vector<launch::Part>& parts) {
    std::vector<store::Segment> segments;
    uint32_t next = 0;
    if (parts.size() > 1)
        for (const launch::Part& part : parts) {
            segments.push_back({{Rank(next), static_cast<uint32_t>(part.ranks)}, part.program});
            next = segments.back().ranks.end();
        }
    return segments;
}

// Others may take generations away there, and put their own beside ours.
void warn_of_others(const store::Store& store) {
    if (store.open_to_others())
        say(fmt::format(
            "others may write to {}: they can remove generations or put older ones in their place; "
            "chmod go-w, or --ckpt-dir names a directory of your own",
            store.directory()));
}

// From the first moment on SIGTERM means what it means to a running job: the root takes it from here.
void hold_sigterm() {
    sigset_t set = signal_set({SIGTERM});
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
}

// Is nothing seen of MPI in any of these? Then they are files to copy, folders to make and the like, as far
// as anybody can tell.
bool shows_no_mpi(const std::vector<launch::Part>& parts) {
    const std::string fronts = launch::find_places().front_dir;
    return std::all_of(parts.begin(), parts.end(), [&](const launch::Part& part) {
        try {
            const split::ProgramCheck check =
                launch::find_program(part.program.at(0), launch::split_words(part.mpiexec_args), fronts)
                    .check;
            return check.error.empty() && split::is_starter(check) &&
                   !split::program_behind(part.program, check, fronts);
        } catch (const Error&) {
            return false;
        }
    });
}

// Findings of `--continue` in the directory: the same command line is one chain of jobs.
struct Earlier {
    std::optional<uint64_t> job;  // that is to be continued
    std::optional<store::JobEnd> ended;
};

Earlier look_for_earlier(const store::Store& store, const std::vector<std::string>& command,
                         const std::vector<launch::Part>& parts) {
    Earlier earlier;
    std::string newest;  // time of the newest sign of a job with this command
    std::vector<store::JobEnd> ends = store.ends();
    auto has_ended = [&](std::optional<uint64_t> job) {
        return std::any_of(ends.begin(), ends.end(), [&](const auto& end) { return end.job == job; });
    };
    std::vector<store::GenerationInfo> all = store.list();
    const store::GenerationInfo* other = nullptr;
    for (const store::GenerationInfo& one : all) {
        if (!one.manifest || one.manifest->step || has_ended(one.job) || !files::believed(one.folder.owner()))
            continue;
        if (one.manifest->whole_command() != command) {
            other = &one;
            continue;
        }
        earlier.job = one.job;
        newest = std::max(newest, one.manifest->created);
    }
    for (const store::JobEnd& end : ends)
        if (end.command == command && end.when >= newest) {
            earlier.ended = end;
            earlier.job.reset();
            newest = end.when;
        }
    if (!earlier.job && !earlier.ended && other && !shows_no_mpi(parts))
        throw Error(
            fmt::format("{} holds {} of another command, which has not ended: {}; name another directory "
                        "with --ckpt-dir, or leave out --continue",
                        store.directory(), Generation(other->number).name(),
                        command_line(other->manifest->whole_command())),
            ExitCode::usage);
    return earlier;
}

// Names jobs that somebody may still want to continue.
void say_what_is_kept(const store::Store& store) {
    std::vector<store::JobEnd> ends = store.ends();
    std::vector<store::GenerationInfo> all = store.list();
    for (auto one = all.rbegin(); one != all.rend(); ++one) {
        if (!one->manifest || one->manifest->step ||
            std::any_of(ends.begin(), ends.end(), [&](const auto& end) { return end.job == one->job; }))
            continue;
        say(fmt::format(
            "{} holds {} of job {}, which has not ended: it is kept; `fermata restart --ckpt-dir {} "
            "--generation {}` continues it",
            store.directory(), Generation(one->number).name(), one->manifest->job_name, store.directory(),
            one->number));
        return;
    }
}

// Finds every program, and the library they were built for. Throws Error when one cannot run.
void find_programs(Submission& what) {
    for (launch::Part& part : what.parts) {
        launch::ProgramPlace place = launch::find_program(
            part.program.at(0), launch::split_words(part.mpiexec_args), launch::find_places().front_dir);
        const split::ProgramCheck& program = place.check;
        if (!program.error.empty()) fail("{}", program.error);
        if (std::string why = split::why_no_starter(program); !why.empty()) fail("{}", why);
        part.program_path = place.path;
        split::MpiAbi abi = program.abi;
        if (split::is_starter(program))
            if (auto behind = split::program_behind(part.program, program, launch::find_places().front_dir))
                abi = behind->abi;
        bool has_library = abi == split::MpiAbi::openmpi || abi == split::MpiAbi::mpich;
        if (has_library && what.preferred_mpi.empty()) what.preferred_mpi = split::name_of(abi);
    }
}

// The ranks keep their message logs, which a restart cannot begin and not end.
void keep_message_log(SubmitOptions& options, const store::GenerationInfo& from) {
    OfOwn& own = options.of_own;
    if (!from.manifest->message_log) {
        if (own.message_log || (!own.replicas.empty() && own.replicas != OfOwn::kNone))
            throw Error(fmt::format("{} has no message logs: a job has one from its start on (run "
                                    "--message-log, run --replicas), or none",
                                    Generation(from.number).name()),
                        ExitCode::usage);
        own.replicas.clear();
        return;
    }
    own.message_log = true;
    if (own.replicas.empty()) own.replicas = from.manifest->message_log->replicas;
    if (!own.log_bytes) own.log_bytes = from.manifest->message_log->memory;
    if (own.replicas == OfOwn::kNone) own.replicas.clear();
    check_message_log(options);
}

int continue_from(Submission what, std::vector<store::GenerationInfo> from) {
    what.go_on_from(std::move(from));
    const store::Manifest& manifest = *what.from->manifest;
    if (what.options.more.empty() && what.options.ranks > 0 &&
        what.options.ranks != static_cast<int>(manifest.images.size()))
        throw Error(fmt::format("{} in {} has {} ranks and cannot be continued with {}: leave out -n",
                                Generation(what.from->number).name(), what.ckpt_dir, manifest.images.size(),
                                what.options.ranks),
                    ExitCode::usage);
    what.command = manifest.command;
    what.segments = manifest.segments;
    what.job_number = manifest.job;
    what.preferred_mpi = manifest.mpi;
    what.options.cpu = manifest.cpu;
    what.restarts = 1;
    keep_message_log(what.options, *what.from);
    if (uid_t owner = what.from->folder.owner(); owner != ::geteuid())
        say(fmt::format("{} was made by {}: {}", what.from->directory, files::name_of_user(owner),
                        command_line(manifest.whole_command())));
    announce(*what.from);
    return supervise(std::move(what));
}

}  // namespace

int run(const SubmitOptions& options) {
    hold_sigterm();
    take_own_limits();  // a store of many generations holds them open
    launch::forget_option_of_plugin();
    if (!options.allow_owner.empty()) files::allow_owner(files::user_from(options.allow_owner));
    Submission what;
    what.options = options;
    take_ranks_of_srun(what.options);
    what.key = image::Key::from_file_or_none(options.key_file);
    what.command = options.command;
    what.parts = parts_of(what.options);
    what.segments = segments_of(what.parts);
    what.ckpt_dir = files::absolute_path(options.ckpt_dir);
    if (files::Folder::find_at(what.ckpt_dir)) {
        store::Store store = store::Store::for_reading(what.ckpt_dir, what.key);
        warn_of_others(store);
        Earlier earlier;
        if (options.continue_it)
            earlier = look_for_earlier(store, store::whole_command(what.command, what.segments), what.parts);
        if (earlier.ended) {
            say(fmt::format("job {} in {} has ended with exit code 0 ({}): nothing is left to be done",
                            earlier.ended->name, store.directory(), earlier.ended->when));
            return 0;
        }
        if (earlier.job) {
            // For a start anew, should the program turn out to save its own state (supervisor.h).
            try {
                find_programs(what);
            } catch (const Error&) {
                what.parts.clear();
            }
            return continue_from(
                std::move(what),
                choose_generation(store, options, {earlier.job, options.from.fallback, false}));
        }
        say_what_is_kept(store);
    }
    find_programs(what);
    what.job_number = random_number();
    return supervise(std::move(what));
}

int restart(const SubmitOptions& options) {
    hold_sigterm();
    take_own_limits();
    launch::forget_option_of_plugin();
    if (!options.allow_owner.empty()) files::allow_owner(files::user_from(options.allow_owner));
    Submission what;
    what.options = options;
    take_ranks_of_srun(what.options);
    what.key = image::Key::from_file_or_none(options.key_file);
    store::Store store = store::Store::for_reading(options.ckpt_dir, what.key);
    what.ckpt_dir = store.directory();
    warn_of_others(store);
    return continue_from(std::move(what),
                         choose_generation(store, options, {{}, options.from.fallback, options.from.latest}));
}

}  // namespace fermata::life
