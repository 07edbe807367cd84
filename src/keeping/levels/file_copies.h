// FileCopies are copies from nodes to files: to the checkpoint directory, which outlives them.
#pragma once

#include "keeping/levels/kind.h"

namespace fermata::keeping {

class FileCopies : public Copies {
  public:
    using Copies::Copies;
    static Kind kind();

    const char* word() const override { return "files"; }
    const char* name() const override { return "copies in files"; }
    bool goes_to_files() const override { return true; }
    // The newest generation went to files directly: the next copy is due one period from now.
    void in_files(int64_t now) { since_ = now; }
    // Copies this one at full speed; nothing happens when it cannot be had.
    void copy_now(Generation generation, int64_t now);
    // Lets the one under way go on at full speed.
    void hurry();
    bool has_failed() const { return failed_; }  // the last one
    void add_status(nlohmann::json& all) const override;

  protected:
    Generation newest() const override { return means_.account.book.newest_on_nodes(); }
    bool is_due(Generation newest, int64_t now) override;
    std::optional<double> period() const override;
    std::vector<Generation> missing(Generation newest) const override {
        return means_.account.book.to_copy(newest, store::LevelName::files);
    }
    Order order(const std::vector<Generation>& generations, uint32_t number) override;
    std::optional<Answer> answer_in(const wire::Message& message) const override;
    void count(RoundOver& over) override;
    void failed(const RoundOver& over) override;
    void tell(const RoundOver& over) override;

  private:
    uint64_t limit() const;

    int64_t since_ = 0;  // ms; the newest generation in files
    bool at_full_speed_ = false, failed_ = false;
};

}  // namespace fermata::keeping
