// LastCopy makes a generation whole again on the nodes that are left, so that it can come to files before the
// job ends: what others had is rebuilt there from parity. The root leads it then: start(), and go_on() until
// that says true.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "keeping/account/means.h"
#include "keeping/account/round.h"
#include "keeping/orders/asking.h"
#include "keeping/orders/rebuilding.h"

namespace fermata::keeping {

class LastCopy : public Round {
  public:
    explicit LastCopy(Means& means) : means_(means) {}

    void start(Generation generation);
    // True if it was not tried yet with the nodes that are there.
    bool worth_a_try() const { return hosts_ != means_.nodes.hosts(); }
    void give_up(const std::string& why) { end(why); }
    bool heard(const wire::Message& message) override;
    // Nothing goes from nodes while the root leads the end of the job.
    std::vector<Generation> in_use() const override { return {}; }
    // Does what can be done now. False: it waits for nodes.
    bool go_on();
    void say_again() override;

    // Once go_on() has said true.
    Generation generation() const { return generation_; }
    // The images are on nodes other than those that had them, or were rebuilt: account.whole says where.
    bool made_whole() const;
    // A line why it could not be had.
    const std::string& why_not() const { return why_not_; }
    // A line on what was rebuilt.
    const std::string& rebuilt() const { return rebuilt_; }

  private:
    void ask();
    void look();
    void end(const std::string& why_not);
    std::vector<std::string> find_places(const store::GenerationInfo& wanted,
                                         const std::vector<store::GenerationInfo>& all) const;
    Rebuilding::Places where_to_rebuild(const store::GenerationInfo& wanted) const;

    Means& means_;
    bool under_way_ = false;
    std::set<std::string> hosts_;  // that were there at its start
    Generation generation_;
    std::vector<uint32_t> numbers_;  // of it, and of what it needs
    std::optional<Asking> asking_;
    std::optional<Rebuilding> rebuilding_;
    std::set<std::string> unable_;  // nodes that could not rebuild what they were to
    std::string trouble_;           // why
    std::string why_not_, rebuilt_;
};

}  // namespace fermata::keeping
