// Branch is a node daemon's place in the tree: the connection upwards, those to daemons below it, and the
// Relay that says what goes where. Messages that are not the relay's (the clock, a diagnosis) go hop by hop
// through Node, which has ranks of its own to add.
#pragma once

#include <poll.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "noded/uplink.h"
#include "tree/links.h"
#include "tree/relay.h"

namespace fermata::noded {

class Branch {
  public:
    Branch(tree::Channel root, const wire::Key& key, const std::string& root_addresses, std::string host);

    // Called from serve(). From above, for this daemon and its ranks:
    std::function<void(const wire::Message& message)> on_message;
    // From a daemon right below, hop by hop:
    std::function<void(int child, const wire::Message& message)> on_child;
    std::function<void(int child)> on_child_gone;

    void add_to(std::vector<pollfd>& fds);
    void serve(const std::vector<pollfd>& fds);
    int rest(int otherwise) const;  // ms that poll may take

    // Says it to the root.
    void say(wire::Message message);
    // Sends it to the next one above, hop by hop.
    void to_parent(const wire::Message& message) { uplink_.send(message); }
    void to_children(const wire::Message& message);
    // Answers of `ranks` of this daemon and of all below that are due.
    void hand_up(uint32_t ranks);

    tree::Tally& tally() { return relay_.tally(); }
    const tree::Relay& relay() const { return relay_; }
    bool alone() const { return link_of_.empty(); }
    int64_t lost_since() const { return uplink_.lost_since(); }
    int64_t silent_ms() const { return uplink_.silent_ms(); }
    void flush(int ms);

  private:
    void introduce();
    void from_above(const wire::Message& message);
    void from_below(int link, const wire::Message& message);
    void closed(int link, tree::Links::End how);
    void send_out(bool followed = false);

    const std::string host_;
    tree::Links links_;
    Uplink uplink_;
    tree::Relay relay_;
    std::map<int, int> child_of_, link_of_;  // link -> daemon, and back
    size_t uplink_at_ = 0, links_at_ = 0;    // what add_to added
    int64_t parts_told_ = 0;                 // ms: when answers went up
};

}  // namespace fermata::noded
