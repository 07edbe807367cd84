// RestartChoice is the part of a restart before anything of a program is back: the root asks the nodes what
// they have, chooses a generation, and has images brought to where their ranks are. The root leads it:
// go_on() until that says true.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "keeping/account/means.h"
#include "keeping/account/round.h"
#include "keeping/orders/asking.h"
#include "keeping/orders/fetching.h"
#include "keeping/orders/rebuilding.h"
#include "level/choice.h"

namespace fermata::keeping {

class RestartChoice : public Round {
  public:
    explicit RestartChoice(Means& means) : means_(means) { begin(); }
    // Begins anew: the settings name other candidates.
    void begin() { over_ = means_.settings.candidates.empty(); }

    // There is something to be chosen, and it is not: until then no rank loads, and all that nodes have
    // stays.
    bool under_way() const { return !over_ || (asking_ && !chosen_); }
    bool heard(const wire::Message& message) override;
    // All of it stays until the choice is made.
    std::vector<Generation> in_use() const override { return {}; }
    // Does what can be done now. False: it waits for nodes.
    bool go_on();
    void say_again() override;

    // Once go_on() has said true. Gives null when nothing can be had; lost() says why.
    const store::GenerationInfo* chosen() const { return chosen_; }
    const std::string& lost() const { return lost_; }
    const std::string& taken() const { return taken_; }
    bool twice() const { return twice_; }
    // The nodes where ranks wait, by rank.
    std::vector<std::string> places() const;
    // Generations all of whose images are in local directories.
    std::vector<const store::GenerationInfo*> in_local() const;
    // Where nodes can be reached for what is in their memory.
    const Asking::Answers& answers() const { return answers_; }

  private:
    void ask();
    void compare();
    void decide();
    void fetch(const level::Choice::Verdict& verdict);
    bool rebuild();
    void rebuilt();
    void end();

    Means& means_;
    bool over_ = true;
    std::optional<Asking> asking_;         // the latest
    Asking::Answers answers_;              // to that, once all have answered
    std::optional<level::Choice> choice_;  // likewise
    level::Choice::Verdict verdict_;
    std::string damage_;
    std::optional<Fetching> fetching_;
    std::optional<Rebuilding> rebuilding_;
    std::set<uint32_t> rebuilt_;  // generations for which that was tried
    std::string from_parity_;     // a line on what came of it
    const store::GenerationInfo* chosen_ = nullptr;
    std::string lost_, taken_;
    bool twice_ = false;
};

}  // namespace fermata::keeping
