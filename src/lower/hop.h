// A rank's part of a renewal from Renew to Resume or Cancel (docs/internals/hop.md): the meeting with the
// other ranks, a child with a second lower half, and the hand-over to it. The agent's alone, all threads
// stopped. The process stands until the child has said that it could go on; a child that cannot is ended and
// no loss.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "lower/mpi_start.h"
#include "lower/saving.h"
#include "lower/together.h"
#include "split/process/child.h"
#include "tree/agent_link.h"
#include "wire/message.h"

namespace fermata::lower {

class Hop : public Together {
  public:
    // `orders` of the exchange of message logs: then nothing is done together with other ranks, whose
    // libraries may be in any state. Empty: there was none.
    Hop(const SavedRank& who, const MpiFacts& facts, const tree::AgentConfig& config,
        const wire::Renew& order, const wire::Bytes& orders);
    ~Hop() override;  // ends a child that was not let go

    void help() override;
    // Makes the child; `link` is what it will speak through. Lines for the user.
    std::vector<std::string> start(const tree::AgentLink& link);
    int descriptor() const override { return child_ ? child_->fd() : -1; }
    bool child_done() override;
    wire::Saved conclude() override;

    // The child goes on in this process's place, which ends.
    [[noreturn]] void let_go(tree::AgentLink& link);
    // Or stays as the rank's copy, with a connection of its own.
    bool stays() const { return stays_; }
    // Why it does not, though it was asked to.
    const std::string& no_copy() const { return no_copy_; }
    std::unique_ptr<tree::AgentLink> let_go_and_stay(tree::AgentLink& link);

  private:
    static void check_parent(const tree::AgentLink& link);
    void prepare_to_stay();
    void hand_over(tree::AgentLink& link);
    void make_child(const tree::AgentLink& link);

    const SavedRank& who_;
    const MpiFacts& facts_;
    const tree::AgentConfig& config_;
    const wire::Renew order_;
    const std::string orders_;
    std::unique_ptr<tree::AgentLink> child_;  // what it says and hears before it has the real one
    struct {
        std::string name, version;
    } library_;  // the child's
    pid_t pid_ = -1;
    Fd process_;                       // pidfd
    split::process::Signals waiting_;  // that the child has
    std::vector<std::string> warnings_;
    bool stays_ = false;  // this process will be the child's copy
    std::string no_copy_;
};

}  // namespace fermata::lower
