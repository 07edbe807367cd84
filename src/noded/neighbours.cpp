#include "noded/neighbours.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

extern char** environ;

namespace fermata::noded {
namespace {

constexpr uint64_t kMostSaid = 4096;

Fd file_without_name(const char* what) {
    Fd file(::memfd_create(what, MFD_CLOEXEC));
    if (!file) fail_errno("cannot make a file in memory");
    return file;
}

// This daemon's environment, which came from the root, as `noded --environment` reads it: with the key, and
// the number that the other one has.
Fd environment_for(uint32_t node, const wire::Key& key) {
    std::string text;
    for (char** one = environ; one && *one; ++one) {
        const std::string_view word = *one;
        if (!word.starts_with("FERMATA_DAEMON=") && !word.starts_with("FERMATA_KEY="))
            text.append(word).push_back('\0');
    }
    text += fmt::format("FERMATA_DAEMON={}", node) + '\0';
    text += "FERMATA_KEY=" + wire::to_hex(key) + '\0';
    Fd file = file_without_name("environment");
    write_all(file.get(), text.data(), text.size(), "the environment of another node daemon");
    ::explicit_bzero(text.data(), text.size());
    ::lseek(file.get(), 0, SEEK_SET);
    return file;
}

}  // namespace

Neighbours::~Neighbours() {
    for (Starter& one : starters_) {
        ::kill(one.child.pid, SIGKILL);
        ::waitpid(one.child.pid, nullptr, 0);
    }
}

void Neighbours::start(const wire::StartDaemons& order) {
    for (const wire::HostToStart& host : order.hosts) {
        try {
            start(order, host);
        } catch (const std::exception& error) {
            up_(wire::NotStarted{host.node, error.what()});
        }
    }
}

void Neighbours::start(const wire::StartDaemons& order, const wire::HostToStart& host) {
    if (order.words.empty()) fail("nobody says how daemons are started on other hosts");
    Starter starter{host.node, order.words[0] + " " + host.name, {}, file_without_name("said")};
    const Fd environment = environment_for(host.node, key_);
    const Fd null = open_file("/dev/null", O_RDWR | O_CLOEXEC);
    SpawnSpec spec;
    // The shell looks the first word up in PATH.
    spec.words = {"/bin/sh", "-c", "exec \"$@\"", "sh"};
    spec.words.insert(spec.words.end(), order.words.begin(), order.words.end());
    spec.words.insert(spec.words.end(), {host.name, order.command});
    spec.directory = "/";
    for (char** one = environ; one && *one; ++one) spec.environment.emplace_back(*one);
    spec.input = environment.get();
    spec.output = null.get();
    spec.error = starter.said.get();
    starter.child = spawn(spec);
    starters_.push_back(std::move(starter));
}

void Neighbours::add_to(std::vector<pollfd>& fds) const {
    for (const Starter& one : starters_) fds.push_back({one.child.process.get(), POLLIN, 0});
}

void Neighbours::serve() {
    std::erase_if(starters_, [this](Starter& one) {
        int status = 0;
        if (::waitpid(one.child.pid, &status, WNOHANG) != one.child.pid) return false;
        if (status == 0) return true;
        ::lseek(one.said.get(), 0, SEEK_SET);
        std::string said(kMostSaid, '\0');
        const ssize_t n = ::read(one.said.get(), said.data(), said.size());
        said.resize(n > 0 ? static_cast<size_t>(n) : 0);
        while (!said.empty() && said.back() == '\n') said.pop_back();
        up_(wire::NotStarted{one.node, fmt::format("{}: {}{}{}", one.words, text_of_end(status),
                                                   said.empty() ? "" : ": ", said)});
        return true;
    });
}

}  // namespace fermata::noded
