// The `fermata` command: parses the command line, calls one function, prints one line when that fails.
#include <CLI/CLI.hpp>
#include <charconv>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "job/submit.h"

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

// "/old=/new", without slashes at the end.
std::string parse_move(const std::string& text) {
    size_t equals = text.find('=');
    std::string old = text.substr(0, equals),
                now = equals == std::string::npos ? "" : text.substr(equals + 1);
    for (std::string* path : {&old, &now})
        while (path->size() > 1 && path->back() == '/') path->pop_back();
    if (!old.starts_with("/") || old == "/" || !now.starts_with("/") || now == "/" ||
        (old + now).find_first_of("=:") != std::string::npos)
        throw Error(
            fmt::format("--map takes /OLD=/NEW, two folders from the root without ':' or '=', not '{}'",
                        text),
            ExitCode::usage);
    return old + "=" + now;
}

// Text of the options that need more than a conversion by CLI11.
struct Texts {
    std::string interval, mtbf, walltime, start, timeout, generation, keep, layout;
};

void add_key(CLI::App* app, std::string& file) {
    app->add_option("--encrypt-key", file, "images are encrypted: the file of the key")
        ->envname("FERMATA_ENCRYPT_KEY");
}

void add_submit_options(CLI::App* app, job::SubmitOptions& o, Texts& t) {
    app->add_option("-n,--np", o.ranks, "number of ranks")->check(CLI::PositiveNumber);
    app->add_option(
        "--mpi", o.mpi,
        "MPI library below: openmpi, mpich, the path of one, or auto: the one the program was built for");
    app->add_option("--ckpt-dir", o.ckpt_dir, "checkpoint directory")->capture_default_str();
    app->add_option("--job", o.job, "name of the job (default PROG-PID)");
    app->add_option("--interval", t.interval, "checkpoint every T (0.2s, 10m), or auto: Young/Daly");
    app->add_option("--mtbf", t.mtbf, "mean time between failures, for --interval auto (default 24h)");
    app->add_option("--walltime", t.walltime, "checkpoint and stop (exit code 85) before T has passed");
    app->add_option("--start-timeout", t.start, "give up when not all ranks run after T (default 10m)");
    app->add_option("--keep", t.keep,
                    "complete generations to keep, or all (default: 3 with --interval, else all)");
    app->add_option(
           "--files", o.files,
           "files that the program writes: kept with a checkpoint and put back at a restart (auto), or "
           "not (off)")
        ->check(CLI::IsMember({"auto", "off"}));
    app->add_option("--protocol", o.protocol, "how the safe state is found: cc-d, cc, 2pc")
        ->check(CLI::IsMember({"cc-d", "cc", "2pc"}));
    app->add_option("--mpiexec-args", o.mpiexec_args, "more arguments for mpiexec, as one string");
    app->add_option("--max-restarts", o.max_restarts,
                    "after a failure go on from the newest generation, at most N times")
        ->check(CLI::NonNegativeNumber);
    app->add_flag("--mapped", o.mapped,
                  "a restarted program goes on at once; its memory is read as it is touched");
    add_key(app, o.key_file);
    app->add_option("--save-options", o.save_options, "words for the writer of images");
    app->add_option("--layout", t.layout, "a file per rank (files), or one for the whole job (shared)")
        ->check(CLI::IsMember({"files", "shared"}));
    app->add_flag("-v,--verbose", o.verbose, "say every checkpoint on stderr");
}

void finish_submit_options(job::SubmitOptions& o, const Texts& t) {
    o.interval = parse_interval(t.interval);
    if (!t.walltime.empty()) o.walltime = parse_duration(t.walltime, "--walltime");
    if (!t.start.empty()) o.limits.start = parse_duration(t.start, "--start-timeout");
    if (!t.mtbf.empty()) o.mtbf = parse_duration(t.mtbf, "--mtbf");
    if (!t.keep.empty()) o.keep = parse_keep(t.keep);
    if (!t.layout.empty()) o.save_options += " layout=" + t.layout;
    o.generation = parse_generation(t.generation);
    for (std::string& move : o.moved) move = parse_move(move);
}

void add_job_choice(CLI::App* app, cli::JobChoice& which) {
    app->add_option("--job", which.job, "name of the job");
    app->add_option("--ckpt-dir", which.ckpt_dir, "the job that writes to this directory");
}

int parse_and_run(int argc, char** argv) {
    CLI::App app{"Fermata: checkpoints of unmodified MPI programs"};
    app.require_subcommand(1);
    // Scripts append options to those that are there: the last one counts.
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app.set_version_flag("--version", "fermata 0.1.0");

    Texts texts;
    job::SubmitOptions submit;
    bool check = false, json = false;
    CLI::App* run = app.add_subcommand("run", "run a program under mpiexec so that it can be checkpointed");
    add_submit_options(run, submit, texts);
    run->add_flag("--check", check, "do not run: say what the program needs and whether it is there");
    run->add_flag("--json", json, "with --check");
    // Everything from the program's name on belongs to the program.
    run->add_option("command", submit.command, "program and its arguments")
        ->required()
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    run->positionals_at_end();
    run->prefix_command(false);

    CLI::App* restart = app.add_subcommand("restart", "continue a job from a checkpoint");
    add_submit_options(restart, submit, texts);
    restart->add_option("--generation", texts.generation, "number of the generation, or latest");
    restart
        ->add_option("--map", submit.moved,
                     "OLD=NEW: a folder of the program's that is elsewhere now; may be given several times")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->expected(1);
    restart->add_flag("--fallback", submit.fallback,
                      "if the newest generation is damaged take the one before");

    cli::CheckpointOptions ckpt;
    CLI::App* checkpoint = app.add_subcommand("checkpoint", "take a checkpoint of a running job");
    add_job_choice(checkpoint, ckpt.which);
    checkpoint->add_flag("--stop", ckpt.stop, "end the job afterwards (its run exits with 85)");
    checkpoint->add_option("--timeout", texts.timeout, "give up after T; the job goes on (default 10m)");
    checkpoint->add_flag("--json", ckpt.json, "answer as JSON");

    cli::StatusOptions stat;
    CLI::App* status = app.add_subcommand("status", "what running jobs do");
    add_job_choice(status, stat.which);
    status->add_flag("--waits", stat.diagnosis, "ask every rank which call it waits in, and for whom");
    status->add_flag("--json", stat.json, "answer as JSON");

    cli::CancelOptions cancel_options;
    CLI::App* cancel = app.add_subcommand("cancel", "end a running job");
    add_job_choice(cancel, cancel_options.which);
    cancel->add_flag("--checkpoint", cancel_options.checkpoint_only,
                     "only its checkpoint in progress; the job goes on");
    cancel->add_flag("--json", cancel_options.json, "answer as JSON");

    cli::StoreOptions store;
    auto add_store = [&](const char* name, const char* help) {
        CLI::App* sub = app.add_subcommand(name, help);
        sub->add_option("--ckpt-dir", store.ckpt_dir, "checkpoint directory")->capture_default_str();
        sub->add_flag("--json", store.json, "answer as JSON");
        add_key(sub, store.key_file);
        return sub;
    };
    CLI::App* list = add_store("list", "generations in a checkpoint directory");
    CLI::App* verify = add_store("verify", "compare every byte of generations with their checksums");
    verify->add_option("--generation", texts.generation, "only this one");
    CLI::App* inspect = add_store("inspect", "what a generation holds");
    inspect->add_option("--generation", texts.generation, "number of the generation, or latest");
    inspect->add_flag("--regions", store.regions, "list the memory regions of every image");

    inspect->add_flag("--objects", store.objects,
                      "list what MPI holds: communicators, datatypes, requests, …");

    CLI::App* compact = add_store("compact", "make a generation that refers to earlier ones stand alone");
    compact->add_option("--generation", texts.generation, "number of the generation, or latest");
    compact->add_option("--keep", texts.keep,
                        "afterwards keep only so many complete generations (default: all)");
    compact->add_option("--save-options", submit.save_options, "words for the writer of images");

    CLI::App* doctor = app.add_subcommand("doctor", "what this machine has of what Fermata needs");
    doctor->add_flag("--json", json, "answer as JSON");

    // Everything from the program's name on is the program's: CLI11 would look for options among ARGS as
    // well.
    std::vector<std::string> words(argv + 1, argv + argc), command;
    if (!words.empty() && words[0] == "run") {
        auto at = words.begin() + 1;
        for (; at != words.end() && *at != "--" && at->starts_with("-"); ++at) {
            if (*at == "-np") *at = "--np";  // as mpiexec has it
            CLI::Option* option = run->get_option_no_throw(at->substr(0, at->find('=')));
            bool takes_next =
                option && option->get_items_expected_min() > 0 && at->find('=') == std::string::npos;
            if (takes_next && at + 1 != words.end()) ++at;
        }
        bool dashes = at != words.end() && *at == "--";
        command.assign(dashes ? at + 1 : at, words.end());
        words.erase(at, words.end());
        bool help = std::find(words.begin(), words.end(), "--help") != words.end() ||
                    std::find(words.begin(), words.end(), "-h") != words.end();
        if (command.empty() && !help)
            throw Error("nothing to run: fermata run -n 4 -- ./program arguments…", ExitCode::usage);
        if (!command.empty()) words.push_back(command[0]);  // satisfies `required`
    }
    std::reverse(words.begin(), words.end());
    try {
        app.parse(words);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
        throw Error(fmt::format("{} (see fermata --help)", error.what()), ExitCode::usage);
    }
    if (!command.empty()) submit.command = command;

    if (*run) {
        if (check) return cli::check_program(submit.command.at(0), json);
        finish_submit_options(submit, texts);
        return job::run(submit);
    }
    if (*restart) {
        finish_submit_options(submit, texts);
        return job::restart(submit);
    }
    if (*checkpoint) {
        if (!texts.timeout.empty()) ckpt.timeout = parse_duration(texts.timeout, "--timeout");
        return cli::checkpoint(ckpt);
    }
    store.generation = parse_generation(texts.generation);
    if (*status) return cli::status(stat);
    if (*cancel) return cli::cancel(cancel_options);
    if (*list) return cli::list(store);
    if (*verify) return cli::verify(store);
    if (*inspect) return cli::inspect(store);
    if (*compact)
        return cli::compact({store, submit.save_options, texts.keep.empty() ? 0 : parse_keep(texts.keep)});
    return cli::doctor(json);
}

}  // namespace

int main(int argc, char** argv) {
    fermata::start_log("root");
    try {
        return parse_and_run(argc, argv);
    } catch (const fermata::Error& error) {
        fermata::say(std::string("error: ") + error.what());
        return static_cast<int>(error.code());
    } catch (const std::exception& error) {
        fermata::say(std::string("error: ") + error.what());
        return static_cast<int>(fermata::ExitCode::failed);
    }
}
