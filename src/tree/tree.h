// The root's end of the tree: node daemons that connect, prove the key, and speak for their ranks.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tree/channel.h"
#include "tree/guests.h"

namespace fermata::tree {

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
    // ms that poll may take, at most `otherwise`.
    int rest(int otherwise) const { return guests_.rest(otherwise); }
    // A node with so many more ranks may say so much more at once.
    void expect(int node, size_t ranks);
    // More nodes than this are refused.
    void at_most(size_t nodes) { most_nodes_ = nodes; }

    void broadcast(const wire::Message& message);
    void send(int node, const wire::Message& message);
    void flush(int ms);

    const std::map<int, NodeInfo>& nodes() const { return nodes_; }
    std::map<int, NodeInfo>& nodes() { return nodes_; }

  private:
    void admit(Fd socket, const wire::Handshake& shake);

    uint16_t port_ = 0;  // before guests_, whose listener sets it
    Guests guests_;
    std::map<int, Channel> channels_;
    std::map<int, NodeInfo> nodes_;
    std::vector<int> polled_;  // node of each polled channel, in the order of add_to
    int next_node_ = 0;
    size_t most_nodes_ = SIZE_MAX;
};

}  // namespace fermata::tree
