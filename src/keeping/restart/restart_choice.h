// RestartChoice is the part of a restart before anything of a program is back: the root asks the nodes what
// they have, chooses a generation, and has images brought to where their ranks are. It sends by a function,
// waits for nothing, and is asked again when something has been heard.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "keeping/account/settings.h"
#include "keeping/orders/asking.h"
#include "keeping/orders/fetching.h"
#include "keeping/orders/rebuilding.h"
#include "level/choice.h"
#include "store/store.h"
#include "tree/tree.h"

namespace fermata::keeping {

class RestartChoice {
  public:
    using Send = std::function<void(const wire::Message&)>;
    // `rounds`: how often nodes were told to fetch something, in this life of the job.
    RestartChoice(const Settings& settings, const store::Store& store, const tree::Tree& tree, Send send,
                  uint32_t& rounds);

    // There is something to be chosen, and it is not: until then no rank loads, and all that nodes have
    // stays.
    bool under_way() const { return !over_ || (asking_ && !chosen_); }
    // False: it is none of these messages.
    bool heard(const wire::Message& message);
    // Does what can be done now. False: it waits for nodes.
    bool go_on();
    // What was said may not have reached everybody.
    void say_again();

    // Once go_on() has said true. None: nothing can be had, and lost() says why.
    const store::GenerationInfo* chosen() const { return chosen_; }
    const std::string& lost() const { return lost_; }
    const std::string& taken() const { return taken_; }
    bool twice() const { return twice_; }
    // By rank, where it is.
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

    const Settings& settings_;
    const store::Store& store_;
    const tree::Tree& tree_;
    const Send send_;
    uint32_t& rounds_;
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
