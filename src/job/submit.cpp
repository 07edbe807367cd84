#include "job/submit.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "base/signals.h"
#include "base/text.h"
#include "image/image.h"
#include "job/input.h"
#include "job/launch.h"
#include "job/library_at.h"
#include "job/local_socket.h"
#include "job/run_dir.h"
#include "wire/auth.h"

namespace fs = std::filesystem;

namespace fermata::job {
namespace {

constexpr int kNamePatienceMs = 2000;           // a job of the same name that is just ending
constexpr uint64_t kVerifyAtMost = 256u << 20;  // bytes a restart reads twice for an early, single error

// One life of a job: a first start, or a restart from `from`.
struct Submission {
    SubmitOptions options;
    std::vector<std::string> command;
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
    std::string base = command.empty() ? "job" : fs::path(command[0]).filename().string();
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

std::string moves_of(const SubmitOptions& options) {
    std::string text;
    for (const std::string& move : options.moved) text += (text.empty() ? "" : ":") + move;
    return text;
}

struct Ended {
    int code;
    bool asked_to;
};

Ended submit(const Submission& what) {
    const SubmitOptions& options = what.options;
    check_limits();
    Places places = find_places();
    LaunchPlan plan;
    plan.launcher = choose_launcher(options.mpi, what.preferred_mpi, places);
    plan.mpiexec_args = options.mpiexec_args;
    plan.ranks = options.ranks;
    if (what.from)
        plan.ranks = static_cast<int>(what.from->manifest->images.size());
    else
        plan.program = what.command;

    std::string base = run_base();
    sweep(base);
    wire::Key key = wire::random_key();
    Settings settings;
    settings.job = job_name(options, what.command);
    settings.job_id = fmt::format("{:016x}", what.job_number) + wire::random_id(8);
    settings.job_number = what.job_number;
    settings.ckpt_dir = what.ckpt_dir;
    settings.protocol = options.protocol;
    settings.save_options = options.save_options;
    settings.key = what.key;
    settings.command = what.command;
    settings.expected_ranks = plan.ranks;
    settings.restored = what.from ? store::generation_name(what.from->number) : "";
    settings.interval = options.interval;
    settings.mtbf = options.mtbf;
    settings.walltime = options.walltime;
    // A job that saves itself every few minutes would fill the disk; one that is asked saves what it was
    // asked for.
    settings.keep = options.keep.value_or(options.interval != 0 ? 3 : 0);
    settings.verbose = options.verbose;
    settings.limits = options.limits;
    // A slow file system is not a hang: 50 MB/s for all ranks together is little.
    if (what.from && settings.limits.start > 0)
        settings.limits.start += static_cast<double>(what.from->manifest->bytes()) / 50e6;

    Fd control;
    RunDir dir = RunDir::create(
        base, settings.job, [&](const std::string& path) { control = listen_local(path, "control"); },
        kNamePatienceMs);
    if (!dir) fail("a job called {} is running: give this one another name with --job", settings.job);

    Root root(settings, key, std::move(control));
    plan.environment = {
        {"FERMATA_JOB", settings.job},
        {"FERMATA_JOB_ID", settings.job_id},
        {"FERMATA_RUN_DIR", base},
        {"FERMATA_ROOT", root.address()},
        {"FERMATA_KEY", wire::to_hex(key)},
        {"FERMATA_NODED", places.libexec + "/noded"},
        {"FERMATA_CKPT_DIR", what.ckpt_dir},
        {"FERMATA_RESTORE", what.from ? what.from->directory : ""},
        {"FERMATA_GENERATION", settings.restored},
        {"FERMATA_PROTOCOL", options.protocol},
        {"FERMATA_FRONT_DIR", places.front_dir},
        {"FERMATA_FILES", options.files},
        {"FERMATA_MOVED", moves_of(options)},
        {"FERMATA_MAPPED", options.mapped ? "1" : "0"},
        {"FERMATA_IMAGE_KEY", what.key ? fs::absolute(options.key_file).lexically_normal().string() : ""},
        {"FERMATA_IMAGE_KEY_ID", what.key ? what.key->id().hex() : ""},
        {"FERMATA_RESTARTS", std::to_string(what.restarts)},
    };
    if (!plan.launcher.root.empty())
        for (auto& [name, value] : reach_library(plan.launcher, dir.path())) plan.environment[name] = value;
    // Unless the launcher is told who shall get it.
    std::optional<InputFile> input;
    if (!what.from && options.mpiexec_args.find("stdin") == std::string::npos) input = InputFile::behind(0);
    if (input) {
        plan.environment["FERMATA_INPUT"] = input->encoded();
        plan.no_input = true;
    }
    int code = root.watch(start(plan));
    sweep(base);  // what a node daemon left that was killed
    return {code, root.asked_to_end()};
}

// The checks that read images: every header, and all data while that is quick and not to be read later. What
// they miss the ranks find.
void check_images(const store::GenerationInfo& generation, bool mapped, const image::Key* key) {
    const store::Manifest& manifest = *generation.manifest;
    generation.check_layout();
    for (const store::ImageEntry& entry : manifest.images) {
        image::Reader reader(generation.place(entry), key);
        if (reader.summary().checksum.hex() != entry.checksum || reader.identity().job != manifest.job)
            throw Error(fmt::format("{}/{} is not the image that the manifest names", generation.directory,
                                    entry.file),
                        ExitCode::damaged);
        if (!mapped && manifest.bytes() <= kVerifyAtMost) reader.verify();
    }
}

// The generation to restart from, with its images checked; older ones when `fallback` allows.
store::GenerationInfo choose_generation(const store::Store& store, const SubmitOptions& options) {
    if (options.generation || !options.fallback) {
        store::GenerationInfo chosen = store.choose(options.generation, false);
        check_images(chosen, options.mapped, store.key());
        return chosen;
    }
    std::vector<store::GenerationInfo> all = store.list();
    for (auto one = all.rbegin(); one != all.rend(); ++one) {
        if (!one->manifest && one->damage.empty()) continue;  // never committed
        one->check_key(store.key());
        try {
            store::GenerationInfo chosen = store.choose(one->number, false);
            check_images(chosen, options.mapped, store.key());
            return chosen;
        } catch (const Error& damage) {
            say(fmt::format("{}; trying the one before", damage.what()));
        }
    }
    throw Error(fmt::format("no complete generation in {}", store.directory()), ExitCode::damaged);
}

void announce(const store::GenerationInfo& from) {
    const store::Manifest& m = *from.manifest;
    say(fmt::format("restarting from {} of {}: {} ranks, {}, saved {}", store::generation_name(from.number),
                    fs::path(from.directory).parent_path().string(), m.images.size(), human_size(m.bytes()),
                    m.created));
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
    for (double pause = 1;; pause = std::min(pause * 2, 300.0)) {
        auto [code, asked_to] = submit(what);
        if (code == 0 || asked_to || code == static_cast<int>(ExitCode::to_be_continued) || left-- <= 0)
            return code;
        store::Store store = store::Store::for_reading(what.ckpt_dir, what.key);
        try {
            SubmitOptions newest;
            newest.fallback = true;
            what.from = choose_generation(store, newest);
            // An older one in the same directory is another job's work.
            if (what.from->manifest->job != what.job_number) fail("it has not made a checkpoint");
        } catch (const Error& error) {
            say(fmt::format("the job ended with {} and cannot be restarted: {}", code, error.what()));
            return code;
        }
        say(fmt::format("the job ended with {}; going on in {:.0f} s", code, pause));
        if (int signal = signal_within(pause)) {
            say(fmt::format("stopped before it went on from {}", store::generation_name(what.from->number)));
            return signal == SIGTERM ? static_cast<int>(ExitCode::to_be_continued) : 128 + signal;
        }
        announce(*what.from);
        what.preferred_mpi = what.from->manifest->mpi;
        ++what.restarts;
    }
}

}  // namespace

int run(const SubmitOptions& options) {
    hold_sigterm();
    Submission what;
    what.options = options;
    what.key = image::Key::from_file_or_none(options.key_file);
    what.command = options.command;
    split::ProgramCheck program = split::inspect_program(options.command.at(0), find_places().front_dir);
    if (!program.error.empty()) fail("{}", program.error);
    if (program.abi == split::MpiAbi::openmpi || program.abi == split::MpiAbi::mpich)
        what.preferred_mpi = split::name_of(program.abi);
    what.ckpt_dir = fs::absolute(options.ckpt_dir).lexically_normal().string();
    what.job_number = random_number();
    return submit_and_restart(std::move(what));
}

int restart(const SubmitOptions& options) {
    hold_sigterm();
    Submission what;
    what.options = options;
    what.key = image::Key::from_file_or_none(options.key_file);
    store::Store store = store::Store::for_reading(options.ckpt_dir, what.key);
    what.ckpt_dir = store.directory();
    what.from = choose_generation(store, options);
    const store::Manifest& manifest = *what.from->manifest;
    if (options.ranks > 0 && options.ranks != static_cast<int>(manifest.images.size()))
        throw Error(fmt::format("{} in {} has {} ranks and cannot be continued with {}: leave out -n",
                                store::generation_name(what.from->number), what.ckpt_dir,
                                manifest.images.size(), options.ranks),
                    ExitCode::usage);
    what.command = manifest.command;
    what.job_number = manifest.job;
    what.preferred_mpi = manifest.mpi;
    what.restarts = 1;
    announce(*what.from);
    return submit_and_restart(std::move(what));
}

}  // namespace fermata::job
