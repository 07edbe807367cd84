// BuddyCopies are second copies in the memory of other nodes: each node's images go to its buddy.
#pragma once

#include "keeping/levels/kind.h"

namespace fermata::keeping {

class BuddyCopies : public Copies {
  public:
    using Copies::Copies;
    static Kind kind();

    std::string place_on(const std::vector<std::string>& nodes) override;
    const char* word() const override { return "buddy"; }
    const char* name() const override { return "second copies"; }
    std::string warning() const override { return means_.account.buddies.warning(); }
    bool writes_memory() const override { return true; }
    bool reads_manifest() const override { return means_.settings.levels.buddy.has_value(); }
    void add_status(nlohmann::json& all) const override;

  protected:
    std::optional<double> period() const override;
    std::vector<Generation> missing(Generation newest) const override;
    Order order(const std::vector<Generation>& generations, uint32_t number) override;
    std::optional<Answer> answer_in(const wire::Message& message) const override;
    void count(RoundOver& over) override;
    void failed(const RoundOver& over) override { means_.planned.buddies_failed(over.why_not); }
    void tell(const RoundOver& over) override;
};

}  // namespace fermata::keeping
