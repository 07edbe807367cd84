// MemoryLevel is the node daemon's part of generations in the memory of nodes: their directories, what is
// left of them for a restart, and copies of them to files (src/level).
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "level/copier.h"
#include "level/memory.h"
#include "wire/message.h"

namespace fermata::noded {

class MemoryLevel {
  public:
    struct Job {
        uint64_t number = 0;
        std::string node;       // the name of this one
        std::string ckpt_dir;   // of files
        std::string image_key;  // file of the key; "" = none
    };
    // Removes what dead jobs have left on this node.
    MemoryLevel(Job job, std::function<void(const wire::Message&)> up);

    // The ranks of this node, as far as they are known.
    struct Ranks {
        std::vector<int> pids;
        std::vector<int32_t> waiting;  // for an image
    };
    // False: the message is not for this. Nothing throws: what goes wrong is said upwards.
    bool from_root(const wire::Message& message, const Ranks& here);
    // What is for ranks, with the directories of this node.
    wire::Message filled(wire::Message message) const;

    void add_to(std::vector<pollfd>& fds) const { fds.push_back({copier_.descriptor(), POLLIN, 0}); }
    // Whatever has become ready.
    void serve();

  private:
    level::Memory& memory();
    void make_room(const wire::MakeRoom& order, const Ranks& here);
    void look_for(const wire::AskCopies& question, const Ranks& here);
    void copy(const wire::Flush& order);

    const Job job_;
    const std::function<void(const wire::Message&)> up_;
    std::optional<level::Memory> memory_;  // once it is used
    level::Copier copier_;
};

}  // namespace fermata::noded
