// The lower half: an ordinary MPI program, started by the site's mpiexec, that carries the application above
// it.
//
//     lower-MPI [--argv0 NAME] -- PROGRAM ARGUMENTS…      first start (command.h)
//     FERMATA_RESTORE=… lower-MPI                         restart
//
// Both are one path: MPI starts, the address space is parted, and then the upper half comes either from a
// program (start_program) or from an image (restart.h).
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/environment.h"
#include "base/error.h"
#include "base/log.h"
#include "base/new_code.h"
#include "files/owners.h"
#include "lower/agent.h"
#include "lower/binding/binding.h"
#include "lower/command.h"
#include "lower/end_quietly.h"
#include "lower/load_image.h"
#include "lower/restart.h"
#include "lower/second_life.h"
#include "lower/services.h"
#include "lower/start.h"
#include "lower/start_copy.h"
#include "lower/starter.h"
#include "lower/thread_need.h"
#include "split/alloc/lower_alloc.h"
#include "split/alloc/shared_names.h"
#include "split/fds/descriptors.h"
#include "split/hop/second_half.h"
#include "split/loader/command_line.h"
#include "split/loader/loader.h"
#include "split/partition/partition.h"
#include "split/process/state.h"
#include "split/process/warden.h"
#include "split/thread_pointer/redirect.h"
#include "split/threads/donors.h"
#include "split/threads/lazy_binding.h"
#include "split/threads/records.h"
#include "split/threads/restart.h"
#include "split/threads/signals.h"
#include "split/threads/stop.h"
#include "tree/input.h"
#include "tree/shared_names.h"

namespace fermata::lower {
namespace {

namespace threads = split::threads;
// Handed to the agent once there is one; null then.
using Link = std::unique_ptr<tree::AgentLink>;
// From a lower half that runs a starter to the one that the starter begins: Command::number.
constexpr const char* kProgramNumber = "FERMATA_PROGRAM";

// Before MPI starts a rank does not know which of several programs it will be.
ThreadNeed need_of_all(const std::vector<std::string>& programs, const split::process::PathMap& moved) {
    for (const std::string& program : programs)
        if (thread_need(moved(program)) == ThreadNeed::many) return ThreadNeed::many;
    return programs.empty() ? thread_need("") : ThreadNeed::one;
}

ThreadNeed need_of_copy(const tree::AgentConfig& config, image::KeyPointer key) {
    try {
        return need_of_all({program_of(image_of_copy(config, std::move(key)))},
                           split::process::PathMap::from_text(config.moved));
    } catch (const Error&) {  // whoever loads it says so
        return ThreadNeed::one;
    }
}

[[noreturn]] void start_program(const Command& options, const tree::AgentConfig& config,
                                const MpiFacts& facts, image::KeyPointer key, uint64_t mask, Link& link) {
    split::ProgramCheck check = split::inspect_program(options.program, options.front_dir);
    if (!check.error.empty()) fail("{}", check.error);
    make_bridge(facts, {config.protocol, "", config.restarts, config.message_log, config.log_bytes,
                        config.node_dir()});
    name_program(check.binary);
    threads::create_table();
    split::process::note_inherited();
    if (facts.rank() == Rank(0) && !config.input.empty()) {
        auto input = tree::InputFile::decoded(config.input);
        if (!input) fail("FERMATA_INPUT is damaged: {}", config.input);
        input->become_standard_input();
    }
    threads::install_stop_handler();
    Agent::start({config,
                  facts,
                  {facts.rank(), facts.size, config.job_number(), check.binary, std::move(key), config.files,
                   config.node, config.cpu},
                  nullptr},
                 std::move(link));
    tree::AgentConfig::forget_environment();
    threads::note_present_threads();

    split::ProgramSpec spec;
    spec.program = options.program;
    spec.arguments = options.arguments;
    spec.argv0 = options.argv0;
    spec.front_dir = options.front_dir;
    spec.preload = {options.front_dir + "/libfermata-front.so"};
    spec.bridge = the_bridge();
    split::StartedProgram started = split::load_program(spec);
    note_command_line(started.command_line, started.command_line_end);
    split::show_command_line(started.command_line, started.command_line_end);
    split::Warden& warden = split::process::the_warden();
    if (warden.pid != 0) warden.to_unblock = split::kWarnings & ~mask;
    threads::unblock_for_upper(mask, warden.to_unblock);
    split::enter_program(started);
}

// A rank that cannot start says so through the tree: the root prints one line and ends the job.
[[noreturn]] void give_up(const tree::AgentConfig& config, const MpiFacts& facts, const std::string& why,
                          ExitCode code, Link& link) {
    std::string line = fmt::format("rank {}: {}", facts.rank().number(), why);
    try {
        const auto exit_code = static_cast<int32_t>(code);
        if (config.copy_of) {  // the rank goes on without it
            if (link) link->send(wire::NoCopy{static_cast<int32_t>(config.copy_of->number()), "", why});
            ::_exit(exit_code);
        }
        if (!link) the_bridge()->fatal(("error: " + line).c_str(), exit_code);  // the agent has it by now
        wire::Hello hello = link->hello(static_cast<int>(facts.rank().number()), static_cast<int>(facts.size),
                                        facts.library.c_str(), facts.version.c_str());
        hello.restarted_from = config.generation;
        link->send(hello);
        if (config.restore.empty())
            link->send(wire::Fatal{"error: " + line, exit_code});
        else
            link->send(wire::Restored{false, line, 0, exit_code});
        if (config.generation) end_with_launcher();
        sleep(20);  // the root ends us; this is for the case that it is gone
    } catch (const std::exception&) {
        say("error: " + line);
    }
    ::_exit(1);
}

// Returns when the program uses MPI itself.
void run_natively_if_starter(int argc, char** argv) {
    auto given = [](const char* name) {
        const char* value = std::getenv(name);
        return value && *value;
    };
    // from_environment() takes the job's key away, which who goes on here needs later.
    if (!given("FERMATA_JOB_ID") || given("FERMATA_RESTORE") || comes_from_starter()) return;
    Command options = command_in({argv + 1, argv + argc}, tree::AgentLink::launcher_rank());
    if (options.program.empty()) return;
    split::ProgramCheck check = split::inspect_program(options.program, options.front_dir);
    if (!check.error.empty() || !split::is_starter(check)) return;
    std::string directory = own_directory();
    std::string lower = fmt::format("{}/lower-{}", directory, binding_name());
    tree::AgentConfig config = tree::AgentConfig::from_environment();
    if (options.number >= 0) ::setenv(kProgramNumber, std::to_string(options.number).c_str(), 1);
    run_starter({options.program, options.arguments, std::move(check), lower, directory}, config);
}

// A rank that has run its MPI program, and is to run another one.
[[noreturn]] void refuse_second(const tree::AgentConfig& config, const std::string& why) {
    tell_starter_of_end();
    tree::AgentLink link(config);
    link.send(wire::InStarter{tree::AgentLink::launcher_rank(), ::getpid(), "", why});
    ::sleep(20);  // the root ends us; this is for the case that it is gone
    ::_exit(1);
}

// A profiler in LD_PRELOAD has begun in this half: its timer's signals would meet the program, where the
// handler is another one or none. A timer without a handler that was set before exec is the program's.
void stop_timers_with_handlers() {
    constexpr std::pair<__itimer_which, int> kTimers[] = {
        {ITIMER_REAL, SIGALRM}, {ITIMER_VIRTUAL, SIGVTALRM}, {ITIMER_PROF, SIGPROF}};
    for (const auto& [timer, number] : kTimers) {
        struct sigaction action {};
        static const itimerval kNone{};
        if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_DFL &&
            action.sa_handler != SIG_IGN) {
            setitimer(timer, &kNone, nullptr);
            // Open MPI's mpiexec, profiled as well, hands its own SIGPROF on: not to end a program whose
            // profiler has not begun.
            if (number != SIGALRM) signal(number, SIG_IGN);
        }
    }
}

// Unloads LD_PRELOAD, which is for the program: here it would count the library's own calls of MPI, and may
// be linked with another library than this one. Executes itself again with FERMATA_LOWER_PRELOAD instead, or
// nothing; everybody who asks for the program's environment finds the variable as it was.
void leave_preload_to_the_program(char** argv) {
    constexpr const char *kPreload = "LD_PRELOAD", *kKept = "FERMATA_PRELOAD",
                         *kBelow = "FERMATA_LOWER_PRELOAD";
    auto set = [](const char* name, const std::string& value) {
        value.empty() ? ::unsetenv(name) : ::setenv(name, value.c_str(), 1);
    };
    auto value = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
    if (std::getenv(kKept) != nullptr) {
        set(kPreload, value(kKept));
        ::unsetenv(kKept);
        return;
    }
    const std::string theirs = value(kPreload), below = value(kBelow);
    if (theirs == below) return;
    ::setenv(kKept, theirs.c_str(), 1);
    set(kPreload, below);
    ::execv("/proc/self/exe", argv);
    set(kPreload, theirs);  // loaded twice, then
    ::unsetenv(kKept);
}

int run(int argc, char** argv) {
    if (auto handed_over = split::hop::SecondHalf::handed_over())
        continue_in_child(SecondLife::from_text(*handed_over));
    stop_timers_with_handlers();
    leave_preload_to_the_program(argv);
    run_natively_if_starter(argc, argv);
    split::ensure_layout(argv);
    split::prepare_lower();
    const char* base = std::getenv("FERMATA_RUN_BASE");
    split::thread_pointer::redirect(base ? base : "");
    tree::AgentConfig config = tree::AgentConfig::from_environment();
    if (config.job_id.empty()) fail("this program is a part of Fermata; use `fermata run`");
    start_log(fmt::format("pid {}", ::getpid()));
    const std::string& switched = split::thread_pointer::why_switched();
    spdlog::info("crossings {} the FS base{}{}", switched.empty() ? "leave" : "write",
                 switched.empty() ? "" : ": ", switched);
    if (std::string why = threads::unsupported_machine(); !why.empty()) fail("{}", why);
    Command options = command_in({argv + 1, argv + argc}, tree::AgentLink::launcher_rank());
    // Behind a starter the command line is the program's alone.
    g_program = options.number >= 0 ? options.number : number_from({kProgramNumber}, -1);
    bool restart = !config.restore.empty();
    if (restart != static_cast<bool>(config.generation)) fail("FERMATA_GENERATION is damaged");
    if (!config.allow_owner.empty()) files::allow_owner(files::user_from(config.allow_owner));
    if (comes_from_starter())
        if (std::string why = take_over_from_starter(options.program, config); !why.empty())
            refuse_second(config, why);
    if (options.program.empty() && !restart) fail("no program to run");
    tree::AgentLink::ensure_daemon(config);
    config.forget_key();
    split::begin_descriptors();
    // Before MPI_Init, where a rank may stay for long: the daemon knows who is in there, and waits for them.
    Link link = std::make_unique<tree::AgentLink>(config);
    link->send(link->starting());
    note_shared_names(config);
    image::KeyPointer key;
    std::string no_key;  // said once there is a rank to say it
    try {
        key = image_key(config);
    } catch (const std::exception& error) {
        no_key = error.what();
    }
    threads::settle_credentials();
    uint64_t mask = threads::block_signals_for_init();
    MpiFacts facts =
        bring_up_mpi(config.copy_of ? need_of_copy(config, key)
                     : restart      ? need_of_all(programs_of_images(config.restore, config.seal, key.get()),
                                                  split::process::PathMap::from_text(config.moved))
                                    : thread_need(options.program));
    try {
        if (!no_key.empty()) fail("{}", no_key);
        if (const std::string why = why_no_new_code(); !why.empty()) fail("{}", why);
        split::partition();
        threads::make_bell(split::lower_descriptor_base());
        if (config.copy_of) {
            facts.process = physical_rank(*config.copy_of);
            facts.size = config.copys_ranks;
            continue_as_copy(config, facts, std::move(key), link);
        }
        if (restart) continue_image(config, facts, std::move(key), link);
        start_program(options, config, facts, std::move(key), mask, link);
    } catch (const Error& error) {
        give_up(config, facts, error.what(), error.code(), link);
    } catch (const std::exception& error) {
        give_up(config, facts, error.what(), ExitCode::failed, link);
    }
}

}  // namespace
}  // namespace fermata::lower

int main(int argc, char** argv) {
    try {
        return fermata::lower::run(argc, argv);
    } catch (const std::exception& error) {
        fermata::say(std::string("error: ") + error.what());
        // The other ranks may already be inside MPI: the launcher ends them when one fails.
        ::_exit(1);
    }
}
