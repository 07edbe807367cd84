// The root's end of the tree: daemons that register here, those right below the root, and by way of them all
// others. Small jobs are flat; with more daemons than the radix the later ones are sent to a parent.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tree/links.h"
#include "tree/members.h"
#include "tree/orders.h"
#include "tree/roll_call.h"

namespace fermata::tree {

// How wide the tree is, and how it beats; FERMATA_TREE_RADIX and FERMATA_TREE_SILENT (ms) are for tests.
struct Manners {
    size_t radix = 64;
    Rhythm rhythm;
    static Manners from_environment();
};

class Tree {
  public:
    // Listens on a port of the kernel's choice.
    Tree(const wire::Key& key, Manners manners);

    uint16_t port() const { return links_.port(); }
    size_t radix() const { return manners_.radix; }
    // Handlers are called from serve(). A message comes from the child of the root whose subtree it is of.
    std::function<void(int child, const wire::Message& message)> on_message;
    // The roll is called, for this reason: one line. The answers of the root's children count no more; they
    // say them again, or are gone.
    std::function<void(const std::string& why)> on_call;
    // A daemon answers. Its ranks follow, as Joined: all that it has.
    std::function<void(int node)> on_here;
    // A daemon has not come back. `node` is -1 of one that has not said who it is.
    std::function<void(int node, const NodeInfo& info)> on_lost;

    // Adds what to poll, and serves it afterwards; `first` is the index of the first added entry.
    void add_to(std::vector<pollfd>& fds) { links_.add_to(fds); }
    void serve(const std::vector<pollfd>& fds, size_t first);
    // ms that poll may take, at most `otherwise`.
    int rest(int otherwise) const;
    // This node has so many ranks; the job has `all` so far, and may say so much more at once.
    void expect(int node, uint32_t ranks, uint32_t all);
    void allow(int node, uint32_t ranks);
    // Whoever loses its connection is lost from now on, and with it those below it: what a launcher and the
    // parents of its ranks say to each other is said once.
    void allow_no_return() { returns_ = false; }
    // Whoever comes stays right below the root: nobody is lost with another.
    void stay_flat() { members_.stay_flat(); }
    // More connections than this are refused.
    void at_most(size_t nodes) { links_.at_most(nodes); }
    // The job is over: who leaves does not come back.
    void expect_no_return() {
        patient_ = false;
        members_.expect_no_return(now_ms());
    }

    // An order to every daemon, also to one that has another parent by then.
    void broadcast(const wire::Message& message);
    // Sends it to the children of the root only.
    void to_children(const wire::Message& message);
    void send(int node, const wire::Message& message);
    void flush(int ms) { links_.flush(ms); }

    // From the moment that a daemon is lost that was not heard: so long it may take until it knows by itself
    // that it is cut off (noded/uplink.h), ms.
    int64_t until_cut_off_ms() const { return manners_.rhythm.silent_ms + 2 * manners_.rhythm.beat_ms; }

    // All daemons that are there, or may come back.
    const std::map<int, NodeInfo>& nodes() const { return members_.all(); }
    std::set<std::string> hosts() const {
        std::set<std::string> all;
        for (auto& [id, node] : nodes()) all.insert(node.host);
        return all;
    }
    // All of them have answered the newest call of the roll.
    bool whole() const { return members_.whole(); }
    // The child of the root above a daemon; -1: none at the moment.
    int child_above(int node) const { return calls_.way_to(node); }
    // Right below the root.
    size_t children() const { return link_of_.size(); }
    Traffic traffic() const { return links_.traffic(); }

  private:
    void from(int link, const wire::Message& message);
    void from_stranger(int link, const wire::Message& message);
    void from_child(int child, const wire::Message& message);
    void closed(int link, Links::End how);
    void register_node(int link, const wire::NodeHello& hello);
    void attach(int link, const wire::Attach& attach);
    void add_child(int link, int child, uint32_t answered);
    void invite(int child);
    void here(int child, const wire::Here& answer);
    void missing(const wire::Missing& message);
    void gone(int node, bool silent);
    void lose(int node, bool with_another);
    void call_the_roll(const std::string& why);
    std::string name_of(int node);

    const Manners manners_;
    Links links_;
    Members members_;
    Orders orders_;
    uint64_t next_order_ = 0;
    std::map<int, int> child_of_, link_of_;  // link -> child of the root, and back
    std::set<int> harmless_;                 // links of daemons that leave, or were sent elsewhere
    RollCall calls_;
    bool patient_ = true;
    bool returns_ = true;  // who has lost its connection
};

}  // namespace fermata::tree
