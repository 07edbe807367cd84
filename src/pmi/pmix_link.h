// PmixLink is the daemon's end of the connection with its PMIx helper (libexec/fermata/pmix), which serves
// the ranks of one world on one node with libpmix. It turns the helper's frames into the same events as the
// PMI-1 Engine's. The bytes: docs/formats/pmix-helper.md.
//
// In order: start the helper with one end of a socket pair as descriptor 3, feed from_helper() and write
// ToHelper events until ready(); start the ranks with environment(rank); at the end close the socket (the
// helper removes its directories and leaves) or call helper_ended() when it did so by itself.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pmi/service.h"

namespace fermata::pmi {

class PmixLink final : public Service {
  public:
    // `directory`: exists, 0700, of this job on this node; the helper makes and removes one of its own in it.
    PmixLink(World world, const std::string& directory);

    void from_helper(std::string_view bytes);
    // Its socket is at its end: every rank has failed that has not finalized.
    void helper_ended(const std::string& how);
    // Ranks can be started: environment() is known.
    bool ready() const { return ready_; }

    std::vector<std::pair<std::string, std::string>> environment(uint32_t rank) const override;
    void result(const Fence& whole) override;
    void asked(const Ask& ask) override;
    void answered(const Answer& answer) override;
    void ended(uint32_t rank, const std::string& how) override;
    Stage stage(uint32_t rank) const override;

  private:
    World world_;
    bool ready_ = false;
    bool broken_ = false;
    std::string bytes_;  // of a frame that is not whole yet
    std::map<uint32_t, Stage> stages_;
    std::map<uint32_t, std::vector<std::pair<std::string, std::string>>> environments_;
    std::map<FenceName, uint32_t> fences_;               // open: the helper's number
    std::map<std::vector<Range>, uint32_t> next_fence_;  // by participants
};

}  // namespace fermata::pmi
