// MemoryLevel is the node daemon's part of generations in the memory of nodes and in their local directories:
// what is there, what is left for a restart, copies of it to files (src/level), and between memory and local
// directories of whichever nodes (src/transfer).
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/background.h"
#include "base/medium.h"
#include "level/copier.h"
#include "level/memory.h"
#include "noded/arrivals.h"
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
        const transfer::Streams* streams = nullptr;                           // that begin here
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
    // A message for ranks, with the directories of this node.
    wire::Message filled(wire::Message message) const;

    // ---- for copies on other nodes

    // Where images of this node's memory are read, and where streams begin that last longer than these.
    std::string images();
    std::string streams();
    // What makes a copy of this order has to read, and its directory.
    void expect(const wire::StartCopy& order);
    std::string directory_of(Generation generation) { return memory().directory_of(generation); }
    std::optional<Arrivals::Arrived> arrived() { return arrivals_.take(); }

    void add_to(std::vector<pollfd>& fds) const {
        arrivals_.add_to(fds);
        for (int one :
             {copier_.descriptor(), looking_.descriptor(), inspecting_.descriptor(),
              shelf(Medium::memory).fetcher.descriptor(), shelf(Medium::local).fetcher.descriptor()})
            fds.push_back({one, POLLIN, 0});
        parity_.add_to(fds);
    }
    // Whatever has become ready.
    void serve();

  private:
    // The state of one medium on this node, once that is used.
    struct Shelf {
        std::optional<level::Memory> memory;
        std::unique_ptr<transfer::Server> server;
        uint32_t last_fetch = 0;  // orders that were begun: each is done once
        transfer::Fetcher fetcher;
        std::string addresses() const { return server ? server->addresses() : ""; }
    };
    Shelf& shelf(Medium medium) { return shelves_[static_cast<size_t>(medium)]; }
    const Shelf& shelf(Medium medium) const { return shelves_[static_cast<size_t>(medium)]; }
    level::Memory& memory(Medium medium = Medium::memory);
    void keep(Medium medium, const std::vector<Generation>& generations);
    level::Memory* found(Medium medium);
    void make_room(const wire::MakeRoom& order, const Ranks& here);
    void look_for(const wire::AskCopies& question, const Ranks& here);
    void answered(const wire::Copies& answer);
    void inspect(const wire::Inspect& order);
    void copy(const wire::Flush& order);
    void fetch(const wire::Fetch& order);
    bool parity(const wire::Message& message);
    void relieve();
    OwnNode own_node() const;

    const Job job_;
    const std::function<void(const wire::Message&)> up_;
    uint32_t last_copy_ = 0, last_inspection_ = 0;  // orders that were begun: each is done once
    int64_t relieved_ms_ = 0;                       // when room was looked at last
    std::unique_ptr<transfer::Server> streams_;
    Arrivals arrivals_;
    level::Copier copier_;
    std::array<Shelf, std::size(kMediums)> shelves_;  // by medium
    ParityLevel parity_{up_};
    std::atomic<bool> leaving_{false};
    uint32_t question_ = 0;  // that is looked for, or the last one
    std::optional<std::pair<wire::AskCopies, Ranks>> next_question_;
    Background<wire::Copies> looking_;  // these two last: they end first
    Background<wire::Inspected> inspecting_;
};

}  // namespace fermata::noded
