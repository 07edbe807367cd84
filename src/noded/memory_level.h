// MemoryLevel is the node daemon's part of generations in the memory of nodes: their directories, what is
// left of them for a restart, copies of them to files (src/level), and from node to node (src/transfer).
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/background.h"
#include "level/copier.h"
#include "level/memory.h"
#include "noded/parity_level.h"
#include "transfer/fetcher.h"
#include "transfer/server.h"
#include "wire/message.h"

namespace fermata::noded {

class MemoryLevel {
  public:
    struct Job {
        uint64_t number = 0;
        std::string node;                                                     // the name of this one
        std::string ckpt_dir;                                                 // of files
        std::string image_key;                                                // file of the key; "" = none
        wire::Key key{};                                                      // of the job
        std::function<int64_t()> silent_ms = [] { return int64_t{30'000}; };  // then another node is lost
    };
    // Removes what dead jobs have left on this node.
    MemoryLevel(Job job, std::function<void(const wire::Message&)> up);
    ~MemoryLevel() { leaving_ = true; }

    // The ranks of this node, as far as they are known.
    struct Ranks {
        std::vector<int> pids;
        std::vector<int32_t> waiting;  // for an image
    };
    // False: the message is not for this. Nothing throws: what goes wrong is said upwards.
    bool from_root(const wire::Message& message, const Ranks& here);
    // What is for ranks, with the directories of this node.
    wire::Message filled(wire::Message message) const;

    void add_to(std::vector<pollfd>& fds) const {
        for (int one : {copier_.descriptor(), fetcher_.descriptor(), looking_.descriptor()})
            fds.push_back({one, POLLIN, 0});
        parity_.add_to(fds);
    }
    // Whatever has become ready.
    void serve();

  private:
    level::Memory& memory();
    std::string addresses() const { return server_ ? server_->addresses() : ""; }
    void make_room(const wire::MakeRoom& order, const Ranks& here);
    void keep(const wire::KeepCopies& order);
    void look_for(const wire::AskCopies& question, const Ranks& here);
    void copy(const wire::Flush& order);
    void fetch(const wire::Fetch& order);
    bool parity(const wire::Message& message);
    OwnNode own_node() const;

    const Job job_;
    const std::function<void(const wire::Message&)> up_;
    std::optional<level::Memory> memory_;       // once it is used
    std::unique_ptr<transfer::Server> server_;  // likewise
    uint32_t last_copy_ = 0, last_fetch_ = 0;   // orders that were begun: each is done once
    level::Copier copier_;
    transfer::Fetcher fetcher_;
    ParityLevel parity_{up_};
    std::atomic<bool> leaving_{false};
    Background<wire::Copies> looking_;  // the last: it ends first
};

}  // namespace fermata::noded
