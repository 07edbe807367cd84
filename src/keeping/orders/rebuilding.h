// Rebuilding finds out which images of a generation are lost with nodes, or broken in files, and can be made
// again from parity in the memory of nodes, and keeps account of the nodes that do it. It sends nothing and
// waits for nothing.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "keeping/orders/asking.h"
#include "store/generation.h"
#include "tree/ranks.h"

namespace fermata::keeping {

class Rebuilding {
  public:
    // A node for each rank.
    using Places = std::map<int32_t, std::string>;
    // Where ranks wait for their images.
    static Places places_of(const Asking::Answers& answers);
    // An order after which each rank's image, of `wanted` and of what it needs, is in the memory of some
    // node; what is rebuilt, in that of its rank's in `places`. Where the generation is in files, that means
    // the ranks whose images are broken there. Gives none when nothing is missing, or it cannot be had.
    // `all`: generations, among them what it needs.
    static std::optional<wire::Rebuild> order_for(const store::GenerationInfo& wanted,
                                                  const std::vector<store::GenerationInfo>& all,
                                                  const Asking::Answers& answers, const Places& places,
                                                  uint32_t number);
    // Ranks whose image of this generation is intact, by host.
    static std::map<std::string, tree::Ranks> intact_of(const store::GenerationInfo& info,
                                                        const Asking::Answers& answers);

    explicit Rebuilding(wire::Rebuild order);
    const wire::Rebuild& order() const { return order_; }
    // False: it is of another round.
    bool heard(const wire::Rebuilt& answer);
    // Nodes that are gone answer no more.
    void only(const std::set<std::string>& hosts);
    bool done() const { return waiting_.empty(); }
    // A line on what was rebuilt, one on what could not be; "" = nothing.
    std::string rebuilt() const;
    const std::string& error() const { return error_; }
    // Nodes that have not rebuilt all that they were to.
    const std::set<std::string>& unable() const { return unable_; }

  private:
    const wire::Rebuild order_;
    std::set<std::string> waiting_;
    std::set<std::string> unable_;
    std::vector<wire::Repair> done_;
    std::string error_;
};

}  // namespace fermata::keeping
