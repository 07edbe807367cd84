// The Engine is the PMI-1 server of one node and one world: bytes of ranks in, answers out, and one fence per
// barrier. A rank is served through a socket pair whose other end it finds by PMI_FD.
//
// Whatever a rank says, the answer is an answer or a fault of that rank: never a crash, and nobody is left
// waiting in a barrier that cannot end.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pmi/service.h"

namespace fermata::pmi {

class Command;

class Engine final : public Service {
  public:
    // Throws Error if it cannot be a world.
    explicit Engine(World world);

    // Takes bytes from the rank's socket. Throws Error for a rank that is not of this node.
    void from_rank(Rank rank, std::string_view bytes);

    // PMI_RANK, PMI_SIZE …; the daemon adds PMI_FD.
    std::vector<std::pair<std::string, std::string>> environment(Rank rank) const override;
    void result(const Fence& whole) override;
    void asked(const Ask& ask) override;  // PMI-1 has no such thing: answers with a fault
    void answered(const Answer& answer) override;
    void ended(Rank rank, const std::string& how) override;
    Stage stage(Rank rank) const override;

  private:
    struct Client {
        Stage stage = Stage::silent;
        std::string ended;      // how; empty = it runs
        bool waiting = false;   // in the barrier
        bool spawning = false;  // amid the lines of a spawn
        int errors = 0;         // it has been told
        std::string line;       // begun, not yet ended
    };
    // A command of a rank that has said init.
    struct Entry {
        std::string_view name;
        void (Engine::*obey)(Rank, Client&, const Command&);
    };
    static const std::vector<Entry>& entries();

    Client& client(Rank rank);
    void obey(Rank rank, Client& client, const std::string& line);
    void refuse(Rank rank, Client& client, const std::string& why);
    void say(Rank rank, const std::string& line);
    void say_error(Rank rank, Client& client);

    void init(Rank rank, Client& client, const Command& command);
    void get_maxes(Rank rank, Client& client, const Command& command);
    void get_appnum(Rank rank, Client& client, const Command& command);
    void get_kvsname(Rank rank, Client& client, const Command& command);
    void get_universe_size(Rank rank, Client& client, const Command& command);
    void put(Rank rank, Client& client, const Command& command);
    void get(Rank rank, Client& client, const Command& command);
    void barrier_in(Rank rank, Client& client, const Command& command);
    void finalize(Rank rank, Client& client, const Command& command);
    void abort(Rank rank, Client& client, const Command& command);
    void spawn(Rank rank, Client& client, const Command& command);
    void name_service(Rank rank, Client& client, const Command& command);

    Fence part(uint32_t ranks, std::string data, std::string fault) const;
    void take(const std::string& records);
    void fail_fence(const std::string& why);
    void tell_waiting();

    World world_;
    std::map<Rank, Client> clients_;
    std::unordered_map<std::string, std::string> values_;
    size_t bytes_put_ = 0;
    std::string puts_;        // since the last fence, as the next one carries them
    uint32_t fence_ = 0;      // number of the next
    uint32_t waiting_ = 0;    // ranks in it
    bool fence_out_ = false;  // its part has been handed up
    std::string broken_;      // why no fence will be whole any more
};

}  // namespace fermata::pmi
