// pmi_launch starts the ranks of an MPI program natively through the PMI servers of src/pmi, on one node or
// on several pretended ones, all in this process:
//     pmi_launch [--pmix HELPER] [--nodes K] [--cyclic] [--programs A,B] [--universe N] [--keep] [--late]
//         -n N PROGRAM [WORD…]
// It prints "rank R pid P" for each rank, and "rank R: …" for what happens to it, on stderr. Its exit code is
// that of MPI_Abort or of the first rank that ended badly; then it kills the others, unless --keep is given.
// With --late it looks only twice a second whether ranks have ended.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/is_ending.h"
#include "pmi/engine.h"
#include "pmi/pmix_link.h"

namespace fermata::pmi {
namespace {

struct Options {
    std::string helper;
    uint32_t nodes = 1, ranks = 1, universe = 0;
    bool cyclic = false, keep = false, late = false;
    std::vector<uint32_t> programs;
    std::vector<char*> command;
};

// One end of a socket pair, with what is to be written to it.
struct Pipe {
    Fd fd;
    std::string out;
    bool flush() {
        while (!out.empty()) {
            const ssize_t n = ::send(fd.get(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n < 0) return errno == EAGAIN;
            out.erase(0, static_cast<size_t>(n));
        }
        return true;
    }
    // Nothing: nothing there now. Empty: its end.
    std::optional<std::string> read() {
        char bytes[64 << 10];
        const ssize_t n = ::recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
        return std::string(bytes, n > 0 ? static_cast<size_t>(n) : 0);
    }
};

std::pair<Fd, Fd> pair() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail_errno("socketpair");
    return {Fd(ends[0]), Fd(ends[1])};
}

struct Node {
    std::unique_ptr<Service> service;
    Engine* engine = nullptr;
    PmixLink* link = nullptr;
    Pipe helper;
    pid_t helper_pid = 0;
};

class Launch {
  public:
    explicit Launch(Options options)
        : options_(std::move(options)), merge_(FenceMerge::Level::root, 1, options_.ranks) {
        std::string path = std::filesystem::temp_directory_path() / "pmi-launch-XXXXXX";
        if (!::mkdtemp(path.data())) fail_errno("mkdtemp");
        directory_ = path;
        const uint32_t each = (options_.ranks + options_.nodes - 1) / options_.nodes;
        for (uint32_t rank = 0; rank < options_.ranks; ++rank)
            world_.placement.add(options_.cyclic ? rank % options_.nodes : rank / each, 1);
        world_.epoch = 1;
        world_.name = "test-" + std::to_string(::getpid());
        world_.programs = options_.programs;
        world_.universe = options_.universe;
        world_.cores = static_cast<uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN)) / options_.nodes;
        for (uint32_t node = 0; node < world_.placement.nodes(); ++node)
            world_.hosts.push_back("pretended" + std::to_string(node));
    }
    ~Launch() { std::filesystem::remove_all(directory_); }

    int run() {
        for (uint32_t node = 0; node < world_.placement.nodes(); ++node) add_node(node);
        while (
            std::any_of(nodes_.begin(), nodes_.end(), [](auto& n) { return n->link && !n->link->ready(); }) &&
            !ending_)
            turn();
        if (!ending_)
            for (uint32_t rank = 0; rank < options_.ranks; ++rank) start(Rank(rank));
        while (!pids_.empty()) turn();
        for (auto& node : nodes_) {
            node->helper.fd.reset();
            if (node->helper_pid) ::waitpid(node->helper_pid, nullptr, 0);
        }
        for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
            if (entry.path().filename().string().rfind("pmix-", 0) != 0) continue;
            std::fprintf(stderr, "the helper left %s behind\n", entry.path().c_str());
            code_ = code_ ? code_ : 99;
        }
        return code_;
    }

  private:
    void add_node(uint32_t number) {
        auto node = std::make_unique<Node>();
        std::filesystem::create_directory(directory_ + "/node" + std::to_string(number));
        World world = world_;
        world.node = number;
        if (options_.helper.empty()) {
            auto engine = std::make_unique<Engine>(world);
            node->engine = engine.get();
            node->service = std::move(engine);
        } else {
            auto link = std::make_unique<PmixLink>(world, directory_);
            node->link = link.get();
            node->link->is_ending = [this](Rank rank) {
                for (auto [pid, one] : pids_)
                    if (one == rank) return fermata::is_ending(pid);
                return true;
            };
            node->service = std::move(link);
            auto [ours, theirs] = pair();
            node->helper_pid = ::fork();
            if (node->helper_pid == 0) {
                ::dup2(theirs.get(), 3);
                ::execl(options_.helper.c_str(), options_.helper.c_str(), nullptr);
                ::_exit(127);
            }
            node->helper.fd = std::move(ours);
            std::fprintf(stderr, "helper %u pid %d\n", number, node->helper_pid);
        }
        nodes_.push_back(std::move(node));
    }

    Node& node_of(Rank rank) { return *nodes_[world_.placement.node_of(rank)]; }

    void start(Rank rank) {
        auto [ours, theirs] = pair();
        auto names = node_of(rank).service->environment(rank);
        const pid_t pid = ::fork();
        if (pid == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (auto& [name, value] : names) ::setenv(name.c_str(), value.c_str(), 1);
            if (node_of(rank).engine) {
                const int fd = ::fcntl(theirs.get(), F_DUPFD, 20);
                ::setenv("PMI_FD", std::to_string(fd).c_str(), 1);
            }
            // Open MPI names its shared memory after the host and the rank's number on it.
            const std::string shared = directory_ + "/node" + std::to_string(world_.placement.node_of(rank));
            if (options_.nodes > 1)
                for (const char* name :
                     {"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory"})
                    ::setenv(name, shared.c_str(), 1);
            std::vector<char*> words = options_.command;
            words.push_back(nullptr);
            ::execvp(words[0], words.data());
            std::fprintf(stderr, "%s: %s\n", words[0], std::strerror(errno));
            ::_exit(127);
        }
        std::fprintf(stderr, "rank %u pid %d\n", rank.number(), pid);
        pids_.emplace(pid, rank);
        if (node_of(rank).engine) pipes_[rank].fd = std::move(ours);
    }

    // Waits a moment for bytes or ends, and does what follows.
    void turn() {
        std::vector<pollfd> polled;
        auto watch = [&](Pipe& pipe) {
            if (pipe.fd)
                polled.push_back(
                    {pipe.fd.get(), static_cast<short>(POLLIN | (pipe.out.empty() ? 0 : POLLOUT)), 0});
        };
        for (auto& [rank, pipe] : pipes_) watch(pipe);
        for (auto& node : nodes_) watch(node->helper);
        ::poll(polled.data(), polled.size(), 10);
        for (auto& [rank, pipe] : pipes_) read_rank(rank, pipe);
        read_helpers();
        reap();
        pump();
    }

    void read_helpers() {
        for (auto& node : nodes_) {
            if (!node->helper.fd) continue;
            node->helper.flush();
            while (auto bytes = node->helper.fd ? node->helper.read() : std::nullopt) {
                if (!bytes->empty()) {
                    node->link->from_helper(*bytes);
                    continue;
                }
                node->helper.fd.reset();
                node->link->helper_ended("has ended by itself");
            }
        }
    }

    void read_rank(Rank rank, Pipe& pipe) {
        if (!pipe.fd) return;
        pipe.flush();
        while (auto bytes = pipe.fd ? pipe.read() : std::nullopt) {
            if (bytes->empty())
                pipe.fd.reset();
            else
                node_of(rank).engine->from_rank(rank, *bytes);
        }
    }

    // Ranks may end because of one that a signal has ended, so that one comes first: it had ended before they
    // did, so that a second look finds it, whatever the first one saw.
    void reap() {
        if (options_.late && monotonic_ms() < look_at_) return;
        look_at_ = monotonic_ms() + 500;
        std::vector<std::pair<Rank, int>> found;
        for (int look = 0; look < 2; ++look)
            for (auto at = pids_.begin(); at != pids_.end();) {
                int status = 0;
                if (::waitpid(at->first, &status, WNOHANG) != at->first) {
                    ++at;
                    continue;
                }
                found.emplace_back(at->second, status);
                at = pids_.erase(at);
            }
        std::stable_partition(found.begin(), found.end(), [this](auto& f) {
            return WIFSIGNALED(f.second) && !condemned_.count(f.first);
        });
        if (!found.empty()) read_helpers();  // what they have said of those that have ended
        for (auto [rank, status] : found) {
            if (auto pipe = pipes_.find(rank); pipe != pipes_.end()) read_rank(rank, pipe->second);
            ended(rank, status);
        }
    }

    void ended(Rank rank, int status) {
        Service& service = *node_of(rank).service;
        const std::string how = WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                                                    : fmt::format("ended with {}", WEXITSTATUS(status));
        const bool died = service.stage(rank) == Stage::running;
        service.ended(rank, how);
        for (const Fence& failed : merge_.lost(rank, how)) broadcast(failed);
        const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        if (code == 0 && !died) return;
        if (!ending_)
            std::fprintf(stderr, "rank %u: %s%s\n", rank.number(), how.c_str(),
                         died ? ", not finalized" : "");
        if (!code_) code_ = code ? code : 1;
        if (!options_.keep) kill_all();
    }

    void pump() {
        for (bool more = true; more;) {
            more = false;
            for (auto& node : nodes_)
                while (auto event = node->service->next()) {
                    more = true;
                    std::visit([&](auto& e) { take(*node, e); }, *event);
                }
        }
        for (auto& [rank, pipe] : pipes_)
            if (pipe.fd) pipe.flush();
        for (auto& node : nodes_)
            if (node->helper.fd) node->helper.flush();
    }

    void broadcast(const Fence& result) {
        for (auto& node : nodes_) node->service->result(result);
    }

    void take(Node&, ToRank& e) { pipes_[e.rank].out += e.bytes; }
    void take(Node& node, ToHelper& e) { node.helper.out += e.bytes; }
    void take(Node&, Fence& e) {
        if (auto result = merge_.add(std::move(e))) broadcast(*result);
    }
    void take(Node&, Ask& e) {
        std::fprintf(stderr, "node %u asks for rank %u\n", e.from, e.rank.number());
        node_of(e.rank).service->asked(e);
    }
    void take(Node&, Answer& e) { nodes_.at(e.to)->service->answered(e); }
    void take(Node&, Abort& e) {
        std::fprintf(stderr, "rank %u: MPI_Abort with %d: %s\n", e.rank.number(), e.code, e.text.c_str());
        if (!code_) code_ = e.code ? e.code : 1;
        kill_all();
    }
    void take(Node&, Fault& e) {
        std::fprintf(stderr, "fault: %s\n", e.line.c_str());
        if (!code_) code_ = 98;
        for (auto [pid, rank] : pids_)
            if (!e.rank || *e.rank == rank) condemned_.insert(rank), ::kill(pid, SIGKILL);
        ending_ = ending_ || !e.rank;
    }
    void kill_all() {
        ending_ = true;
        for (auto [pid, rank] : pids_) ::kill(pid, SIGKILL);
    }

    Options options_;
    World world_;
    FenceMerge merge_;
    std::string directory_;
    std::vector<std::unique_ptr<Node>> nodes_;
    std::map<pid_t, Rank> pids_;
    std::map<Rank, Pipe> pipes_;
    int code_ = 0;
    bool ending_ = false;
    int64_t look_at_ = 0;       // with --late
    std::set<Rank> condemned_;  // ranks that the launcher itself has killed for a fault
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        auto next = [&] { return i + 1 < argc ? argv[++i] : throw Error("a value is missing"); };
        if (word == "--pmix") {
            options.helper = next();
        } else if (word == "--nodes") {
            options.nodes = static_cast<uint32_t>(std::stoul(next()));
        } else if (word == "-n") {
            options.ranks = static_cast<uint32_t>(std::stoul(next()));
        } else if (word == "--universe") {
            options.universe = static_cast<uint32_t>(std::stoul(next()));
        } else if (word == "--programs") {
            std::stringstream list(next());
            for (std::string one; std::getline(list, one, ',');)
                options.programs.push_back(static_cast<uint32_t>(std::stoul(one)));
        } else if (word == "--cyclic") {
            options.cyclic = true;
        } else if (word == "--keep") {
            options.keep = true;
        } else if (word == "--late") {
            options.late = true;
        } else {
            options.command.assign(argv + i, argv + argc);
            break;
        }
    }
    if (options.command.empty()) fail("no program is given");
    return options;
}

}  // namespace
}  // namespace fermata::pmi

int main(int argc, char** argv) {
    try {
        return fermata::pmi::Launch(fermata::pmi::parse(argc, argv)).run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "pmi_launch: %s\n", error.what());
        return 2;
    }
}
