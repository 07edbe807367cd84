// libexec/fermata/pmix: started by a node daemon with one end of a socket pair as descriptor 3; serves the
// ranks of one world on this node with libpmix (src/pmi/pmix_link.h is the other end). A process of its own
// is needed because libpmix brings threads, and the daemon has one poll loop. It leaves when the socket is at
// its end.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <type_traits>

#include "base/error.h"
#include "pmi/helper/server.h"

namespace fermata::pmi::helper {
namespace {

constexpr int kDaemon = 3;
constexpr unsigned kPatience = 10;  // s, for libpmix to end

// Frames of several threads, one after the other. A daemon that is gone is the reading thread's business.
class Line {
  public:
    void send(const Message& message) {
        const std::string bytes = frame(message);
        std::lock_guard held(lock_);
        for (size_t at = 0; at < bytes.size();) {
            const ssize_t n = ::write(kDaemon, bytes.data() + at, bytes.size() - at);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return;
            at += static_cast<size_t>(n);
        }
    }
    // False: its end.
    bool receive(Decoder* decoder) {
        char bytes[64 << 10];
        ssize_t n;
        do n = ::read(kDaemon, bytes, sizeof bytes);
        while (n < 0 && errno == EINTR);
        if (n > 0) decoder->feed({bytes, static_cast<size_t>(n)});
        return n > 0;
    }

  private:
    std::mutex lock_;
};

std::string make_directory(const std::string& base) {
    std::string path = base + "/pmix-XXXXXX";  // 0700
    if (!::mkdtemp(path.data())) fail_errno("cannot make {}", path);
    return path;
}

void obey(Server& server, const Message& message) {
    std::visit(
        [&](const auto& one) {
            using One = std::decay_t<decltype(one)>;
            if constexpr (std::is_same_v<One, Fenced>)
                server.fenced(one);
            else if constexpr (std::is_same_v<One, Wanted>)
                server.wanted(one);
            else if constexpr (std::is_same_v<One, Given>)
                server.given(one);
            else if constexpr (std::is_same_v<One, Ended>)
                server.ended(one);
            else
                fail("the daemon sent message {}", int{One::kType});
        },
        message);
}

// The first message is Start.
Start first(Line& line, Decoder* decoder) {
    std::optional<Message> message;
    while (!(message = decoder->next()))
        if (!line.receive(decoder)) fail("the daemon is gone before it said what is to be served");
    auto* start = std::get_if<Start>(&*message);
    if (!start) fail("the daemon begins with another message than Start");
    if (start->version != kVersion)
        fail("the daemon speaks version {}, this is {}", start->version, kVersion);
    if (start->hosts.size() < Placement::of(start->placement).nodes()) fail("nodes without host names");
    return *start;
}

void serve(Line& line, std::string* directory) {
    Decoder decoder;
    const Start start = first(line, &decoder);
    *directory = make_directory(start.directory);
    Server server([&](const Message& message) { line.send(message); });
    line.send(server.start(start, *directory));
    do {
        while (auto message = decoder.next()) obey(server, *message);
    } while (line.receive(&decoder));
    ::alarm(kPatience);
    server.stop();
}

}  // namespace
}  // namespace fermata::pmi::helper

int main() {
    using namespace fermata;
    ::signal(SIGPIPE, SIG_IGN);
    // A daemon that is killed takes its end of the socket along. Signals of a terminal or a scheduler to all
    // are for the ranks, which need this process until they have ended.
    for (int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_IGN);
    ::prctl(PR_SET_NAME, "fermata-pmix");
    // Else the values of all ranks are in files that every rank maps.
    ::setenv("PMIX_MCA_gds", "hash", 1);
    pmi::helper::Line line;
    std::string directory;
    int code = 0;
    try {
        pmi::helper::serve(line, &directory);
    } catch (const std::exception& error) {
        line.send(pmi::helper::Failed{"cannot serve: " + line_of(error)});
        code = 1;
    }
    std::error_code ignored;
    if (!directory.empty()) std::filesystem::remove_all(directory, ignored);
    ::_exit(code);
}
