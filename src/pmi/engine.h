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
    explicit Engine(World world);

    // What came from the rank's socket. For a rank that is not of this node: Error.
    void from_rank(uint32_t rank, std::string_view bytes);
    // The rank's socket is at its end (it has closed it, or died; ended() follows, or has been).
    void hung_up(uint32_t rank);

    // PMI_RANK, PMI_SIZE …; the daemon adds PMI_FD.
    std::vector<std::pair<std::string, std::string>> environment(uint32_t rank) const override;
    void result(const Fence& whole) override;
    void asked(const Ask& ask) override;  // PMI-1 has no such thing: answers with a fault
    void answered(const Answer& answer) override;
    void ended(uint32_t rank, const std::string& how) override;
    Stage stage(uint32_t rank) const override;

  private:
    struct Client {
        Stage stage = Stage::silent;
        bool waiting = false;  // in the barrier
        bool gone = false;     // the process has ended
        std::string line;      // begun, not yet ended
    };

    Client& client(uint32_t rank);
    void obey(uint32_t rank, Client& client, const std::string& line);
    void answer(uint32_t rank, const Command& command);
    void put(uint32_t rank, const Command& command);
    void get(uint32_t rank, const Command& command);
    void enter(uint32_t rank, Client& client);
    void refuse(uint32_t rank, Client& client, const std::string& why);
    void fail_fence(const std::string& why);
    void say(uint32_t rank, const std::string& line);

    World world_;
    std::map<uint32_t, Client> clients_;
    std::unordered_map<std::string, std::string> values_;
    std::string puts_;        // since the last fence, as they go into the next one
    uint32_t fence_ = 0;      // number of the next
    uint32_t waiting_ = 0;    // ranks in it
    bool fence_out_ = false;  // its part has been handed up
    std::string broken_;      // why no fence will be whole any more
};

}  // namespace fermata::pmi
