// scale-agents stands in for mpiexec and for all ranks of a job: it starts SCALE_NODES real node daemons,
// each under a node name of its own, and plays `-n N` ranks that have no program. Each rank has a connection
// to its daemon and answers whatever a checkpoint asks (bench/scale/growth.py measures root and daemons
// meanwhile).
//
// With SCALE_HOLD=FILE it says what it has done in FILE.*, and waits for FILE.go between daemons and ranks.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "clock/messages.h"
#include "tree/agent_link.h"
#include "tree/local_socket.h"

extern char** environ;

using namespace fermata;

namespace {

constexpr uint64_t kImageBytes = 4096;
volatile sig_atomic_t ending = 0;

struct Agent {
    Fd socket;
    wire::Decoder in{16u << 20};
    int32_t rank = 0;
    uint32_t epoch = 0;
};

class Agents {
  public:
    Agents(int size, int nodes) : size_(size), nodes_(nodes), agents_(static_cast<size_t>(size)) {}

    void start_daemons();
    void connect(int first, int end);
    int serve();

  private:
    tree::AgentConfig config_of(int node) const {
        tree::AgentConfig config = config_;
        config.node = fmt::format("node{:05}", node);
        return config;
    }
    int node_of(int rank) const { return static_cast<int>(int64_t{rank} * nodes_ / size_); }
    void send(Agent& agent, const wire::Message& message);
    void clock(Agent& agent, const wire::Clock& message);
    bool handle(Agent& agent, const wire::Message& message);

    const tree::AgentConfig config_ = tree::AgentConfig::from_environment();
    const int size_, nodes_;
    std::vector<Agent> agents_;
    Fd epoll_;
    int released_ = 0;
};

// A few at a time, as launchers do.
void Agents::start_daemons() {
    constexpr int kAtOnce = 8;
    int running = 0;
    auto wait_for_one = [&] {
        int status = 0;
        ::waitpid(-1, &status, 0);
        if (status != 0) fail("a node daemon did not start");
        --running;
    };
    ::setenv("FERMATA_KEY", config_.key.c_str(), 1);
    for (int node = 0; node < nodes_; ++node) {
        if (running == kAtOnce) wait_for_one();
        ::setenv("FERMATA_NODE", config_of(node).node.c_str(), 1);
        const char* words[] = {config_.noded.c_str(), nullptr};
        pid_t pid = 0;
        if (::posix_spawn(&pid, words[0], nullptr, nullptr, const_cast<char**>(words), environ) != 0)
            fail_errno("cannot start {}", words[0]);
        ++running;
    }
    while (running > 0) wait_for_one();
}

void Agents::connect(int first, int end) {
    epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
    for (int rank = first; rank < end; ++rank) {
        Agent& agent = agents_[static_cast<size_t>(rank)];
        agent.rank = rank;
        const std::string directory = config_of(node_of(rank)).node_dir();
        while (!(agent.socket = tree::connect_local(directory, "agents"))) ::usleep(500);
        tree::set_nonblocking(agent.socket.get());
        epoll_event wanted{EPOLLIN, {.u32 = static_cast<uint32_t>(rank)}};
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, agent.socket.get(), &wanted);
        wire::Hello hello{config_.job_id, rank,     size_, ::getpid(), config_of(node_of(rank)).node,
                          "openmpi",      "no MPI", {}};
        send(agent, hello);
    }
}

// Short messages into an empty buffer.
void Agents::send(Agent& agent, const wire::Message& message) {
    const wire::Bytes frame = wire::encode(message);
    for (size_t sent = 0; sent < frame.size();) {
        ssize_t n = ::send(agent.socket.get(), frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
        if (n > 0)
            sent += static_cast<size_t>(n);
        else if (errno == EAGAIN)
            ::usleep(100);
        else if (errno != EINTR)
            return;
    }
}

// As a rank in MPI_Allreduce loops on the world and on one communicator of its node.
void Agents::clock(Agent& agent, const wire::Clock& message) {
    clock::Reader in(message.bytes.data(), message.bytes.size());
    clock::Header head;
    if (!in.header(&head)) return;
    uint8_t buffer[256];
    clock::Writer out(buffer, sizeof buffer);
    if (head.kind == clock::Kind::intent) {
        agent.epoch = head.epoch;
        clock::Entry world;
        world.uid = clock::Uid{1};
        world.target = 1000;
        world.least_obliged = world.least_entered =
            agent.rank % 7 == 0 ? 999 : 1000;  // some are a call behind
        world.ranks = 1;
        world.size = static_cast<uint32_t>(size_);
        out.header(clock::Kind::report, head.epoch).u32(1).u32(1).u32(0).entry(world);
    } else if (head.kind == clock::Kind::targets) {
        if (in.u32() == 0) return;  // not the last part
        out.header(clock::Kind::safe, head.epoch).u32(0);
    } else if (head.kind == clock::Kind::news) {
        out.header(clock::Kind::safe, head.epoch).u32(in.u32());
    } else {
        return;
    }
    auto* at = reinterpret_cast<const std::byte*>(buffer);
    send(agent, wire::Clock{{at, at + out.size()}});
}

// False: it is over.
bool Agents::handle(Agent& agent, const wire::Message& message) {
    if (auto* m = std::get_if<wire::Clock>(&message)) {
        clock(agent, *m);
    } else if (auto* m = std::get_if<wire::Freeze>(&message)) {
        send(agent, wire::Frozen{m->epoch, 100});
    } else if (auto* m = std::get_if<wire::Drain>(&message)) {
        send(agent, wire::Drained{m->epoch, m->round, 100, 100, 0});
    } else if (auto* m = std::get_if<wire::Save>(&message)) {
        // The root looks whether there is a file.
        Fd file(::open(fmt::format("{}/rank-{:06}.img", m->directory, agent.rank).c_str(),
                       O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        if (::ftruncate(file.get(), kImageBytes) != 0) fail_errno("cannot make an image");
        send(agent, wire::Saved{m->epoch, agent.rank, kImageBytes, std::string(32, 'a'), "", 10, {}});
    } else if (auto* m = std::get_if<wire::Resume>(&message)) {
        send(agent, wire::Resumed{m->epoch});
    } else if (auto* m = std::get_if<wire::Cancel>(&message)) {
        send(agent, wire::Resumed{m->epoch});
    } else if (std::holds_alternative<wire::Query>(message)) {
        send(agent, wire::Diagnosis{"main thread: nowhere"});
    } else if (std::holds_alternative<wire::FinalizeReleased>(message) ||
               std::holds_alternative<wire::Leave>(message)) {
        return false;
    }
    return true;
}

int Agents::serve() {
    std::vector<epoll_event> events(1024);
    char buffer[65536];
    while (!ending) {
        int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 100);
        for (int i = 0; i < count; ++i) {
            Agent& agent = agents_[events[static_cast<size_t>(i)].data.u32];
            ssize_t n = ::recv(agent.socket.get(), buffer, sizeof buffer, 0);
            if (n == 0) return 1;
            if (n < 0) continue;
            agent.in.feed(buffer, static_cast<size_t>(n));
            while (auto message = agent.in.next())
                if (!handle(agent, *message)) return 0;
        }
    }
    return 0;
}

// Where it says what it has done, and when (CLOCK_MONOTONIC).
void mark(const std::string& hold, const char* what) {
    if (!hold.empty()) std::ofstream(hold + "." + what) << fmt::format("{:.6f}\n", monotonic_s());
}

int run(int argc, char** argv) {
    int size = 1;
    for (int i = 1; i + 1 < argc; ++i)
        if (std::strcmp(argv[i], "-n") == 0) size = std::atoi(argv[i + 1]);
    const char* nodes = std::getenv("SCALE_NODES");
    const char* hold_at = std::getenv("SCALE_HOLD");
    const std::string hold = hold_at ? hold_at : "";
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &files) != 0) fail_errno("cannot have enough descriptors");
    const int most = static_cast<int>(std::min<rlim_t>(files.rlim_max, 1'000'000)) - 100;
    ::signal(SIGTERM, [](int) { ending = 1; });
    Agents agents(size, nodes ? std::atoi(nodes) : 1);
    mark(hold, "start");
    agents.start_daemons();
    mark(hold, "daemons");
    while (!hold.empty() && !std::filesystem::exists(hold + ".go") && !ending) ::usleep(1000);
    mark(hold, "first");
    // As many processes as their descriptors ask for; this one ends when the last of them does.
    int first = 0;
    std::vector<pid_t> others;
    for (; size - first > most; first += most) {
        pid_t pid = ::fork();
        if (pid < 0) fail_errno("cannot start another process");
        if (pid == 0) {
            agents.connect(first, first + most);
            ::_exit(agents.serve());
        }
        others.push_back(pid);
    }
    agents.connect(first, size);
    mark(hold, "last");
    int code = agents.serve();
    for (pid_t pid : others) {
        if (ending) ::kill(pid, SIGTERM);
        ::waitpid(pid, nullptr, 0);
    }
    return code;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::strcmp(argv[1], "--version") == 0) {
        std::puts("mpiexec (Open MPI) stands in");
        return 0;
    }
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "scale-agents: %s\n", error.what());
        return 1;
    }
}
