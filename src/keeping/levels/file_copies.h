// FileCopies is the root's part of copies from the memory of nodes to files: when one is due, how far the one
// under way is, and that what has come there counts from then on. It sends by a function and waits for
// nothing.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "keeping/account/auto_levels.h"
#include "keeping/account/settings.h"
#include "level/book.h"
#include "store/store.h"
#include "wire/message.h"

namespace fermata::keeping {

class FileCopies {
  public:
    using Send = std::function<void(const wire::Message&)>;
    FileCopies(const Settings& settings, AutoLevels& planned, store::Store& store, level::Book& book,
               Send send);

    // The time for a copy of the newest in memory has come; from now on the next one is waited for.
    bool take_due(Generation newest, int64_t now);
    // It has come again: what kept the last one from coming to files is mended.
    void due_again() { again_ = true; }
    // The newest went to files directly.
    void in_files(int64_t now) { since_ = now; }
    // Of what is to be copied so that this one is in files. `of_node`: bytes that a node has of it. Nothing
    // happens when it cannot be had.
    void start(Generation generation, std::vector<wire::Share> shares, double of_node);
    // At full speed.
    void start_now(Generation generation, std::vector<wire::Share> shares);
    // The one under way goes on at full speed.
    void hurry();
    bool heard(const wire::Message& message);
    void say_again();
    // `here`: nodes that may still answer. True: the one under way has come to its end.
    bool ended(const std::set<std::string>& here);

    bool busy() const { return copying_.has_value(); }
    bool failed() const { return failed_; }  // the last one
    // That was one of this generation, and a node could not do its part: what it has may be damaged. Once.
    Generation take_doubtful() { return std::exchange(doubtful_, Generation()); }
    // Being copied; none: nothing is.
    Generation under_way() const { return copying_ ? copying_->newest() : Generation(); }

  private:
    struct Copying {
        wire::Flush order;
        std::set<std::string> waiting;  // hosts that have not answered
        uint64_t bytes = 0;
        std::string error;
        double began = 0;
        bool doubtful = false;
        Generation newest() const { return order.generations.back(); }
    };
    void begin(Generation generation, std::vector<wire::Share> shares, uint64_t limit);
    void commit(const Copying& done);

    const Settings& settings_;
    AutoLevels& planned_;
    store::Store& store_;
    level::Book& book_;
    const Send send_;
    int64_t since_ = 0;  // ms; the newest generation in files
    std::optional<Copying> copying_;
    uint32_t copies_ = 0;
    bool failed_ = false, again_ = false;
    Generation doubtful_;
};

}  // namespace fermata::keeping
