// The functions behind the Bridge run in upper threads with the upper thread pointer: no TLS, no errno, no
// malloc of this half. Work that needs more is left in a mailbox for the agent.
#include "lower/services.h"

#include <unistd.h>

#include <atomic>
#include <cstring>

#include "base/sys.h"
#include "fermata_interface.h"
#include "fermata_table.h"
#include "lower/binding/binding.h"
#include "lower/interfaces.h"
#include "lower/log_files.h"
#include "lower/mpi_start.h"
#include "lower/no_connections.h"
#include "lower/starter.h"
#include "lower/stay.h"
#include "split/fds/connections.h"
#include "split/fds/descriptors.h"
#include "split/noted_files.h"
#include "split/process/warden.h"
#include "split/threads/donors.h"
#include "split/threads/masked.h"
#include "split/threads/records.h"
#include "split/threads/stop.h"
#include "split/vdso/vdso.h"

namespace fermata::lower {
namespace {

split::Bridge bridge;
std::atomic<split::UpperServices*> upper;
char program_path[4096], guard_path[4096];
const char *command_line, *command_line_end;
volatile uint32_t finalize_released;

// One line for the agent. A second one waits until the first is taken; both are rare.
struct Mailbox {
    std::atomic<uint32_t> state{0};  // 0 empty, 1 being written, 2 full
    char line[1024];
    int code;
};
Mailbox warning, fatal;
std::atomic<uint32_t> finalize_arrived{0};
std::atomic<int64_t> leaving{-1};  // the exit code that nobody has been told yet; -1: none

void nap() noexcept {
    struct {
        long seconds, nanoseconds;
    } time{0, 1'000'000};
    sys(SYS_nanosleep, &time);
}

// False when the box stayed full for two seconds.
bool put(Mailbox& box, const char* line, int code) noexcept {
    for (int tries = 0; tries < 2000; ++tries) {
        uint32_t empty = 0;
        if (box.state.compare_exchange_strong(empty, 1)) {
            size_t n = 0;
            for (; line[n] && n + 1 < sizeof box.line; ++n) box.line[n] = line[n];
            box.line[n] = 0;
            box.code = code;
            box.state.store(2);
            split::threads::poke_agent();
            return true;
        }
        nap();
    }
    return false;
}

void warn(const char* line) noexcept { put(warning, line, 0); }

struct FileRequest {
    std::atomic<uint32_t> state{0};  // 0 free, 2 asked, 3 answered; one thread alone asks (recorded.h)
    FileWish wish;
    int answer;
} file_request;

int ask_for(const FileWish& wish) noexcept {
    file_request.wish = wish;
    file_request.state.store(2);
    split::threads::poke_agent();
    // The agent has little else to do; without an answer the copy ends, with a line.
    for (int i = 0; file_request.state.load() != 3; ++i) {
        if (i == 20'000) return -1;
        nap();
    }
    const int answer = file_request.answer;
    file_request.state.store(0);
    return answer;
}
int ask_for_shadow(int real, int64_t size) noexcept {
    return ask_for({FileWish::Sort::shadow, real, size, {}});
}
int ask_for_private(const split::PrivateWish& wish) noexcept {
    return ask_for({FileWish::Sort::private_file, -1, 0, wish});
}
int ask_for_files() noexcept { return ask_for({FileWish::Sort::take_private_files, -1, 0, {}}); }

[[noreturn]] void end_job(const char* line, int code) noexcept;

[[noreturn]] void end_copy(const char* line) noexcept {
    if (!is_copy()) end_job(line, 70);  // it has the rank's place: nobody else has its state
    const bool heard = put(warning, line, 0);
    for (int i = 0; heard && warning.state.load() != 0 && i < 2000; ++i) nap();
    for (int i = 0; i < 50; ++i) nap();  // the agent sends what it has taken
    for (;;) sys(SYS_exit_group, 0);
}

[[noreturn]] void end_job(const char* line, int code) noexcept {
    bool heard = put(fatal, line, code);
    // The root ends the job when it has said the line; ten seconds are more than it needs. The agent may
    // itself be waiting for what has failed.
    for (int i = 0; heard && i < 10000; ++i) {
        nap();
        if (i == 3000 && fatal.state.load() == 2) heard = false;
    }
    if (!heard) {
        sys(SYS_write, 2, line, std::strlen(line));
        sys(SYS_write, 2, "\n", 1);
    }
    for (;;) sys(SYS_exit_group, code);
}

void arrive_finalize() noexcept {
    finalize_arrived.store(1);
    split::threads::poke_agent();
}

// The agent has little else to do; when it has, the exit is not held up for it.
void leaves(int code) noexcept {
    leaving.store(code & 0xff);
    split::threads::poke_agent();
    for (int i = 0; leaving.load() >= 0 && i < 200; ++i) nap();
}

void register_upper(split::UpperServices* services) noexcept {
    services->command_line = command_line;
    services->command_line_end = command_line_end;
    set_upper(services);
    split::threads::table()->nobody = services->nobody;
    split::threads::poke_agent();  // a checkpoint may be waiting for it
}

// True while entries of the files that the program writes are between two places.
bool notes_move() {
    const split::NotedFiles* files = __atomic_load_n(&the_upper()->noted_files, __ATOMIC_ACQUIRE);
    return files != nullptr && (__atomic_load_n(&files->changes, __ATOMIC_SEQ_CST) & 1) != 0;
}

}  // namespace

split::Bridge* make_bridge(const MpiFacts& facts, const JobFacts& job) {
    bridge.version = split::kBridgeVersion;
    bridge.interface = split::interface_version(mpi::kAbiHash);
    bridge.mpi = &table_of_launcher();
    bridge.attach = split::threads::attach;
    bridge.stop_point = split::threads::fermata_stop_point;
    bridge.poke_agent = split::threads::poke_agent;
    bridge.arrive_finalize = arrive_finalize;
    bridge.finalize_released = &finalize_released;
    bridge.finish_mpi = []() noexcept { finish_mpi(); };
    bridge.leaves = leaves;
    bridge.warn = warn;
    bridge.fatal = end_job;
    bridge.end_copy = end_copy;
    bridge.shadow = ask_for_shadow;
    bridge.private_file = ask_for_private;
    bridge.take_private_files = ask_for_files;
    bridge.register_upper = register_upper;
    bridge.stop_count = split::threads::stop_count();
    bridge.world_rank = static_cast<int32_t>(facts.rank().number());
    bridge.world_size = static_cast<int32_t>(facts.size);
    bridge.thread_level = facts.thread_level;
    bridge.restarted = job.restarts;
    bridge.message_log = job.message_log ? 1 : 0;
    bridge.log_bytes = job.log_bytes;
    bridge.log_file = make_log_file;
    bridge.connections = &split::connections();
    // Open MPI 4.1.4 (btl/tcp) asks again without a rest, and no stop comes between.
    split::hide_ends(job.message_log && !facts.version.starts_with("Open MPI v4"), facts.library == "mpich");
    if (job.message_log) note_places_of_log_files(job.node_dir);
    bridge.private_world = facts.private_world;
    bridge.program = program_path;
    bridge.protocol = ::strdup(job.protocol.c_str());  // for the life of the process
    bridge.moved = ::strdup(job.moved.c_str());
    bridge.mpi_library = binding_name();
    bridge.process = ::getpid();
    bridge.first_lower = split::lower_descriptor_base();
    bridge.lower_count = split::lower_descriptors().count;
    bridge.lower_owned = split::lower_descriptors().words;
    bridge.guard_library = guard_library(guard_path, sizeof guard_path);
    bridge.warden = &split::process::the_warden();
    bridge.vdso = []() noexcept { return split::vdso_doors(); };
    bridge.os_page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return &bridge;
}

void name_program(const std::string& path) {
    std::strncpy(program_path, path.c_str(), sizeof program_path - 1);
}

void note_command_line(const char* begin, const char* end) {
    command_line = begin;
    command_line_end = end;
}

split::Bridge* the_bridge() { return &bridge; }
split::UpperServices* the_upper() { return upper.load(std::memory_order_acquire); }
void set_upper(split::UpperServices* services) {
    upper.store(services, std::memory_order_release);
    split::threads::never_open_while(notes_move);
}

// The front may be of an earlier build, and stays what it was: its images say so.
Anchors anchors_here() {
    return {reinterpret_cast<uint64_t>(the_upper()), reinterpret_cast<uint64_t>(split::threads::table()),
            the_upper()->version, the_upper()->interface};
}

std::string why_not_continued(const Anchors& anchors) {
    return why_not_continued(anchors, {bridge.version, bridge.interface});
}

split::process::Limits process_limits() {
    return {split::lower_descriptor_base(), the_upper() != nullptr ? the_upper()->ids : nullptr};
}

std::optional<std::string> take_warning() {
    if (warning.state.load() != 2) return {};
    std::string line = warning.line;
    warning.state.store(0);
    return line;
}

std::optional<FileWish> wanted_file() {
    if (file_request.state.load() != 2) return {};
    return file_request.wish;
}
void answer_file(int answer) {
    file_request.answer = answer;
    file_request.state.store(3);
}

std::optional<FatalRequest> take_fatal() {
    if (fatal.state.load() != 2) return {};
    FatalRequest request{fatal.line, fatal.code};
    fatal.state.store(0);
    return request;
}

std::optional<int32_t> leaving_with() {
    int64_t code = leaving.load();
    if (code < 0) return {};
    return static_cast<int32_t>(code);
}
void said_that_it_leaves() { leaving.store(-1); }
bool take_finalize_arrival() { return finalize_arrived.exchange(0) != 0; }
void release_finalize() { finalize_released = 1; }

}  // namespace fermata::lower
