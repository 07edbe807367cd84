// Writer appends to a job's journal. A journal that cannot be written (a full disk, a directory that is gone)
// costs the journal, never the job: nothing here throws or waits for anybody.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "files/folder.h"
#include "journal/kind.h"

namespace fermata::journal {

struct Event;

class Writer {
  public:
    // In this checkpoint directory, which must be there. The holder of the directory's lock is the only
    // writer.
    Writer(std::string directory, uint64_t job) : directory_(std::move(directory)), job_(job) {}

    // Now, by this machine's clock. Never throws.
    void note(Kind kind, nlohmann::json fields) noexcept;
    void note(Kind kind) noexcept;
    // Hears of every event as well: progress on a terminal, metrics.
    void also_tell(std::function<void(const Event&)> listener) { listeners_.push_back(std::move(listener)); }

  private:
    void append(const std::string& line);
    void begin();
    void rotate();

    const std::string directory_;
    const uint64_t job_;
    std::vector<std::function<void(const Event&)>> listeners_;
    files::Folder folder_;
    Fd file_;
    bool cut_off_ = false;  // the last line: the next one begins on a line of its own
    bool said_ = false;     // that it cannot be written
};
using WriterPointer = std::shared_ptr<Writer>;

}  // namespace fermata::journal
