#include "root/control/control.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "store/generation.h"
#include "tree/channel.h"
#include "tree/local_socket.h"

namespace fermata::root {

using nlohmann::json;

namespace {

constexpr size_t kClients = 128;
constexpr int kLetInAtOnce = 16;
constexpr int64_t kSilentMs = 10000;  // then who has not asked, or does not read his answer, goes
constexpr int64_t kNoFilesMs = 100;

}  // namespace

std::string to_json(const ControlRequest& request) {
    return json{{"verb", request.verb},
                {"stop", request.stop},
                {"own_state", request.own_state},
                {"timeout", request.timeout},
                {"checkpoint_only", request.checkpoint_only},
                {"diagnosis", request.diagnosis},
                {"environment", store::words_as_utf8(request.renewal.environment)},
                {"mpi", store::words_as_utf8({request.renewal.mpi})},
                {"mpiexec_args", store::words_as_utf8({request.renewal.mpiexec_args})},
                {"replicas", request.replicas},
                {"generation", request.generation.number()}}
        .dump();
}

std::optional<ControlRequest> parse_request(const std::string& line) {
    json j = json::parse(line, nullptr, false);
    if (!j.is_object()) return std::nullopt;
    try {
        ControlRequest request;
        request.verb = j.at("verb").get<std::string>();
        request.stop = j.value("stop", false);
        request.own_state = j.value("own_state", false);
        request.timeout = j.value("timeout", 0.0);
        if (!(request.timeout >= 0 && request.timeout <= kLongestDuration)) return std::nullopt;
        request.checkpoint_only = j.value("checkpoint_only", false);
        request.diagnosis = j.value("diagnosis", false);
        auto words = [&j](const char* name) {
            std::vector<std::string> all;
            for (const json& word : j.value(name, json::array()))
                all.push_back(bytes_of_utf8(word.get<std::string>()));
            return all;
        };
        request.renewal.environment = words("environment");
        for (const std::string& word : words("mpi")) request.renewal.mpi = word;
        for (const std::string& word : words("mpiexec_args")) request.renewal.mpiexec_args = word;
        request.replicas = j.value("replicas", "");
        const uint32_t generation = j.value("generation", 0u);
        if (generation > Generation::kLast) return std::nullopt;
        if (generation > 0) request.generation = Generation(generation);
        return request;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

void Control::add_to(std::vector<pollfd>& fds) {
    fds.push_back({tree::now_ms() < closed_til_ ? -1 : listener_.get(), POLLIN, 0});
    polled_.clear();
    for (auto& [id, client] : clients_) {
        polled_.push_back(id);
        fds.push_back(
            {client.socket.get(), static_cast<short>(POLLIN | (client.out.empty() ? 0 : POLLOUT)), 0});
    }
}

void Control::serve(const std::vector<pollfd>& fds, size_t first) {
    size_t at = first + 1;
    for (int id : polled_) {
        if (!fds[at++].revents) continue;
        auto found = clients_.find(id);
        if (found == clients_.end()) continue;
        if (fds[at - 1].revents == POLLOUT) {
            write_some(found);
            continue;
        }
        char buffer[4096];
        ssize_t n = ::recv(found->second.socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            clients_.erase(found);
            continue;
        }
        if (n < 0) continue;
        std::string& in = found->second.in;
        in.append(buffer, static_cast<size_t>(n));
        if (in.size() > 65536) {
            clients_.erase(found);
            continue;
        }
        for (size_t end; (end = in.find('\n')) != std::string::npos;) {
            auto request = parse_request(in.substr(0, end));
            in.erase(0, end + 1);
            if (!request) {
                finish(id);
                break;
            }
            found->second.asked = true;
            on_request(id, *request);
            if (clients_.find(id) == clients_.end()) break;
        }
    }
    int64_t now = tree::now_ms();
    std::erase_if(clients_, [&](const auto& one) {
        return (!one.second.asked || one.second.last) && now - one.second.since > kSilentMs;
    });
    if (fds[first].revents) let_in();
}

void Control::let_in() {
    for (int turn = 0; turn < kLetInAtOnce; ++turn) {
        Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!fd) {
            if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
                closed_til_ = tree::now_ms() + kNoFilesMs;  // EMFILE: it would be polled for nothing
            return;
        }
        if (tree::peer_of(fd.get()).uid != ::geteuid()) continue;
        if (clients_.size() >= kClients) {
            // Clients come in the order of their numbers: the one that has been silent for the longest time
            // goes.
            auto silent = std::find_if(clients_.begin(), clients_.end(),
                                       [](const auto& one) { return !one.second.asked; });
            if (silent == clients_.end()) continue;
            clients_.erase(silent);
        }
        Client& client = clients_[next_++];
        client.socket = std::move(fd);
        client.since = tree::now_ms();
    }
}

void Control::say(int client, const std::string& json) {
    auto found = clients_.find(client);
    if (found == clients_.end()) return;
    found->second.out += json + "\n";
    write_some(found);
}

void Control::write_some(std::map<int, Client>::iterator found) {
    Client& client = found->second;
    while (!client.out.empty()) {
        ssize_t n =
            ::send(client.socket.get(), client.out.data(), client.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            client.out.erase(0, static_cast<size_t>(n));
        } else if (errno == EAGAIN && client.out.size() < (64u << 20)) {
            return;
        } else if (errno != EINTR) {
            clients_.erase(found);
            return;
        }
    }
    if (client.last) clients_.erase(found);
}

void Control::finish(int client) {
    auto found = clients_.find(client);
    if (found == clients_.end()) return;
    found->second.last = true;
    found->second.since = tree::now_ms();
    if (found->second.out.empty()) clients_.erase(found);
}

}  // namespace fermata::root
