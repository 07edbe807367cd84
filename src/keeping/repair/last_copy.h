// LastCopy makes a generation whole again on the nodes that are left, so that it can come to files before the
// job ends: what others had is rebuilt there from parity. It sends by a function, waits for nothing, and is
// asked again when something has been heard.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "keeping/orders/asking.h"
#include "keeping/orders/rebuilding.h"
#include "store/store.h"
#include "tree/tree.h"

namespace fermata::keeping {

class LastCopy {
  public:
    using Send = std::function<void(const wire::Message&)>;
    // `rounds`: how often nodes were told something with a number, in this life of the job.
    LastCopy(const store::Store& store, const tree::Tree& tree, Send send, uint32_t& rounds)
        : store_(store), tree_(tree), send_(std::move(send)), rounds_(rounds) {}

    void start(Generation generation);
    // It was not tried with the nodes that are there.
    bool worth_a_try() const { return hosts_ != tree_.hosts(); }
    void give_up(const std::string& why) { end(why); }
    bool under_way() const { return under_way_; }
    // False: it is none of these messages.
    bool heard(const wire::Message& message);
    // Does what can be done now. False: it waits for nodes.
    bool go_on();
    void say_again();

    // Once go_on() has said true.
    Generation generation() const { return generation_; }
    // By rank, a node that is there and has its image and what that needs; empty: it could not be had, and
    // why_not() is the reason: a line.
    std::vector<std::string> places() const;
    const std::string& why_not() const { return why_not_; }
    // A line on what was rebuilt.
    const std::string& rebuilt() const { return rebuilt_; }

  private:
    void ask();
    void look();
    void end(const std::string& why_not);
    std::vector<std::string> find_places(const store::GenerationInfo& wanted,
                                         const std::vector<store::GenerationInfo>& all) const;
    Rebuilding::Places where_to_rebuild(const store::GenerationInfo& wanted) const;

    const store::Store& store_;
    const tree::Tree& tree_;
    const Send send_;
    uint32_t& rounds_;
    bool under_way_ = false;
    std::set<std::string> hosts_;  // that were there at its start
    Generation generation_;
    std::vector<uint32_t> numbers_;  // of it, and of what it needs
    std::optional<Asking> asking_;
    std::optional<Rebuilding> rebuilding_;
    std::set<std::string> unable_;  // nodes that could not rebuild what they were to
    std::string trouble_;           // why
    std::vector<std::string> places_;
    std::string why_not_, rebuilt_;
};

}  // namespace fermata::keeping
