#include "tree/agent_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/host_name.h"
#include "tree/local_socket.h"

extern char** environ;

namespace fermata::tree {
namespace {

constexpr uint32_t kMaxAgentPayload = 16u << 20;

std::string env(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// Reads a variable and erases it from the initial environment, which the kernel shows in /proc/PID/environ.
std::string take_from_environment(const char* name) {
    std::string taken;
    size_t length = std::strlen(name);
    for (char** one = environ; one && *one; ++one)
        if (std::strncmp(*one, name, length) == 0 && (*one)[length] == '=') {
            taken = *one + length + 1;
            ::explicit_bzero(*one + length + 1, taken.size());
        }
    ::unsetenv(name);
    return taken;
}

// A daemon that has got its directory listens: who is refused for this long need not wait for it. (EAGAIN:
// its backlog is full for a moment.)
class Refused {
  public:
    bool for_long() {  // asked after connect_local() failed
        int64_t now = monotonic_ms();
        if (errno == EAGAIN || !since_) since_ = now;
        return now - since_ > 3000;
    }

  private:
    int64_t since_ = 0;
};

// The launcher's number for this rank on its node; 0 when it does not say.
int local_rank() {
    return number_from(
        {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "PALS_LOCAL_RANKID"}, 0);
}

// Runs `noded`, which returns at once when its socket exists (its own or that of one which was faster).
void run_noded(const AgentConfig& config) {
    int err[2];
    if (::pipe2(err, O_CLOEXEC) != 0) fail_errno("cannot create a pipe");
    Fd read_end(err[0]), write_end(err[1]);
    pid_t launcher = ::getppid();
    pid_t pid = ::fork();
    if (pid < 0) fail_errno("cannot start the node daemon {}", config.noded);
    if (pid == 0) {
        // The launcher waits for the end of the ranks' pipes: the daemon must hold none of them, nor anything
        // else of this process.
        int null = ::open("/dev/null", O_RDWR);
        ::dup2(null, 0);
        ::dup2(null, 1);
        ::dup2(err[1], 2);
        ::syscall(SYS_close_range, 3u, ~0u, 0u);
        use_processors_of(launcher);
        ::setenv("FERMATA_KEY", config.key.c_str(), 1);  // the daemon takes it out again
        const char* argv[] = {config.noded.c_str(), nullptr};
        ::execv(config.noded.c_str(), const_cast<char**>(argv));
        dprintf(2, "cannot run the node daemon %s: %s", config.noded.c_str(), strerror(errno));
        ::_exit(127);
    }
    write_end.reset();
    std::string said;
    char buffer[512];
    for (;;) {
        ssize_t n = ::read(read_end.get(), buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        said.append(buffer, static_cast<size_t>(n));
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    // Somebody may ignore SIGCHLD (then there is no status to read): the text decides.
    while (!said.empty() && said.back() == '\n') said.pop_back();
    if (!said.empty()) fail("{}", said);
}

}  // namespace

AgentConfig AgentConfig::from_environment() {
    AgentConfig c;
    c.job = env("FERMATA_JOB");
    c.job_id = env("FERMATA_JOB_ID");
    c.run_dir = env("FERMATA_RUN_BASE");
    c.root = env("FERMATA_ROOT");
    c.key = take_from_environment("FERMATA_KEY");
    c.noded = env("FERMATA_NODED");
    c.ckpt_dir = env("FERMATA_CKPT_DIR");
    c.restore = env("FERMATA_RESTORE");
    c.generation = Generation::numbered(env("FERMATA_GENERATION")).value_or(Generation());
    c.choice = env("FERMATA_CHOICE") == "1";
    c.seal = env("FERMATA_SEAL");
    c.allow_owner = env("FERMATA_ALLOW_OWNER");
    c.protocol = env("FERMATA_PROTOCOL");
    c.cpu = env("FERMATA_CPU");
    c.message_log = env("FERMATA_MESSAGE_LOG") == "1";
    if (const std::string bytes = env("FERMATA_MESSAGE_LOG_MEMORY"); !bytes.empty())
        c.log_bytes = std::strtoull(bytes.c_str(), nullptr, 10);
    c.front_dir = env("FERMATA_FRONT_DIR");
    c.input = env("FERMATA_INPUT");
    c.image_key = env("FERMATA_IMAGE_KEY");
    c.image_key_id = env("FERMATA_IMAGE_KEY_ID");
    c.node = env("FERMATA_NODE");
    c.files = env("FERMATA_FILES") != "off";
    c.moved = env("FERMATA_MOVED");
    c.mapped = env("FERMATA_MAPPED") == "1";
    c.restarts = static_cast<uint32_t>(std::strtoul(env("FERMATA_RESTARTS").c_str(), nullptr, 10));
    const std::string copy = env("FERMATA_COPY_OF");
    if (const size_t slash = copy.find('/'); slash != copy.npos) {
        c.copys_ranks = static_cast<uint32_t>(std::strtoul(copy.c_str() + slash + 1, nullptr, 10));
        c.copy_of = Rank::among(static_cast<int32_t>(std::strtoul(copy.c_str(), nullptr, 10)), c.copys_ranks);
        if (!c.copy_of) fail("FERMATA_COPY_OF is damaged: {}", copy);
    }
    if (c.node.empty()) c.node = host_name();
    return c;
}

void AgentConfig::forget_key() {
    ::explicit_bzero(key.data(), key.size());
    key.clear();
}

void AgentConfig::forget_environment() {
    for (const char* name : {"FERMATA_JOB",          "FERMATA_JOB_ID",
                             "FERMATA_RUN_BASE",     "FERMATA_SEAL",
                             "FERMATA_CHOICE",       "FERMATA_ALLOW_OWNER",
                             "FERMATA_ROOT",         "FERMATA_NODED",
                             "FERMATA_CKPT_DIR",     "FERMATA_RESTORE",
                             "FERMATA_GENERATION",   "FERMATA_PROTOCOL",
                             "FERMATA_CPU",          "FERMATA_FRONT_DIR",
                             "FERMATA_INPUT",        "FERMATA_NODE",
                             "FERMATA_MAPPED",       "FERMATA_FILES",
                             "FERMATA_MOVED",        "FERMATA_IMAGE_KEY",
                             "FERMATA_IMAGE_KEY_ID", "FERMATA_RESTARTS",
                             "FERMATA_LAUNCHER",     "FERMATA_PROGRAM",
                             "FERMATA_MESSAGE_LOG",  "FERMATA_MESSAGE_LOG_MEMORY",
                             "FERMATA_COPY_OF"})
        ::unsetenv(name);
}

uint64_t AgentConfig::job_number() const {
    uint64_t number = 0;
    std::from_chars(job_id.data(), job_id.data() + std::min<size_t>(job_id.size(), 16), number, 16);
    return number;
}

std::string AgentConfig::node_dir() const {
    return run_dir + "/" + job + "." + job_id.substr(job_id.size() - std::min<size_t>(8, job_id.size())) +
           "." + node;
}

void AgentLink::ensure_daemon(const AgentConfig& config, int timeout_ms) {
    int64_t start = monotonic_ms();
    // The first rank of the node starts the daemon; the others give it a moment, then help themselves: two
    // daemons do no harm, the slower one leaves.
    int64_t patience = local_rank() == 0 ? 0 : 2000;
    bool tried = false;
    Refused refused;
    for (;;) {
        if (connect_local(config.node_dir(), "agents")) return;
        if (tried && refused.for_long())
            fail("the node daemon of job {} has ended: {}/agents does not answer", config.job,
                 config.node_dir());
        int64_t waited = monotonic_ms() - start;
        if (config.noded.empty() && waited > 3000)
            fail("the node daemon of job {}, which started this rank, has ended", config.job);
        if (!config.noded.empty() && waited >= patience && !tried) {
            run_noded(config);
            tried = true;
            continue;
        }
        if (waited > timeout_ms)
            fail("the node daemon of job {} did not open {}/agents in {} s; is {} writable?", config.job,
                 config.node_dir(), timeout_ms / 1000, config.run_dir);
        ::usleep(2000);
    }
}

AgentLink::AgentLink(const AgentConfig& config, int timeout_ms) : config_(config), in_(kMaxAgentPayload) {
    int64_t start = monotonic_ms();
    Fd sock;
    Refused refused;
    while (!(sock = connect_local(config_.node_dir(), "agents"))) {
        if (refused.for_long() || monotonic_ms() - start > timeout_ms)
            fail_errno("cannot reach the node daemon at {}/agents", config_.node_dir());
        ::usleep(2000);
    }
    if (peer_of(sock.get()).uid != ::geteuid())
        fail("the node daemon at {} belongs to somebody else", config_.node_dir());
    set_nonblocking(sock.get());
    fd_ = sock.release();
}

AgentLink::AgentLink(const AgentConfig& config, Fd socket)
    : config_(config), fd_(socket.release()), in_(kMaxAgentPayload) {
    set_nonblocking(fd_);
}

void AgentLink::go_on_with(Fd socket) {
    while (!closed_) {
        pollfd wait{fd_, POLLIN, 0};
        ::poll(&wait, 1, 1000);
        fill();
    }
    ::close(fd_);
    fd_ = socket.release();
    closed_ = false;
}

AgentLink::~AgentLink() {
    if (fd_ >= 0) ::close(fd_);
}

void AgentLink::fill() {
    char buffer[65536];
    while (!closed_) {
        ssize_t n = ::recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
        if (n > 0) {
            in_.feed(buffer, static_cast<size_t>(n));
            if (n < static_cast<ssize_t>(sizeof buffer)) return;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            closed_ = true;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

std::optional<wire::Message> AgentLink::receive() {
    auto message = in_.next();
    if (!message) {
        fill();
        message = in_.next();
    }
    if (in_.broken()) closed_ = true;
    return message;
}

wire::Chosen AgentLink::choice() {
    for (;;) {
        while (auto message = receive())
            if (auto* chosen = std::get_if<wire::Chosen>(&*message)) {
                config_.generation = chosen->generation;
                return *chosen;
            }
        if (closed_) fail("the node daemon of job {} has ended", config_.job);
        pollfd wait{fd_, POLLIN, 0};
        ::poll(&wait, 1, 1000);
    }
}

bool AgentLink::send(const wire::Message& message) {
    wire::Bytes frame = wire::encode(message);
    size_t sent = 0;
    int64_t start = monotonic_ms();
    while (!closed_ && sent < frame.size()) {
        ssize_t n = ::send(fd_, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            sent += static_cast<size_t>(n);
        } else if (errno == EAGAIN) {
            pollfd wait{fd_, POLLOUT, 0};
            ::poll(&wait, 1, 1000);
            if (monotonic_ms() - start > 30000) closed_ = true;
        } else if (errno != EINTR) {
            closed_ = true;
        }
    }
    return !closed_;
}

int AgentLink::launcher_rank() {
    return number_from({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}, -1);
}

wire::Starting AgentLink::starting() const { return {launcher_rank(), config_.job_id}; }

wire::Hello AgentLink::hello(int rank, int size, const char* mpi, const char* mpi_version) const {
    wire::Hello hello;
    hello.job_id = config_.job_id;
    hello.rank = rank;
    hello.size = size;
    hello.pid = ::getpid();
    hello.host = host_name();
    hello.mpi = mpi;
    hello.mpi_version = mpi_version;
    hello.restarted_from = config_.generation;
    return hello;
}

}  // namespace fermata::tree
