// The control socket of a job: one JSON object per line, both ways. `fermata checkpoint`, `status` and
// `cancel` talk to the root through it; only the same user can reach it. A client that connects and does not
// ask goes soon.
#pragma once

#include <poll.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/generation.h"
#include "launch/renewal.h"

namespace fermata::root {

struct ControlRequest {
    std::string verb;  // "checkpoint", "status", "cancel", "repair", "renew", "replicas"
    bool stop = false;
    bool own_state = false;  // checkpoint: of the program's own state
    double timeout = 0;
    bool checkpoint_only = false;  // cancel: not the job, only its checkpoint in progress
    bool diagnosis = false;        // status: ask every rank what it waits for
    Generation generation;         // repair: only this one; none: all
    launch::Renewal renewal{};     // renew
    std::string replicas{};        // which ranks shall have copies; "": only asked
};

std::string to_json(const ControlRequest& request);
std::optional<ControlRequest> parse_request(const std::string& line);

class Control {
  public:
    void listen_at(Fd listener) { listener_ = std::move(listener); }

    // Called from serve() for each request.
    std::function<void(int client, const ControlRequest& request)> on_request;

    void add_to(std::vector<pollfd>& fds);
    void serve(const std::vector<pollfd>& fds, size_t first);
    // One line; never blocks.
    void say(int client, const std::string& json);
    void finish(int client);  // hang up once everything is written

  private:
    struct Client {
        Fd socket;
        std::string in, out;
        int64_t since = 0;
        bool asked = false;  // anything: until then it may have to go
        bool last = false;   // hang up once everything is written
    };
    void let_in();
    void write_some(std::map<int, Client>::iterator client);
    Fd listener_;
    std::map<int, Client> clients_;
    std::vector<int> polled_;
    int next_ = 0;
    int64_t closed_til_ = 0;  // ms: before that, nobody is let in
};

}  // namespace fermata::root
