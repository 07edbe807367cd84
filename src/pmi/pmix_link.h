// PmixLink is the daemon's end of the connection with its PMIx helper (libexec/fermata/pmix), which serves
// the ranks of one world on one node with libpmix. It turns the helper's frames into the same events as the
// PMI-1 Engine's. The bytes: docs/formats/pmix-helper.md.
//
// In order: start the helper with one end of a socket pair as descriptor 3, feed from_helper() and write
// ToHelper events until ready(); start the ranks with environment(rank); at the end close the socket (the
// helper removes its directory and leaves), or call helper_ended() when it did so by itself.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pmi/helper_message.h"
#include "pmi/service.h"

namespace fermata::pmi {

class PmixLink final : public Service {
  public:
    // `directory`: exists, 0700, of this job on this node; the helper makes and removes one of its own in it.
    // Throws Error if it cannot be a world.
    PmixLink(World world, const std::string& directory);

    // Whether the rank's process is on its way out (base/is_ending.h). libpmix may lose it, and hand over a
    // fence without it, before ended() can be called.
    std::function<bool(Rank)> is_ending;

    void from_helper(std::string_view bytes);
    // Its socket is at its end: every rank has failed that has not finalized.
    void helper_ended(const std::string& how);
    // Ranks can be started: environment() is known.
    bool ready() const { return ready_; }

    std::vector<std::pair<std::string, std::string>> environment(Rank rank) const override;
    void result(const Fence& whole) override;
    void asked(const Ask& ask) override;
    void answered(const Answer& answer) override;
    void ended(Rank rank, const std::string& how) override;
    Stage stage(Rank rank) const override;

  private:
    using Among = std::vector<RankRange>;

    bool is_here(Rank rank) const { return stages_.count(rank) > 0; }
    void tell(const helper::Message& message);
    void take(const helper::Ready& ready);
    void take(const helper::Entered& entered);
    void take(const helper::Request& request);
    void take(const helper::Publication& publication);
    void take(const helper::Reached& reached);
    void take(const helper::Aborted& aborted);
    void take(const helper::Failed& failed);
    // Messages that only a daemon sends.
    template <class Message>
    void take(const Message& message);
    uint32_t here(const Among& among) const;
    uint32_t size(const Among& among) const;
    std::optional<Rank> lost_among(const Among& among) const;
    Fence fault(FenceName name, uint32_t of, std::string why) const;
    void check_start();
    void break_start(const std::string& why);
    void give_up(Rank rank);

    World world_;
    helper::Decoder decoder_;
    bool ready_ = false;
    bool helper_gone_ = false;
    std::map<Rank, Stage> stages_;
    std::map<Rank, std::vector<std::pair<std::string, std::string>>> environments_;
    std::set<Rank> ended_;                     // without having finalized
    std::string never_;                        // a rank that ended before it came to MPI_Init, and how
    std::map<FenceName, uint32_t> open_;       // the helper's number
    std::map<FenceName, std::string> failed_;  // before the helper spoke of them: why
    std::map<Among, uint32_t> next_;           // number of the fence without a result
    std::string broken_;                       // why MPI_Init cannot end any more
};

}  // namespace fermata::pmi
