// Round is something that the nodes of a job are told to do with its generations. The root asks all rounds in
// one loop (keeper.h): a round sends an order, hears who has done it, and goes on when it is asked again. No
// round waits for anything, and all run in one thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/generation.h"
#include "base/medium.h"
#include "wire/message.h"

namespace fermata::keeping {

// Says what is true for every round at one moment.
struct Moment {
    int64_t now = 0;             // ms
    std::set<std::string> here;  // nodes that may still answer
    bool mending = false;        // damage is looked for, or mended
    bool writing = false;        // nodes write copies or parity into their memory
    bool to_files = false;       // nodes copy to a directory outside
};

class Round {
  public:
    virtual ~Round() = default;
    // Takes an answer; false: this is none of this round's.
    virtual bool heard(const wire::Message& message) = 0;
    // Sends the order under way again, which may not have reached every node.
    virtual void say_again() = 0;
    // Generations that must not go meanwhile.
    virtual std::vector<Generation> in_use() const = 0;
    // The generations in use that come to this medium of nodes, some of which have them already.
    virtual std::vector<Generation> coming_to(Medium) const { return {}; }
    // Ends what is over and begins what is due. True: something has ended, and generations that are not
    // needed any more may go. (The root itself leads what goes before and after a job's run.)
    virtual bool turn(const Moment&) { return false; }
    // Adds its part of `fermata status`.
    virtual void add_status(nlohmann::json&) const {}
};

}  // namespace fermata::keeping
