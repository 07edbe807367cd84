// Where a job stands that is being restarted: the phases of ranks, merged. A merged phase is a message of the
// same kind, so that daemons below daemons merge as the root does.
#pragma once

#include <map>
#include <optional>

#include "wire/message.h"

namespace fermata::tree {

// The phase of who is furthest behind among both. The order of merging does not matter.
wire::Phase merged(const wire::Phase& one, const wire::Phase& other);

// The newest phase of each child: of a rank at a node daemon, of a node daemon at the root.
template <class Child>
class RestartPhases {
  public:
    void said(Child child, const wire::Phase& phase) { newest_.insert_or_assign(child, phase); }
    void gone(Child child) { newest_.erase(child); }
    void clear() { newest_.clear(); }
    // Gives none when no child has said one.
    std::optional<wire::Phase> furthest_behind() const {
        std::optional<wire::Phase> all;
        for (auto& [child, phase] : newest_) all = all ? merged(*all, phase) : phase;
        return all;
    }

  private:
    std::map<Child, wire::Phase> newest_;
};

}  // namespace fermata::tree
