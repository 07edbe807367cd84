// The root's end of the tree: node daemons that connect, prove the key, and speak for their ranks.
#pragma once

#include <poll.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "job/channel.h"
#include "wire/auth.h"

namespace fermata::job {

// What the root knows of a rank.
struct RankInfo {
    int node = -1;  // key of Tree::nodes; -1: not there (yet, or no more)
    int pid = 0;
};

struct NodeInfo {
    std::string host;
    int pid = 0;
    uint32_t ranks = 0;
    bool spare = false;  // another one of its node was faster: not missed
};

class Tree {
  public:
    using Handler = std::function<void(int node, const wire::Message& message)>;
    using Lost = std::function<void(int node, const NodeInfo& info)>;

    // Listens on a port of the kernel's choice.
    explicit Tree(const wire::Key& key);

    uint16_t port() const { return port_; }
    // Handlers are called from serve().
    Handler on_message;
    Lost on_lost;

    // Adds what to poll, and serves it afterwards; `first` is the index of the first added entry.
    void add_to(std::vector<pollfd>& fds);
    void serve(const std::vector<pollfd>& fds, size_t first);

    void broadcast(const wire::Message& message);
    void send(int node, const wire::Message& message);
    void flush(int ms);

    const std::map<int, NodeInfo>& nodes() const { return nodes_; }
    std::map<int, NodeInfo>& nodes() { return nodes_; }

  private:
    struct Guest {  // not yet authenticated
        Fd socket;
        wire::Handshake shake;
        int64_t since;
    };
    bool serve_guest(Guest& guest);

    wire::Key key_;
    uint16_t port_ = 0;  // before listener_, which sets it
    Fd listener_;
    std::vector<std::unique_ptr<Guest>> guests_;
    std::map<int, Channel> channels_;
    std::map<int, NodeInfo> nodes_;
    std::vector<int> polled_;  // node of each polled channel, in the order of add_to
    size_t polled_guests_ = 0;
    int next_node_ = 0;
};

}  // namespace fermata::job
