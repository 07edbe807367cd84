// The `fermata` command: parses the command line, calls one function, prints one line when that fails.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "base/cpu_level.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/batch.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/copies.h"
#include "cli/doctor.h"
#include "cli/help.h"
#include "cli/manual.h"
#include "cli/predict.h"
#include "cli/report.h"
#include "cli/scan.h"
#include "files/folder.h"
#include "keeping/levels/words.h"
#include "life/submit.h"

namespace {

using namespace fermata;

std::optional<uint32_t> parse_generation(const std::string& text) {
    if (text.empty() || text == "latest") return std::nullopt;
    std::string digits = text.starts_with("gen-") ? text.substr(4) : text;
    uint32_t number = 0;
    auto [at, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc{} || at != digits.data() + digits.size() || number == 0)
        throw Error(fmt::format("generation '{}' is neither a number nor 'latest'", text), ExitCode::usage);
    return number;
}

unsigned parse_keep(const std::string& text) {
    if (text == "all") return 0;
    unsigned keep = 0;
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), keep);
    if (error != std::errc{} || at != text.data() + text.size() || keep == 0)
        throw Error(fmt::format("--keep takes a number or 'all', not '{}'", text), ExitCode::usage);
    return keep;
}

double parse_interval(const std::string& text) {
    if (text.empty()) return 0;
    if (text == "auto") return -1;
    double seconds = parse_duration(text, "--interval");
    if (seconds <= 0) throw Error("--interval must be more than 0", ExitCode::usage);
    return seconds;
}

// "/old=/new", as the kernel names folders: without "//", ".", ".." and a slash at the end.
std::string parse_move(const std::string& text) {
    size_t equals = text.find('=');
    std::string old = text.substr(0, equals),
                now = equals == std::string::npos ? "" : text.substr(equals + 1);
    for (std::string* path : {&old, &now})
        if (path->starts_with("/")) *path = files::absolute_path(*path);
    if (!old.starts_with("/") || old == "/" || !now.starts_with("/") || now == "/" ||
        (old + now).find_first_of("=:") != std::string::npos)
        throw Error(
            fmt::format("--map takes /OLD=/NEW, two folders from the root without ':' or '=', not '{}'",
                        visible(text)),
            ExitCode::usage);
    return old + "=" + now;
}

// Text of the options that need more than a conversion by CLI11.
struct Texts {
    std::string ranks, interval, mtbf, walltime, grace, start, timeout, generation, keep, layout, restarts,
        spares, launcher, levels, copy_limit, domains, save_options, log_memory, total, slot, scheduler,
        warning, name;
    std::vector<std::string> more_ranks;  // of the programs behind a ":"
};

// No machine has more cores, and a number that was meant otherwise is not tried: mpiexec takes 4 GB for a
// thousand million ranks before it fails.
constexpr int kMostRanks = Rank::kMost;

int parse_number(const std::string& text, const char* option, const char* what, int least, int most) {
    int number = 0;
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || at != text.data() + text.size() || number < least || number > most)
        throw Error(fmt::format("{} takes {}, {} to {}, not '{}'", option, what, least, most, visible(text)),
                    ExitCode::usage);
    return number;
}

image::Layout parse_layout(const std::string& text) {
    auto layout = image::Layout::of(text);
    if (!layout)
        throw Error(fmt::format("--layout takes files, shared, node or group:N, not '{}'", visible(text)),
                    ExitCode::usage);
    return *layout;
}

void add_key(CLI::App* app, std::string& file) {
    app->add_option("--encrypt-key", file, "images are encrypted: the file of the key")
        ->type_name("FILE")
        ->envname("FERMATA_ENCRYPT_KEY");
}

void add_local_dir(CLI::App* app) {
    app->add_option_function<std::string>(
           "--local-dir",
           [](const std::string& directory) {
               ::setenv("FERMATA_LOCAL_DIR", files::absolute_path(directory).c_str(), 1);
           },
           "for the level local: a directory of each node's own (default $FERMATA_LOCAL_DIR, else /var/tmp)")
        ->type_name("DIR");
}

void add_submit_options(CLI::App* app, life::SubmitOptions& o, Texts& t) {
    auto add = [&](const char* names, std::string& text, const char* type, const char* help) {
        return app->add_option(names, text, help)->type_name(type);
    };
    add("-n,--np", t.ranks, "N", "number of ranks (default: mpiexec's; a restart: the generation's)");
    add("--mpi", o.mpi, "NAME|PATH",
        "MPI library below: openmpi, mpich, the path of one, or auto (default): the program's own");
    add("--ckpt-dir", o.ckpt_dir, "DIR", "checkpoint directory (default fermata-ckpt)");
    add("--job", o.job, "NAME", "name of the job (default PROG-PID)");
    add("--interval", t.interval, "T",
        "a checkpoint every T (0.2s, 10m), or auto: by the measured cost and --mtbf");
    add("--levels", t.levels, "LIST",
        "instead of --interval: where generations go and how often, as \"memory 30s, buddy 2m, files 10m\"; "
        "or auto, by what is measured and --mtbf");
    add_local_dir(app);
    add("--copy-limit", t.copy_limit, "MB/S",
        "megabytes a second that a node copies to another level at most (default: by the period)");
    add("--domains", t.domains, "FILE",
        "for buddies and rs: lines of a node and its failure domain (default: each node is one)");
    add("--mtbf", t.mtbf, "T",
        "mean time between failures, for --levels auto, and --interval auto (there default 24h)");
    add("--walltime", t.walltime, "T",
        "checkpoint and stop (exit code 85) before T has passed (default: what Slurm gives; 0s: never)");
    add("--grace", t.grace, "T",
        "time for the checkpoint that SIGTERM asks for (default 30s, or what it needs)");
    add("--on-interrupt", o.interrupt, "checkpoint|program",
        "Ctrl-C once: checkpoint and stop, twice: stop (default), or it is the program's")
        ->check(CLI::IsMember({"checkpoint", "program"}));
    app->add_flag("--own-state", o.own_state,
                  "checkpoints are the program's own work (libfermata): it is asked to save itself");
    add("--start-timeout", t.start, "T", "give up when not all ranks run after T (default 10m; 0s: never)");
    add("--keep", t.keep, "K", "complete generations to keep, or all (default: 3 with --interval, else all)");
    add("--files", o.files, "auto|off",
        "files that the program writes: kept with a checkpoint and put back at a restart (auto), or not")
        ->check(CLI::IsMember({"auto", "off"}));
    add("--protocol", o.protocol, "NAME",
        "cc-d (default): a safe moment is found by counting collectives; cc, 2pc: older ways, to compare")
        ->check(CLI::IsMember({"cc-d", "cc", "2pc"}));
    add("--launcher", t.launcher, "NAME",
        "what starts the ranks: mpiexec, srun, own, or auto (default): srun inside a job of Slurm's");
    add("--mpiexec-args,--srun-args", o.mpiexec_args, "WORDS",
        "more arguments for what starts the ranks, as one string");
    add("--max-restarts", t.restarts, "N",
        "after a failure go on from the newest generation, at most N times (default 0)");
    add("--spares", t.spares, "N",
        "of the nodes, keep the last N free for restarts after others were lost (--launcher own, srun)");
    app->add_flag("--standby", o.of_own.standby,
                  "with --max-restarts: the next life's ranks start MPI while this one's run, and wait "
                  "(--launcher own)");
    add("--message-log-memory", t.log_memory, "SIZE",
        "with a message log: so much of a rank's in memory, the rest in a file of its node (default 256MiB; "
        "restart: as before)");
    app->add_flag("--mapped", o.mapped,
                  "a restarted program goes on at once; its memory is read as it is touched");
    add_key(app, o.key_file);
    add("--allow-owner", o.allow_owner, "USER",
        "also continue generations of this user: what they hold runs with your rights");
    add("--save-options", t.save_options, "WORDS", "how images are written: words, see below");
    add("--layout", t.layout, "files|shared|node|group:N",
        "a file per rank (default), one for the whole job, per node or per N ranks");
    add("--metrics", o.metrics, "FILE.prom", "numbers for Prometheus, for node_exporter's textfile collector")
        ->check([](const std::string& file) {
            return file.ends_with(".prom") ? ""
                                           : "the textfile collector reads names that end with .prom only";
        });
    app->add_flag("-v,--verbose", o.verbose, "say every checkpoint on stderr, with its phases");
}

void finish_submit_options(life::SubmitOptions& o, const Texts& t) {
    if (!t.ranks.empty()) o.ranks = parse_number(t.ranks, "-n", "a number of ranks", 1, kMostRanks);
    if (!t.launcher.empty()) o.launcher = launch::launcher_named(t.launcher);
    if (!t.restarts.empty())
        o.max_restarts = parse_number(t.restarts, "--max-restarts", "a number", 0, 1'000'000);
    if (!t.spares.empty())
        o.spares =
            static_cast<unsigned>(parse_number(t.spares, "--spares", "a number of nodes", 0, 1'000'000));
    if (!t.log_memory.empty()) {
        const double bytes = parse_bytes(t.log_memory, "--message-log-memory");
        if (bytes < static_cast<double>(store::MessageLog::kLeastMemory) ||
            bytes > static_cast<double>(store::MessageLog::kMostMemory))
            throw Error("--message-log-memory is 64KiB at least, and 1PiB at most", ExitCode::usage);
        o.of_own.log_bytes = static_cast<uint64_t>(bytes);
    }
    if (o.of_own.standby && (o.max_restarts == 0 || o.launcher != launch::LauncherName::own))
        throw Error("--standby goes with --max-restarts and --launcher own", ExitCode::usage);
    o.interval = parse_interval(t.interval);
    if (!t.levels.empty()) {
        o.levels = keeping::parse_levels(t.levels);
        if (o.interval != 0) throw Error("--levels says how often: leave out --interval", ExitCode::usage);
    }
    if (o.own_state && o.interval < 0)
        throw Error("--interval auto measures checkpoints of whole processes: name a time for --own-state",
                    ExitCode::usage);
    if (o.own_state && o.levels)
        throw Error(
            "--levels is for checkpoints of whole processes: the program's own words for fermata_open() "
            "(memory=, flush=) say where its state goes",
            ExitCode::usage);
    if (!t.domains.empty() && !o.levels.buddy && !o.levels.wish("rs"))
        throw Error("--domains goes with --levels \"…, buddy\" or \"…, rs:K+M T\"", ExitCode::usage);
    if (!t.domains.empty()) o.levels.domains = level::Domains::from_file(t.domains);
    if (!t.copy_limit.empty() && !o.levels) throw Error("--copy-limit goes with --levels", ExitCode::usage);
    if (!t.copy_limit.empty())
        o.levels.copy_limit =
            uint64_t{1'000'000} *
            static_cast<uint64_t>(parse_number(t.copy_limit, "--copy-limit", "a number", 1, 1'000'000));
    if (!t.walltime.empty()) o.walltime = parse_duration(t.walltime, "--walltime");
    if (!t.grace.empty()) o.limits.grace = parse_duration(t.grace, "--grace");
    if (!t.start.empty()) o.limits.start = parse_duration(t.start, "--start-timeout");
    if (!t.mtbf.empty()) o.mtbf = parse_duration(t.mtbf, "--mtbf");
    if (o.levels.automatic && (t.mtbf.empty() || o.mtbf <= 0))
        throw Error("--levels auto follows from how often the job fails: say it, as --mtbf 6h",
                    ExitCode::usage);
    if (!t.keep.empty()) o.keep = parse_keep(t.keep);
    for (size_t i = 0; i < t.more_ranks.size(); ++i)
        if (!t.more_ranks[i].empty())
            o.more.at(i).ranks = parse_number(t.more_ranks[i], "-n", "a number of ranks", 1, kMostRanks);
    o.save_options = image::SaveOptions::parse(t.save_options);
    if (!t.layout.empty()) o.save_options.write.layout = parse_layout(t.layout);
    if (!t.levels.empty() && o.save_options.write.layout.together())
        throw Error(fmt::format("--levels and layout={} do not go together: in memory each image is a file",
                                o.save_options.write.layout.word()),
                    ExitCode::usage);
    o.from.generation = parse_generation(t.generation);
    for (std::string& move : o.moved) move = parse_move(move);
    o.from.latest = t.generation == "latest";
}

void add_job_choice(CLI::App* app, cli::JobChoice& which) {
    app->add_option("--job", which.job, "name of the job")->type_name("NAME");
    app->add_option("--ckpt-dir", which.ckpt_dir, "the job that writes to this directory")->type_name("DIR");
}

int show(const std::string& help) {
    std::fputs(help.c_str(), stdout);
    return 0;
}

// Values that the words of a command line set; each command uses its part.
struct Words {
    Texts texts;
    life::SubmitOptions submit;
    bool check = false, json = false;
    std::string inject;
    cli::CheckpointOptions checkpoint;
    cli::StatusOptions status;
    cli::CancelOptions cancel;
    cli::RenewOptions renew;
    cli::ReplicasWords replicas;
    std::string renew_timeout;
    cli::StoreOptions store;
    bool repair = false;  // verify
    cli::PredictWords predict;
    cli::ReportWords report;
    cli::DoctorOptions doctor;
    std::vector<std::string> scheduler_options;
    std::vector<std::string> run_words;  // batch: behind its "--"
};

void add_run(CLI::App* app, Words& w) {
    add_submit_options(app, w.submit, w.texts);
    app->add_flag("--continue", w.submit.continue_it,
                  "continue the job of this command from its newest checkpoint, if there is one");
    app->add_flag("--message-log", w.submit.of_own.message_log,
                  "ranks log messages: `fermata renew` needs no safe state, nobody waits for others "
                  "(--launcher own)");
    app->add_option("--cpu", w.submit.cpu, "level of CPUs: libraries choose no code beyond it")
        ->check(CLI::IsMember(cpu_level_names()));
    app->add_option(
           "--replicas", w.submit.of_own.replicas,
           "ranks that have a copy, which takes over when the rank dies: all, a number, a part or a list")
        ->type_name("all|N|P%|LIST");
    app->add_option("--inject", w.inject,
                    "for tests of resilience: kill ranks and copies as a law says, "
                    "weibull:shape=0.7,scale=T,seed=K or exponential:mtbf=T")
        ->type_name("LAW:WORDS");
    app->add_flag("--check", w.check, "do not run: say what the program needs and whether it is there");
    app->add_flag("--json", w.json, "with --check: answer as JSON");
}
int run(Words& w) {
    if (w.json && !w.check) throw Error("--json goes with --check (fermata run --help)", ExitCode::usage);
    if (w.check) return cli::check_programs(life::parts_of(w.submit), w.json);
    finish_submit_options(w.submit, w.texts);
    if (!w.submit.of_own.replicas.empty()) w.submit.of_own.message_log = true;
    if (w.submit.of_own.message_log) life::check_message_log(w.submit);
    if (!w.inject.empty()) w.submit.inject = root::Injection::parse(w.inject);
    return life::run(w.submit);
}

void add_restart(CLI::App* app, Words& w) {
    add_submit_options(app, w.submit, w.texts);
    app->add_option("--generation", w.texts.generation, "number of the generation, or latest")
        ->type_name("K");
    app->add_option("--map", w.submit.moved,
                    "a folder of the program's that is elsewhere now; may be given several times")
        ->type_name("/OLD=/NEW")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->expected(1);
    app->add_flag("--fallback", w.submit.from.fallback,
                  "if the newest generation is damaged take the one before");
    app->add_option("--replicas", w.submit.of_own.replicas,
                    "of a job with a message log: ranks that have a copy (default: as before)")
        ->type_name("none|all|N|P%|LIST");
}
int restart(Words& w) {
    finish_submit_options(w.submit, w.texts);
    return life::restart(w.submit);
}

void add_checkpoint(CLI::App* app, Words& w) {
    add_job_choice(app, w.checkpoint.which);
    app->add_flag("--stop", w.checkpoint.stop, "end the job afterwards (its run exits with 85)");
    app->add_flag("--own-state", w.checkpoint.own_state,
                  "the program saves its own state (libfermata), instead of its processes being saved");
    app->add_option("--timeout", w.texts.timeout, "give up after T; the job goes on (default 10m)")
        ->type_name("T");
    app->add_flag("-v,--verbose", w.checkpoint.verbose, "say how long each phase took");
    app->add_flag("--json", w.checkpoint.json, "answer as JSON");
}
int checkpoint(Words& w) {
    if (!w.texts.timeout.empty()) w.checkpoint.timeout = parse_duration(w.texts.timeout, "--timeout");
    return cli::checkpoint(w.checkpoint);
}

void add_status(CLI::App* app, Words& w) {
    add_job_choice(app, w.status.which);
    app->add_flag("--watch", w.status.watch, "then say what happens to the job, until it is over");
    app->add_flag("--waits", w.status.diagnosis, "ask every rank which call it waits in, and for whom");
    app->add_flag("--json", w.status.json, "answer as JSON");
}

void add_cancel(CLI::App* app, Words& w) {
    add_job_choice(app, w.cancel.which);
    app->add_flag("--checkpoint", w.cancel.checkpoint_only,
                  "only its checkpoint in progress; the job goes on");
    app->add_flag("--json", w.cancel.json, "answer as JSON");
}

void add_renew(CLI::App* app, Words& w) {
    add_job_choice(app, w.renew.which);
    app->add_option("--mpi", w.renew.wanted.mpi, "another MPI library: openmpi, mpich or PATH, as of run")
        ->type_name("MPI");
    app->add_option("--mpiexec-args", w.renew.wanted.mpiexec_args,
                    "variables in mpiexec's words (-x, -env, -genv); ranks stay where they are")
        ->type_name("WORDS");
    app->add_option("--env", w.renew.wanted.environment,
                    "NAME=VALUE in the environment of the new libraries (again for more); the program's own "
                    "stays as it is")
        ->type_name("NAME=VALUE")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app->add_option("--timeout", w.renew_timeout, "give up after T, and go on as before")->type_name("T");
    app->add_flag("--json", w.renew.json, "answer as JSON");
    app->add_flag("-v,--verbose", w.renew.verbose, "how long each phase took");
}

void add_store(CLI::App* app, Words& w) {
    app->add_option("--ckpt-dir", w.store.ckpt_dir, "checkpoint directory (default fermata-ckpt)")
        ->type_name("DIR");
    app->add_flag("--json", w.store.json, "answer as JSON");
    add_key(app, w.store.key_file);
    add_local_dir(app);
}
void add_generation(CLI::App* app, Words& w, const char* help) {
    app->add_option("--generation", w.texts.generation, help)->type_name("K");
}
const cli::StoreOptions& store_of(Words& w) {
    w.store.generation = parse_generation(w.texts.generation);
    return w.store;
}

void add_verify(CLI::App* app, Words& w) {
    add_store(app, w);
    add_generation(app, w, "only this one");
    app->add_flag("--repair", w.repair,
                  "mend what is damaged from another copy that is intact, or from parity");
}

void add_inspect(CLI::App* app, Words& w) {
    add_store(app, w);
    add_generation(app, w, "number of the generation, or latest");
    app->add_flag("--regions", w.store.regions, "list the memory regions of every image");
    app->add_flag("--objects", w.store.objects, "list what MPI holds: communicators, datatypes, requests, …");
}

void add_compact(CLI::App* app, Words& w) {
    add_store(app, w);
    add_generation(app, w, "number of the generation, or latest");
    app->add_option("--keep", w.texts.keep,
                    "afterwards keep only so many complete generations (default: all)")
        ->type_name("N");
    app->add_option("--save-options", w.texts.save_options, "how images are written: words, see below")
        ->type_name("WORDS");
}
int compact(Words& w) {
    return cli::compact({store_of(w), image::SaveOptions::parse(w.texts.save_options),
                         w.texts.keep.empty() ? 0 : parse_keep(w.texts.keep)});
}

void add_batch(CLI::App* app, Words& w) {
    Texts& t = w.texts;
    auto add = [&](const char* names, std::string& text, const char* type, const char* help) {
        return app->add_option(names, text, help)->type_name(type);
    };
    add("--slot", t.slot, "T|T..T",
        "how long the scheduler lets a job run, or the least and the most of it (2h..48h)")
        ->required();
    add("--total", t.total, "T", "how long the program may take in all (default: until it is done)");
    add("--scheduler", t.scheduler, "NAME", "slurm (default), sge, lsf or htcondor");
    add("--name", t.name, "NAME", "name of the batch job (default: the program's)");
    add("--warning", t.warning, "T", "how long before a slot's end the scheduler says so (default 5m)");
    app->add_option("--option", w.scheduler_options,
                    "one more option for the scheduler; may be given several times")
        ->type_name("WORDS")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->expected(1);
}
int batch(Words& w);

// The commands, in the order of the help.
constexpr struct {
    const char* name;
    const char* help;
    void (*add)(CLI::App*, Words&);
    int (*run)(Words&);
} kCommands[] = {
    {"run", "run a program under mpiexec so that it can be checkpointed", add_run, run},
    {"restart", "continue a job from a checkpoint", add_restart, restart},
    {"checkpoint", "take a checkpoint of a running job", add_checkpoint, checkpoint},
    {"renew", "give the ranks of a running job new MPI libraries", add_renew,
     [](Words& w) {
         if (!w.renew_timeout.empty()) w.renew.timeout = parse_duration(w.renew_timeout, "--timeout");
         return cli::renew(w.renew);
     }},
    {"replicas", "which ranks of a running job have copies, and which shall have one",
     [](CLI::App* app, Words& w) {
         add_job_choice(app, w.replicas.which);
         cli::add_replicas(app, w.replicas);
     },
     [](Words& w) { return cli::replicas(cli::options_of(w.replicas)); }},
    {"status", "what running jobs do", add_status, [](Words& w) { return cli::status(w.status); }},
    {"cancel", "end a running job", add_cancel, [](Words& w) { return cli::cancel(w.cancel); }},
    {"list", "generations in a checkpoint directory", add_store,
     [](Words& w) { return cli::list(store_of(w)); }},
    {"verify", "compare every byte of generations with their checksums", add_verify,
     [](Words& w) {
         return cli::verify({store_of(w), w.repair});
     }},
    {"inspect", "what a generation holds", add_inspect, [](Words& w) { return cli::inspect(store_of(w)); }},
    {"compact", "make a generation that refers to earlier ones stand alone", add_compact, compact},
    {"report", "what became of a job, as one page with pictures",
     [](CLI::App* app, Words& w) { cli::add_report(app, w.report); },
     [](Words& w) { return cli::report(w.report); }},
    {"predict", "how often to save, and what that costs",
     [](CLI::App* app, Words& w) { cli::add_predict(app, w.predict); },
     [](Words& w) { return cli::predict(w.predict); }},
    {"batch", "write a job script that goes on until the program is done", add_batch, batch},
    {"doctor", "what this machine has of what Fermata needs",
     [](CLI::App* app, Words& w) { cli::add_doctor(app, w.doctor); },
     [](Words& w) { return cli::doctor(w.doctor); }},
};

void add_commands(CLI::App& app, Words& words) {
    // Scripts append options to those that are there: the last one counts.
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app.set_version_flag("--version", fmt::format("fermata {}", kVersion));
    for (const auto& command : kCommands) command.add(app.add_subcommand(command.name, command.help), words);
    cli::describe(app);
}

// The options of `name`, and behind them the program's command, into `words`.
void parse(CLI::App& app, const std::string& name, const cli::Scanned& scanned, Words& words) {
    try {
        std::vector<std::string> own(scanned.own.rbegin(), scanned.own.rend());
        own.push_back(name);
        app.parse(own);
    } catch (const CLI::ParseError& error) {
        throw Error(fmt::format("{} (fermata {} --help)", visible(error.what()), name), ExitCode::usage);
    }
    words.submit.command = scanned.command;
    words.submit.launcher_options = scanned.launcher;
    for (const cli::ScannedPart& part : scanned.more) {
        words.texts.more_ranks.push_back(part.ranks);
        words.submit.more.push_back({0, life::launcher_words(part.launcher, ""), part.command, ""});
    }
}

// Reads these words as `fermata run` would.
life::SubmitOptions as_run(const std::vector<std::string>& line) {
    CLI::App app{"Fermata: checkpoints of unmodified MPI programs", "fermata"};
    Words words;
    add_commands(app, words);
    cli::Scanned scanned = cli::scan(cli::command_of(app, "run"), line);
    if (scanned.command.empty())
        throw Error(
            "nothing to run: fermata batch --slot 24h -- -n 4 -- ./program arguments… (fermata batch --help)",
            ExitCode::usage);
    parse(app, "run", scanned, words);
    finish_submit_options(words.submit, words.texts);
    return words.submit;
}

int batch(Words& w) {
    const Texts& t = w.texts;
    const life::SubmitOptions run = as_run(w.run_words);
    cli::BatchOptions o;
    if (!t.warning.empty()) o.warning = parse_duration(t.warning, "--warning");
    if (!t.scheduler.empty()) o.scheduler = cli::scheduler_named(t.scheduler);
    cli::parse_slot(t.slot, o);
    if (!t.total.empty()) o.total = parse_duration(t.total, "--total");
    for (const launch::Part& part : life::parts_of(run)) o.ranks += part.ranks;
    if (o.ranks == 0)
        throw Error("the scheduler has to be told how many ranks: fermata batch … -- -n 4 …",
                    ExitCode::usage);
    o.name = t.name.empty() ? files::split_path(run.command.at(0)).second : t.name;
    auto good = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; };
    if (o.name.empty() || !std::isalpha(static_cast<unsigned char>(o.name[0])) ||
        !std::all_of(o.name.begin(), o.name.end(), good))
        throw Error(
            fmt::format("'{}' does not serve as the job's name: a letter, then letters, digits and -_. "
                        "(--name)",
                        visible(o.name)),
            ExitCode::usage);
    o.ckpt_dir = run.ckpt_dir;
    o.words = w.run_words;
    o.extra = w.scheduler_options;
    std::fputs(cli::batch_script(o).c_str(), stdout);
    return 0;
}

// `fermata help --as man [COMMAND]`, or bash, zsh, fish: what packages install besides.
int help_as(const CLI::App& app, const std::vector<std::string>& line) {
    const std::string form = line.size() > 2 ? line[2] : "";
    if (form != "man") return show(cli::completion_of(app, form));
    return show(cli::manual_of(app, line.size() > 3 ? cli::command_of(app, line[3]) : app));
}

int parse_and_run(const std::vector<std::string>& line) {
    CLI::App app{"Fermata: checkpoints of unmodified MPI programs", "fermata"};
    Words words;
    add_commands(app, words);
    if (line.empty()) {  // a mistake, and the help is what it asks for
        std::fputs(cli::help_of(app).c_str(), stderr);
        return static_cast<int>(ExitCode::usage);
    }
    const std::string& verb = line[0];
    if (verb == "--help" || verb == "-h" || (verb == "help" && line.size() == 1))
        return show(cli::help_of(app));
    if (verb == "help" && line[1] == "--as") return help_as(app, line);
    if (verb == "--version") return show(app.version() + "\n");
    if (verb.starts_with("-"))
        throw Error(
            fmt::format("options come after the command: fermata run {} … (fermata help)", visible(verb)),
            ExitCode::usage);
    const std::string& name = verb == "help" ? line[1] : verb;
    CLI::App* sub = &cli::command_of(app, name);
    cli::Scanned scanned;
    scanned.help = verb == "help";
    auto own_end = name == "batch" ? std::find(line.begin(), line.end(), "--") : line.end();
    if (!scanned.help) scanned = cli::scan(*sub, {line.begin() + 1, own_end});
    if (scanned.help) return show(cli::help_of(app, *sub));
    if (name == "run" && scanned.command.empty())
        throw Error("nothing to run: fermata run -n 4 -- ./program arguments… (fermata run --help)",
                    ExitCode::usage);
    if (own_end != line.end()) words.run_words.assign(own_end + 1, line.end());
    parse(app, name, scanned, words);
    for (const auto& command : kCommands)
        if (app.got_subcommand(command.name)) return command.run(words);
    return static_cast<int>(ExitCode::usage);  // never: command_of() has found it
}

}  // namespace

int main(int argc, char** argv) {
    fermata::start_log("root");
    try {
        return parse_and_run({argv + 1, argv + argc});
    } catch (const fermata::Error& error) {
        fermata::say(std::string("error: ") + error.what());
        return static_cast<int>(error.code());
    } catch (const std::exception& error) {
        fermata::say("error: " + fermata::line_of(error));
        return static_cast<int>(fermata::ExitCode::failed);
    }
}
