// LocalCopies are copies of what is in the memory of nodes to their local directories: each node takes what
// is its own.
#pragma once

#include "keeping/levels/kind.h"

namespace fermata::keeping {

class LocalCopies : public Copies {
  public:
    using Copies::Copies;
    static Kind kind();

    const char* word() const override { return "local"; }
    const char* name() const override { return "copies in local directories"; }
    std::vector<Generation> coming_to(Medium medium) const override;
    bool reads_manifest() const override { return is_wanted(means_.settings.levels); }
    void add_status(nlohmann::json& all) const override;
    // Memory comes first, and something is copied from there.
    static bool is_wanted(const level::Levels& levels) { return levels.memory && levels.local; }

  protected:
    std::optional<double> period() const override;
    std::vector<Generation> missing(Generation newest) const override;
    Order order(const std::vector<Generation>& generations, uint32_t number) override;
    std::optional<Answer> answer_in(const wire::Message& message) const override;
    void count(RoundOver& over) override;
    void tell(const RoundOver& over) override;
};

}  // namespace fermata::keeping
