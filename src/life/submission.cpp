#include "life/submission.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/new_code.h"
#include "base/process_limits.h"
#include "files/folder.h"
#include "files/owners.h"
#include "launch/launcher_options.h"
#include "launch/make.h"
#include "life/cpu_words.h"
#include "life/slot.h"
#include "life/standby.h"
#include "root/plan/replicas.h"
#include "root/root.h"
#include "tree/input.h"
#include "tree/local_socket.h"
#include "tree/run_dir.h"
#include "wire/auth.h"

namespace fermata::life {
namespace {

constexpr int kNamePatienceMs = 2000;  // a job of the same name that is just ending

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

// Says once, here, why every rank would fail in its own words.
void check_limits() {
    rlimit space{};
    if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        fail(
            "the address space is limited to {} KiB, and each rank reserves 2^47 bytes of it, most of them "
            "never used: {}",
            space.rlim_cur / 1024,
            space.rlim_max == RLIM_INFINITY ? "ulimit -v unlimited"
                                            : "where the site's limit is the hard one too, and `ulimit -v "
                                              "unlimited` fails, docs/usage.md "
                                              "(Limits on virtual memory) says what to ask for");
    if (const std::string why = why_no_new_code(); !why.empty()) fail("{}", why);
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
        for (const char* one : {":", "-app", "--app", "-configfile", "--configfile", "--multi-prog"})
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

void check_words(const SubmitOptions& options, const std::string& launcher) {
    launch::check_launcher_options(launcher, options.launcher_options);
    for (const launch::Part& part : options.more)
        launch::check_launcher_options(launcher, launch::split_words(part.mpiexec_args));
}

// The programs that mpiexec starts. A restart takes the programs from the images; where each of several was
// to run is known only to who has named them.
std::vector<launch::Part> parts_to_start(const SubmitOptions& options, const std::vector<launch::Part>& found,
                                         const store::GenerationInfo* from) {
    if (!from) return found;
    std::vector<launch::Part> parts = parts_of(options);
    int ranks = static_cast<int>(from->manifest->images.size());
    if (launch::ranks_of(parts) != ranks) parts.resize(1);
    if (parts.size() == 1) parts[0].ranks = ranks;
    for (launch::Part& part : parts) part.program.clear();
    return parts;
}

// Measure of the last checkpoint of the job, which tells what the next one will take: a whole one's size and
// time.
std::optional<journal::Measured> measured_of(const store::GenerationInfo& from) {
    const store::Manifest& manifest = *from.manifest;
    auto save = manifest.phases.find("save");
    if (save == manifest.phases.end() || !manifest.needs.empty()) return {};
    // Times that nothing took are nobody's measure: the file may hold anything.
    for (auto& [name, seconds] : manifest.phases)
        if (seconds < 0) return {};
    journal::Measured one;
    one.writing = save->second;
    one.until_saving = manifest.seconds() - save->second;
    one.standing = manifest.seconds();
    one.bytes = from.bytes();
    return one;
}

// --walltime counts from the first life, a scheduler's limit is what is left of it. What comes first counts.
void take_walltime(root::Settings& settings, const Submission& what) {
    settings.walltime = what.options.walltime.value_or(0);
    settings.began = what.began;
    if (what.from) settings.measured_before = measured_of(*what.from);
    if (what.options.walltime && settings.walltime == 0) return;
    if (auto left = seconds_left_in_slot(what.restarts > 0)) {
        const double own = settings.walltime - static_cast<double>(tree::now_ms() - what.began) / 1000;
        if (settings.walltime > 0 && own <= *left) return;  // that comes first
        settings.left_in_slot = [] { return seconds_left_in_slot(true); };
        settings.walltime = *left;
        settings.began = tree::now_ms();
    }
}

root::Settings settings_of(const Submission& what, int ranks) {
    const SubmitOptions& options = what.options;
    root::Settings settings;
    settings.job = job_name(options, what.command);
    settings.job_id = fmt::format("{:016x}", what.job_number) + wire::random_id(8);
    settings.job_number = what.job_number;
    settings.ckpt_dir = what.ckpt_dir;
    settings.protocol = options.protocol;
    settings.cpu = options.cpu;
    settings.message_log = options.of_own.message_log;
    settings.log_memory = options.of_own.log_bytes.value_or(settings.log_memory);
    settings.replicas = options.of_own.replicas;
    settings.injection = options.inject;
    if (what.from && what.from->manifest->message_log)
        settings.log_epoch = what.from->manifest->message_log->epoch;
    if (!settings.replicas.empty() && ranks > 0)
        root::replicated(settings.replicas, static_cast<uint32_t>(ranks));  // or refuses before anything runs
    settings.save_options = options.save_options;
    settings.key = what.key;
    settings.command = what.command;
    settings.segments = what.segments;
    settings.expected_ranks = ranks;
    settings.restored = what.from ? Generation(what.from->number) : Generation();
    settings.interval = options.levels ? options.levels.interval() : options.interval;
    settings.levels = options.levels;
    if (what.from && what.from->is_up_to_nodes()) settings.candidates = what.candidates;
    settings.mtbf = options.mtbf;
    take_walltime(settings, what);
    settings.restarts = what.restarts;
    settings.may_restart = what.may_restart;
    settings.goes_on = what.goes_on;
    settings.program_interrupt = options.interrupt == "program";
    settings.journal = what.journal;
    if (what.metrics) settings.each_turn = [metrics = what.metrics] { metrics->turn(); };
    // A job that saves itself every few minutes would fill the disk; one that is asked saves what it was
    // asked for.
    settings.keep = options.keep.value_or(settings.interval != 0 ? 3 : 0);
    settings.verbose = options.verbose;
    settings.own_state = options.own_state;
    settings.limits = options.limits;
    settings.note_end = options.continue_it;
    // A slow file system is not a hang: 50 MB/s for all ranks together is little.
    if (what.from && settings.limits.start > 0)
        settings.limits.start += static_cast<double>(what.from->manifest->bytes()) / 50e6;
    return settings;
}

// Variables that tell every rank what it has to know (tree::AgentConfig).
std::map<std::string, std::string> environment_of(const Submission& what, const root::Settings& settings,
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
        {"FERMATA_CHOICE", settings.candidates.empty() ? "0" : "1"},
        {"FERMATA_SEAL", what.from ? what.from->seal.hex() : ""},
        {"FERMATA_ALLOW_OWNER", allowed ? std::to_string(*allowed) : ""},
        {"FERMATA_PROTOCOL", options.protocol},
        {"FERMATA_MESSAGE_LOG", options.of_own.message_log ? "1" : "0"},
        {"FERMATA_MESSAGE_LOG_MEMORY", std::to_string(settings.log_memory)},
        {"FERMATA_FRONT_DIR", places.front_dir},
        {"FERMATA_CPU", options.cpu},
        {"FERMATA_FILES", options.files},
        {"FERMATA_MOVED", moves_of(options)},
        {"FERMATA_MAPPED", options.mapped ? "1" : "0"},
        {"FERMATA_IMAGE_KEY", what.key ? files::absolute_path(options.key_file) : ""},
        {"FERMATA_IMAGE_KEY_ID", what.key ? what.key->id().hex() : ""},
        {"FERMATA_RESTARTS", std::to_string(what.restarts)},
    };
    // Where nodes keep what is local: whatever starts the ranks hands on no other variables.
    if (const char* local = std::getenv("FERMATA_LOCAL_DIR"); local && *local)
        environment["FERMATA_LOCAL_DIR"] = files::absolute_path(local);
    if (const CpuLevel* level = cpu_level(options.cpu); level && !what.from) {
        const char* tunables = std::getenv("GLIBC_TUNABLES");
        environment.merge(cpu_environment(*level, tunables ? tunables : ""));
    }
    if (const char* said = std::getenv("FERMATA_START")) environment["FERMATA_START"] = said;
    return environment;
}

// Which library, and which programs, as far as words tell.
launch::LaunchPlan plan_of(const Submission& what, const launch::Places& places) {
    const SubmitOptions& options = what.options;
    launch::LaunchPlan plan;
    const std::vector<std::string> given = launch::split_words(options.mpiexec_args);
    std::vector<std::string> words = options.launcher_options;
    words.insert(words.end(), given.begin(), given.end());
    plan.library = launch::choose_library(options.mpi, what.preferred_mpi, places,
                                          launch::needs_mpiexec(options.launcher));
    plan.launcher = launch::choose_launcher(options.launcher, plan.library, words);
    if (plan.launcher != launch::LauncherName::own)
        check_words(options, launch::options_name(plan.launcher, plan.library));
    check_no_programs(given);
    if (!what.from) check_counts(options, plan.library.mpi);
    plan.again = what.again;
    plan.may_restart = what.may_restart;
    plan.suspects = what.suspects;
    plan.spares = options.spares;
    plan.more = parts_to_start(options, what.parts, what.from ? &*what.from : nullptr);
    static_cast<launch::Part&>(plan) = plan.more.at(0);
    plan.more.erase(plan.more.begin());
    return plan;
}

// Libraries add up in different orders. Sums of two numbers are the same in any.
void say_what_may_differ(const std::string& mpi, const store::Manifest& from) {
    if (mpi == from.mpi || from.images.size() <= 2) return;
    say(fmt::format("on {} from now on, on {} until now: sums over the ranks may differ in their last digits",
                    mpi, from.mpi));
}

}  // namespace

Prepared prepare(const Submission& what, const std::string& base, bool stands_by) {
    Prepared life;
    const launch::Places places = launch::find_places();
    launch::LaunchPlan plan = plan_of(what, places);
    const wire::Key key = wire::random_key();
    if (what.from && !stands_by) say_what_may_differ(plan.library.mpi, *what.from->manifest);
    life.ranks = plan.all_ranks();
    const root::Settings settings = settings_of(what, life.ranks);
    life.root = std::make_unique<root::Root>(settings, key);
    plan.environment = environment_of(what, settings, places);
    if (stands_by) plan.environment["FERMATA_CHOICE"] = "1";
    plan.environment["FERMATA_RUN_BASE"] = base;
    plan.environment["FERMATA_ROOT"] = life.root->address();
    plan.environment["FERMATA_KEY"] = wire::to_hex(key);
    // Unless the launcher is told who shall get it.
    std::optional<tree::InputFile> input;
    if (!what.from && plan.mpiexec_args.find("stdin") == std::string::npos &&
        plan.mpiexec_args.find("--input") == std::string::npos)
        input = tree::InputFile::behind(0);
    if (input) {
        plan.environment["FERMATA_INPUT"] = input->encoded();
        plan.no_input = true;
    }
    const launch::LauncherName name = plan.launcher;
    life.launcher = launch::make_launcher(
        name, std::move(plan), stands_by ? std::nullopt : launch::TerminalInput::of_this_process());
    return life;
}

Ended live(const Submission& what, Standby* standby) {
    check_limits();
    take_own_limits();
    const std::string base = tree::run_base(), job = job_name(what.options, what.command);
    tree::sweep(base);
    Fd control;
    tree::RunDir dir = tree::RunDir::create(
        base, job, [&](const std::string& path) { control = tree::listen_local(path, "control"); },
        kNamePatienceMs);
    if (!dir) fail("a job called {} is running: give this one another name with --job", job);
    std::optional<Prepared> life;
    if (standby) life = standby->take(what);
    if (life) {
        root::Settings settings = settings_of(what, life->ranks);
        settings.candidates = what.candidates;  // its ranks wait to be told, also of one in files
        life->root->take_up(std::move(settings));
        life->launcher->take_up(launch::TerminalInput::of_this_process());
    } else {
        life = prepare(what, base, false);
    }
    root::Root& root = *life->root;
    if (standby) standby->of(what, base, root);
    root.listen_at(std::move(control));
    const int code = root.run(*life->launcher, standby);
    tree::sweep(base);  // what a node daemon left that was killed
    std::vector<std::string> lost = root.lost_nodes();
    for (std::string& host : life->launcher->unreached()) lost.push_back(std::move(host));
    const root::OwnState& own = root.own_state();
    return {code,         root.asked_to_end(), root.why_it_ended(), root.who_ended_it(), root.newest(),
            own.exists(), own.newest(),        own.saved(),         std::move(lost),     root.lost_a_node()};
}

}  // namespace fermata::life
