// ParityRounds make parity of generations in the memory of nodes (src/erasure): nodes of one group together
// bear losses.
#pragma once

#include "erasure/scheme.h"
#include "keeping/levels/kind.h"

namespace fermata::keeping {

class ParityRounds : public Copies {
  public:
    using Copies::Copies;
    static Kind kind();

    std::string place_on(const std::vector<std::string>& nodes) override;
    const char* word() const override { return "rs"; }
    const char* name() const override { return "parity"; }
    bool writes_memory() const override { return true; }
    bool turn(const Moment& moment) override;
    void add_status(nlohmann::json& all) const override;

  protected:
    std::optional<double> period() const override;
    std::vector<Generation> missing(Generation newest) const override {
        return means_.account.book.to_copy_from_memory(newest, level::kParity);
    }
    Order order(const std::vector<Generation>& generations, uint32_t number) override;
    std::optional<Answer> answer_in(const wire::Message& message) const override;
    // The others wait for what does not come, until the next order.
    bool ends_with_first_error() const override { return true; }
    void count(RoundOver& over) override;
    void tell(const RoundOver& over) override;

  private:
    // Scheme of the parity; none: nobody wants any.
    std::optional<erasure::Scheme> scheme() const;
    std::vector<std::vector<std::string>> groups_;  // of nodes
};

}  // namespace fermata::keeping
