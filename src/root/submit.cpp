#include "root/submit.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/process_limits.h"
#include "base/signals.h"
#include "base/text.h"
#include "files/folder.h"
#include "files/owners.h"
#include "image/image.h"
#include "launch/launcher_options.h"
#include "launch/library_at.h"
#include "launch/program_place.h"
#include "root/root.h"
#include "split/loader/behind.h"
#include "tree/input.h"
#include "tree/local_socket.h"
#include "tree/run_dir.h"
#include "wire/auth.h"

namespace fermata::root {
namespace {

constexpr int kNamePatienceMs = 2000;           // a job of the same name that is just ending
constexpr uint64_t kVerifyAtMost = 256u << 20;  // bytes a restart reads twice for an early, single error

// One life of a job: a first start, or a restart from `from`.
struct Submission {
    SubmitOptions options;
    std::vector<std::string> command;
    std::vector<launch::Part> parts;  // first start: the programs, found (program_place.h)
    std::vector<store::Segment> segments;
    std::string preferred_mpi;
    std::string ckpt_dir;  // absolute
    std::optional<store::GenerationInfo> from;
    image::KeyPointer key;
    uint64_t job_number = 0;
    uint32_t restarts = 0;
};

uint64_t random_number() { return std::stoull(wire::random_id(8), nullptr, 16); }

std::string job_name(const SubmitOptions& options, const std::vector<std::string>& command) {
    if (!options.job.empty()) {
        auto good = [](unsigned char c) {
            return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '+';
        };
        if (options.job[0] == '.' || options.job.size() > 100 ||
            !std::all_of(options.job.begin(), options.job.end(), good))
            throw Error(fmt::format("job name '{}' does not serve: letters, digits and -_.+, at most 100",
                                    options.job),
                        ExitCode::usage);
        return options.job;
    }
    std::string base = command.empty() ? "job" : files::split_path(command[0]).second;
    std::string name;
    for (unsigned char c : base.substr(0, 60))
        name += std::isalnum(c) || c == '-' || c == '_' ? static_cast<char>(c) : '-';
    return fmt::format("{}-{}", name, ::getpid());
}

// What would make every rank fail in its own words is said here once.
void check_limits() {
    rlimit space{};
    if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        fail(
            "the address space is limited to {} KiB, and the two halves of a rank share it out among them: "
            "ulimit -v unlimited",
            space.rlim_cur / 1024);
}

// Whoever follows them takes the first that fits: the innermost folder.
std::string moves_of(const SubmitOptions& options) {
    std::vector<std::string> moves = options.moved;
    std::stable_sort(moves.begin(), moves.end(),
                     [](const auto& a, const auto& b) { return a.find('=') > b.find('='); });
    std::string text;
    for (const std::string& move : moves) text += (text.empty() ? "" : ":") + move;
    return text;
}

// Fermata must know every program before mpiexec does.
void check_no_programs(const std::vector<std::string>& mpiexec_args) {
    for (const std::string& word : mpiexec_args)
        for (const char* one : {":", "-app", "--app", "-configfile", "--configfile"})
            if (word == one)
                throw Error(
                    fmt::format("{} in --mpiexec-args names programs that Fermata would not see: name them "
                                "all here, fermata run -n 1 -- ./a : -n 3 ./b",
                                word),
                    ExitCode::usage);
}

// With one program the ranks are counted once they run; of several it must be said where one ends.
void check_counts(const SubmitOptions& options, const std::string& mpi) {
    bool all = options.ranks > 0;
    for (const launch::Part& part : options.more) all = all && part.ranks > 0;
    if (!options.more.empty() && !all && mpi == "openmpi")
        throw Error(
            "Open MPI's mpiexec fills all slots with a program that has no -n: with several programs give "
            "each its number, -n 1 ./a : -n 3 ./b",
            ExitCode::usage);
}

int sum_of_ranks(const std::vector<launch::Part>& parts) {
    int ranks = 0;
    for (const launch::Part& part : parts) ranks += part.ranks;
    return ranks;
}

// Of several programs; one alone is the whole job's.
std::vector<store::Segment> segments_of(const std::vector<launch::Part>& parts) {
    std::vector<store::Segment> segments;
    uint32_t next = 0;
    if (parts.size() > 1)
        for (const launch::Part& part : parts) {
            segments.push_back({next, static_cast<uint32_t>(part.ranks), part.program});
            next += segments.back().ranks;
        }
    return segments;
}

// What mpiexec starts. A restart takes the programs from the images; where each of several was to run is
// known only to who has named them.
std::vector<launch::Part> parts_to_start(const SubmitOptions& options, const std::vector<launch::Part>& found,
                                         const store::GenerationInfo* from) {
    if (!from) return found;
    std::vector<launch::Part> parts = parts_of(options);
    int ranks = static_cast<int>(from->manifest->images.size());
    if (sum_of_ranks(parts) != ranks) parts.resize(1);
    if (parts.size() == 1) parts[0].ranks = ranks;
    for (launch::Part& part : parts) part.program.clear();
    return parts;
}

struct Ended {
    int code;
    bool asked_to;
};

Settings settings_of(const Submission& what, int ranks) {
    const SubmitOptions& options = what.options;
    Settings settings;
    settings.job = job_name(options, what.command);
    settings.job_id = fmt::format("{:016x}", what.job_number) + wire::random_id(8);
    settings.job_number = what.job_number;
    settings.ckpt_dir = what.ckpt_dir;
    settings.protocol = options.protocol;
    settings.save_options = options.save_options;
    settings.key = what.key;
    settings.command = what.command;
    settings.segments = what.segments;
    settings.expected_ranks = ranks;
    settings.restored = what.from ? Generation(what.from->number) : Generation();
    settings.interval = options.interval;
    settings.mtbf = options.mtbf;
    settings.walltime = options.walltime;
    // A job that saves itself every few minutes would fill the disk; one that is asked saves what it was
    // asked for.
    settings.keep = options.keep.value_or(options.interval != 0 ? 3 : 0);
    settings.verbose = options.verbose;
    settings.limits = options.limits;
    settings.note_end = options.continue_it;
    // A slow file system is not a hang: 50 MB/s for all ranks together is little.
    if (what.from && settings.limits.start > 0)
        settings.limits.start += static_cast<double>(what.from->manifest->bytes()) / 50e6;
    return settings;
}

// What every rank is told (tree::AgentConfig).
std::map<std::string, std::string> environment_of(const Submission& what, const Settings& settings,
                                                  const launch::Places& places) {
    const SubmitOptions& options = what.options;
    auto allowed = files::allowed_owner();
    std::map<std::string, std::string> environment = {
        {"FERMATA_JOB", settings.job},
        {"FERMATA_JOB_ID", settings.job_id},
        {"FERMATA_NODED", places.libexec + "/noded"},
        {"FERMATA_CKPT_DIR", what.ckpt_dir},
        {"FERMATA_RESTORE", what.from ? what.from->directory : ""},
        {"FERMATA_GENERATION", settings.restored ? std::to_string(settings.restored.number()) : ""},
        {"FERMATA_SEAL", what.from ? what.from->seal.hex() : ""},
        {"FERMATA_ALLOW_OWNER", allowed ? std::to_string(*allowed) : ""},
        {"FERMATA_PROTOCOL", options.protocol},
        {"FERMATA_FRONT_DIR", places.front_dir},
        {"FERMATA_FILES", options.files},
        {"FERMATA_MOVED", moves_of(options)},
        {"FERMATA_MAPPED", options.mapped ? "1" : "0"},
        {"FERMATA_IMAGE_KEY", what.key ? files::absolute_path(options.key_file) : ""},
        {"FERMATA_IMAGE_KEY_ID", what.key ? what.key->id().hex() : ""},
        {"FERMATA_RESTARTS", std::to_string(what.restarts)},
    };
    if (const char* said = std::getenv("FERMATA_START")) environment["FERMATA_START"] = said;
    return environment;
}

// Which library, and which programs, as far as words tell.
launch::LaunchPlan plan_of(const Submission& what, const launch::Places& places) {
    const SubmitOptions& options = what.options;
    launch::LaunchPlan plan;
    plan.library = launch::choose_library(options.mpi, what.preferred_mpi, places);
    launch::check_launcher_options(plan.library.mpi, options.launcher_options);
    for (const launch::Part& part : options.more)
        launch::check_launcher_options(plan.library.mpi, launch::split_words(part.mpiexec_args));
    check_no_programs(launch::split_words(options.mpiexec_args));
    if (!what.from) check_counts(options, plan.library.mpi);
    plan.more = parts_to_start(options, what.parts, what.from ? &*what.from : nullptr);
    static_cast<launch::Part&>(plan) = plan.more.at(0);
    plan.more.erase(plan.more.begin());
    return plan;
}

Ended submit(const Submission& what) {
    check_limits();
    take_own_limits();
    const launch::Places places = launch::find_places();
    launch::LaunchPlan plan = plan_of(what, places);
    const int ranks = plan.ranks + sum_of_ranks(plan.more);

    std::string base = tree::run_base();
    tree::sweep(base);
    wire::Key key = wire::random_key();
    const Settings settings = settings_of(what, ranks);
    Fd control;
    tree::RunDir dir = tree::RunDir::create(
        base, settings.job, [&](const std::string& path) { control = tree::listen_local(path, "control"); },
        kNamePatienceMs);
    if (!dir) fail("a job called {} is running: give this one another name with --job", settings.job);

    Root root(settings, key, std::move(control));
    plan.environment = environment_of(what, settings, places);
    plan.environment["FERMATA_RUN_BASE"] = base;
    plan.environment["FERMATA_ROOT"] = root.address();
    plan.environment["FERMATA_KEY"] = wire::to_hex(key);
    if (!plan.library.root.empty())
        for (auto& [name, value] : launch::reach_library(plan.library, dir.path()))
            plan.environment[name] = value;
    // Unless the launcher is told who shall get it.
    std::optional<tree::InputFile> input;
    if (!what.from && plan.mpiexec_args.find("stdin") == std::string::npos)
        input = tree::InputFile::behind(0);
    if (input) {
        plan.environment["FERMATA_INPUT"] = input->encoded();
        plan.no_input = true;
    }
    launch::Mpiexec mpiexec(std::move(plan), launch::TerminalInput::of_this_process());
    int code = root.run(mpiexec);
    tree::sweep(base);  // what a node daemon left that was killed
    return {code, root.asked_to_end()};
}

// The checks that read images: every header, and all data while that is quick and not to be read later. What
// they miss the ranks find.
void check_images(const store::GenerationInfo& generation, bool mapped, const image::Key* key) try {
    const store::Manifest& manifest = *generation.manifest;
    generation.check_layout();
    for (const store::ImageEntry& entry : manifest.images) {
        image::Reader reader(generation.place(entry), key);
        if (!generation.is_of(entry, reader))
            fail("{}/{} is not the image that the manifest names", generation.directory, entry.file);
        if (!mapped && manifest.bytes() <= kVerifyAtMost) reader.verify();
    }
} catch (const image::KeyError&) {
    throw;
} catch (const Error& error) {
    throw Error(error.what(), ExitCode::damaged);
}

// Which of a directory's generations may be continued when none is named.
struct Candidates {
    std::optional<uint64_t> job;  // only this one's
    bool fallback = false;        // pass over damaged ones
    bool ended_too = false;       // also of jobs that ended with 0
};

std::string command_line(const std::vector<std::string>& words) {
    return fmt::format("{}", fmt::join(words, " "));
}

// Newest first; those of other users and of jobs that have ended are left out, with a line.
std::vector<store::GenerationInfo> candidates(const store::Store& store, const Candidates& which) {
    std::vector<store::GenerationInfo> left, all = store.list();
    std::vector<store::JobEnd> ends = store.ends();
    const store::JobEnd* ended = nullptr;
    uint32_t last_of_ended = 0;
    for (auto one = all.rbegin(); one != all.rend(); ++one) {
        if (!one->manifest && one->damage.empty()) continue;  // never committed
        if (which.job && one->job != which.job) continue;
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

// The generation to restart from, with its images checked; older ones when `fallback` allows.
store::GenerationInfo choose_generation(const store::Store& store, const SubmitOptions& options,
                                        const Candidates& which) {
    auto checked = [&](const store::GenerationInfo& one) {
        store.check(one);
        check_images(one, options.mapped, store.key());
        return one;
    };
    if (options.generation) {
        store::GenerationInfo chosen = store.choose(options.generation, false);
        chosen.folder.check_owner(chosen.directory);
        return checked(chosen);
    }
    for (const store::GenerationInfo& one : candidates(store, which)) {
        try {
            return checked(one);
        } catch (const image::KeyError&) {
            throw;
        } catch (const Error& damage) {
            if (!which.fallback)
                throw Error(fmt::format("{}; --fallback takes the one before", damage.what()), damage.code());
            say(fmt::format("{}; trying the one before", damage.what()));
        }
    }
    throw Error(fmt::format("no complete generation in {}", store.directory()), ExitCode::damaged);
}

// Others may take generations away there, and put their own beside ours.
void warn_of_others(const store::Store& store) {
    if (store.open_to_others())
        say(fmt::format(
            "others may write to {}: they can remove generations or put older ones in their place; "
            "chmod go-w, or --ckpt-dir names a directory of your own",
            store.directory()));
}

void announce(const store::GenerationInfo& from) {
    const store::Manifest& m = *from.manifest;
    say(fmt::format("restarting from {} of {}: {} ranks, {}, saved {}", Generation(from.number).name(),
                    files::split_path(from.directory).first, m.images.size(), human_size(from.bytes()),
                    m.created));
    if (!m.starter.empty())
        say(fmt::format(
            "{} started the program and is not there any more: what it does after the program is not run",
            m.starter));
}

// From the first moment on SIGTERM means what it means to a running job: the root takes it from here.
void hold_sigterm() {
    sigset_t set = signal_set({SIGTERM});
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
}
// A signal to end that comes within so many whole seconds; 0 = none. All are blocked, by the root before.
int signal_within(double seconds) {
    sigset_t set = signal_set({SIGTERM, SIGINT, SIGHUP});
    timespec time{static_cast<time_t>(seconds), 0};
    return std::max(0, ::sigtimedwait(&set, nullptr, &time));
}

// A job that fails goes on from its newest generation, as often as the user allows.
int submit_and_restart(Submission what) {
    int left = what.options.max_restarts;
    const std::vector<std::string> moved = what.options.moved;
    const uint32_t first = what.from ? what.from->number : 0;
    for (double pause = 1;; pause = std::min(pause * 2, 300.0)) {
        auto [code, asked_to] = submit(what);
        if (code == 0 || asked_to || code == static_cast<int>(ExitCode::to_be_continued) || left-- <= 0)
            return code;
        store::Store store = store::Store::for_reading(what.ckpt_dir, what.key);
        try {
            // An older one in the same directory may be another job's work.
            store::GenerationInfo next = choose_generation(store, {}, {what.job_number, true, false});
            // What was saved since the restart has the new places already.
            what.options.moved = next.number > first ? std::vector<std::string>() : moved;
            what.from = std::move(next);
        } catch (const Error& error) {
            say(fmt::format("the job ended with {} and cannot be restarted: {}", code, error.what()));
            return code;
        }
        say(fmt::format("the job ended with {}; going on in {:.0f} s", code, pause));
        if (int signal = signal_within(pause)) {
            say(fmt::format("stopped before it went on from {}{}", Generation(what.from->number).name(),
                            signal == SIGTERM ? ": `fermata restart` continues it" : ""));
            return signal == SIGTERM ? static_cast<int>(ExitCode::to_be_continued) : 128 + signal;
        }
        announce(*what.from);
        what.preferred_mpi = what.from->manifest->mpi;
        ++what.restarts;
    }
}

}  // namespace

namespace {

// What `--continue` finds in the directory: the same command line is one chain of jobs.
struct Earlier {
    std::optional<uint64_t> job;  // that is to be continued
    std::optional<store::JobEnd> ended;
};

Earlier look_for_earlier(const store::Store& store, const std::vector<std::string>& command) {
    Earlier earlier;
    std::string newest;  // time of the newest sign of a job with this command
    std::vector<store::JobEnd> ends = store.ends();
    auto has_ended = [&](std::optional<uint64_t> job) {
        return std::any_of(ends.begin(), ends.end(), [&](const auto& end) { return end.job == job; });
    };
    std::vector<store::GenerationInfo> all = store.list();
    const store::GenerationInfo* other = nullptr;
    for (const store::GenerationInfo& one : all) {
        if (!one.manifest || has_ended(one.job) || !files::believed(one.folder.owner())) continue;
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
    if (!earlier.job && !earlier.ended && other)
        throw Error(
            fmt::format("{} holds {} of another command, which has not ended: {}; name another directory "
                        "with --ckpt-dir, or leave out --continue",
                        store.directory(), Generation(other->number).name(),
                        command_line(other->manifest->whole_command())),
            ExitCode::usage);
    return earlier;
}

// Of jobs that somebody may still want to continue.
void say_what_is_kept(const store::Store& store) {
    std::vector<store::JobEnd> ends = store.ends();
    std::vector<store::GenerationInfo> all = store.list();
    for (auto one = all.rbegin(); one != all.rend(); ++one) {
        if (!one->manifest ||
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

int continue_from(Submission what, store::GenerationInfo from) {
    what.from = std::move(from);
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
    what.restarts = 1;
    if (uid_t owner = what.from->folder.owner(); owner != ::geteuid())
        say(fmt::format("{} was made by {}: {}", what.from->directory, files::name_of_user(owner),
                        command_line(manifest.whole_command())));
    announce(*what.from);
    return submit_and_restart(std::move(what));
}

}  // namespace

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

int run(const SubmitOptions& options) {
    hold_sigterm();
    if (!options.allow_owner.empty()) files::allow_owner(files::user_from(options.allow_owner));
    Submission what;
    what.options = options;
    what.key = image::Key::from_file_or_none(options.key_file);
    what.command = options.command;
    what.parts = parts_of(options);
    what.segments = segments_of(what.parts);
    what.ckpt_dir = files::absolute_path(options.ckpt_dir);
    if (files::Folder::find_at(what.ckpt_dir)) {
        store::Store store = store::Store::for_reading(what.ckpt_dir, what.key);
        warn_of_others(store);
        Earlier earlier;
        if (options.continue_it)
            earlier = look_for_earlier(store, store::whole_command(what.command, what.segments));
        if (earlier.ended) {
            say(fmt::format("job {} in {} has ended with exit code 0 ({}): nothing is left to be done",
                            earlier.ended->name, store.directory(), earlier.ended->when));
            return 0;
        }
        if (earlier.job)
            return continue_from(std::move(what),
                                 choose_generation(store, options, {earlier.job, options.fallback, false}));
        say_what_is_kept(store);
    }
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
    what.job_number = random_number();
    return submit_and_restart(std::move(what));
}

int restart(const SubmitOptions& options) {
    hold_sigterm();
    if (!options.allow_owner.empty()) files::allow_owner(files::user_from(options.allow_owner));
    Submission what;
    what.options = options;
    what.key = image::Key::from_file_or_none(options.key_file);
    store::Store store = store::Store::for_reading(options.ckpt_dir, what.key);
    what.ckpt_dir = store.directory();
    warn_of_others(store);
    return continue_from(std::move(what),
                         choose_generation(store, options, {{}, options.fallback, options.latest}));
}

}  // namespace fermata::root
