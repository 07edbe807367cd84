// Fetching is one round of copies from node to node, as the root sees it: who was told to fetch what, who has
// answered, and what could not be had. It sends nothing and waits for nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "wire/message.h"

namespace fermata::keeping {

class Fetching {
  public:
    explicit Fetching(wire::Fetch order);

    const wire::Fetch& order() const { return order_; }
    uint64_t bytes() const { return bytes_; }
    // False: it is of another round.
    bool heard(const wire::Fetched& answer);
    // Nodes that are gone answer no more.
    void only(const std::set<std::string>& hosts);
    bool done() const { return waiting_.empty(); }

    // The errands that came to nothing.
    struct Failed {
        wire::Errand errand;
        std::string why;
    };
    const std::vector<Failed>& failed() const { return failed_; }

  private:
    void fail(const std::string& to, const std::optional<NodePlace>& from, const std::string& why);
    const wire::Fetch order_;
    std::set<std::string> waiting_;
    uint64_t bytes_ = 0;
    std::vector<Failed> failed_;
};

}  // namespace fermata::keeping
