// libexec/fermata/noded: started by the ranks of a node (AgentLink::ensure_daemon), configured by FERMATA_…;
// or by the launcher `own`, whose ranks it starts (own_start.h).
//
// The process that was started returns as soon as <run dir>/<job>.<id>.<node>/agents exists, with one line on
// stderr if that cannot be; a copy of it goes on as the daemon. Several may be started at once: one gets the
// directory, the others leave.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/process_limits.h"
#include "noded/node.h"
#include "noded/own_start.h"
#include "tree/local_socket.h"
#include "tree/root_address.h"
#include "wire/auth.h"

namespace fermata::noded {
namespace {

// The rank that started this daemon reads what comes by stderr until the daemon is ready.
bool starter_gone() {
    pollfd reader{2, 0, 0};
    return ::poll(&reader, 1, 0) > 0 && (reader.revents & POLLERR) != 0;
}

// In the daemon; `ready` is called when the foreground process may return.
template <class Ready>
void serve(tree::AgentConfig config, std::optional<uint32_t> number, Ready ready) {
    if (config.job_id.empty()) fail("noded is started by the ranks of a job, not by hand");
    start_log("node " + config.node);
    wire::Key key = wire::key_from_hex(config.key);
    config.forget_key();
    const std::string base = config.run_dir;
    tree::ensure_run_base(base);
    Fd listener;
    // The directory appears complete: locked, listening, and with a root behind it.
    std::string node_dir = config.node_dir();
    std::optional<tree::Channel> root;
    tree::RunDir dir =
        tree::RunDir::create(base, node_dir.substr(node_dir.rfind('/') + 1), [&](const std::string& path) {
            listener = tree::listen_local(path, "agents");
            root = tree::connect_to_root(config.root, key, 60000, [&] { return !number && starter_gone(); });
        });
    if (!dir) {  // somebody was faster
        if (root) {
            root->send(wire::Spare{});
            root->flush(1000);  // ms; a root that does not read that long is not waited for
        }
        return ready();
    }
    ready();
    Node node(std::move(config), std::move(dir), std::move(listener), std::move(*root), key);
    if (number) node.start_ranks_as(*number);
    node.run();
    tree::sweep(
        base);  // a killed supervisor leaves its directory; on its own node nobody else would tidy up soon
}

}  // namespace
}  // namespace fermata::noded

namespace {

using namespace fermata;

// In who was started by hand or by a rank: waits for the daemon, which writes a byte when it is ready, or
// ends.
int wait_for_daemon(pid_t pid, int ready) {
    char c;
    ssize_t n;
    do n = ::read(ready, &c, 1);
    while (n < 0 && errno == EINTR);
    if (n == 1) return 0;
    // The child has said why, or could not any more.
    int status = 0;
    if (::waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
        dprintf(2, "the node daemon was killed before it was ready (signal %d)\n", WTERMSIG(status));
    return 1;
}

int be_daemon(tree::AgentConfig config, const noded::OwnStart& own, int ready) {
    ::setsid();
    for (int signal : {SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
    // The root decides about signals that a scheduler sends to its steps.
    if (own.number)
        for (int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) ::signal(signal, SIG_IGN);
    // A rank may block or ignore signals; the daemon starts clean of that.
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (::chdir("/") != 0) return 1;
    noded::serve(std::move(config), own.number, [&] {
        // The rank that started us waits for the end of its pipe, which is our stderr so far.
        const char* log = std::getenv("FERMATA_LOG") ? std::getenv("FERMATA_NODE_LOG") : nullptr;
        int out = ::open(log ? log : "/dev/null", O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (out != 2) ::dup2(out, 2);
        if (out > 2) ::close(out);
        [[maybe_unused]] ssize_t n = ::write(ready, "r", 1);
        ::close(ready);
    });
    return 0;
}

int run(int argc, char** argv) {
    const noded::OwnStart own = noded::OwnStart::of(argc, argv);
    take_own_limits();
    tree::AgentConfig config = tree::AgentConfig::from_environment();
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) return 1;
    pid_t pid = own.stays ? 0 : ::fork();
    if (pid < 0) return 1;
    if (pid == 0) return be_daemon(std::move(config), own, ready[1]);
    config.forget_key();
    ::close(ready[1]);
    return wait_for_daemon(pid, ready[0]);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const fermata::Error& error) {
        dprintf(2, "%s\n", error.what());
    } catch (const std::exception& error) {
        dprintf(2, "node daemon: %s\n", error.what());
    }
    return 1;
}
