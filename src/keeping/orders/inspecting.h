// Inspecting is one round of nodes looking at their shares of generations in files, as the root sees it: who
// has answered, and what was found. It sends nothing and waits for nothing.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/invariant.h"
#include "wire/message.h"

namespace fermata::keeping {

class Inspecting {
  public:
    explicit Inspecting(wire::Inspect order) : order_(std::move(order)) {
        always(order_.number > 0, "an order to inspect without a number");
        for (const wire::Repair& share : order_.shares) waiting_.insert(share.host);
    }
    const wire::Inspect& order() const { return order_; }
    // False: it is of another round.
    bool heard(const wire::Inspected& answer) {
        if (answer.number != order_.number) return false;
        if (waiting_.erase(answer.host) == 0) return true;  // said again
        mended_.insert(mended_.end(), answer.mended.begin(), answer.mended.end());
        left_.insert(left_.end(), answer.left.begin(), answer.left.end());
        return true;
    }
    // Nodes that are gone answer no more: what they were to look at was not.
    void only(const std::set<std::string>& hosts) {
        for (const wire::Repair& share : order_.shares)
            if (waiting_.count(share.host) && !hosts.count(share.host))
                left_.push_back({share.generation, -1,
                                 "a part of it in files was not looked at: the node daemon of " + share.host +
                                     " is gone"});
        std::erase_if(waiting_, [&](const std::string& host) { return hosts.count(host) == 0; });
    }
    bool done() const { return waiting_.empty(); }
    const std::vector<wire::Flaw>& mended() const { return mended_; }
    const std::vector<wire::Flaw>& left() const { return left_; }

  private:
    const wire::Inspect order_;
    std::set<std::string> waiting_;
    std::vector<wire::Flaw> mended_, left_;
};

}  // namespace fermata::keeping
