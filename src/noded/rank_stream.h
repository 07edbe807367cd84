// RankStream is the daemon's end of a rank's standard output or error.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "noded/one_output.h"
#include "noded/output_lines.h"
#include "transfer/streams.h"

namespace fermata::noded {

class RankStream {
  public:
    // Makes the pipe; the rank's end is to be closed once the rank has been started.
    Fd make();

    // One entry, which is not read while much of it waits.
    void add_to(std::vector<pollfd>& fds) const;
    void serve(short revents, int64_t now_ms);
    // The rank has died at `since_ms`: what it has left behind, and says nothing, is not waited for longer
    // than a moment.
    void rank_has_died(int64_t since_ms, int64_t now_ms);
    void drop();  // what is still to come, too

    // As one_output.h has them.
    void copy_is_made();
    void copy_is_gone() { both_.copy_is_gone(); }
    void copy_goes_on(const std::string& copys, int64_t now_ms);
    // A copy has the place of a rank of another node, of which so many bytes are on their way.
    void goes_on_after(uint64_t written) { elsewhere_ = handed_up_ = written; }
    bool parted() const { return both_.parted(); }
    // All that the rank writes from now on waits until what it stands on has reached its copy, by this
    // stream.
    void waits_for(std::shared_ptr<transfer::StreamMemory> stream) { stream_ = std::move(stream); }
    // The rank has died: its copy will write what it has still to wait for.
    void forget_what_waits();
    // Counts what the rank has written up to now: its process stands.
    uint64_t written();
    // Counts what was taken, from the same beginning.
    uint64_t handed_up() const { return handed_up_; }

    std::string take(int64_t now_ms);
    bool over() const { return !pipe_ && lines_.size() == 0 && waiting_.empty(); }
    // ms that poll may take; -1: as long as it likes.
    int rest(int64_t now_ms) const { return waiting_.empty() ? lines_.rest(now_ms) : kWaitMs; }

  private:
    void end();
    void read_all();
    void add(std::string_view bytes, int64_t now_ms);
    void let_go(int64_t now_ms);
    static constexpr int kWaitMs = 2;
    struct Waiting {
        uint64_t at;  // of the stream, when it came
        std::string bytes;
    };
    Fd pipe_;
    OutputLines lines_;
    OneOutput both_;
    int64_t last_ = 0;  // ms; something came
    std::shared_ptr<transfer::StreamMemory> stream_;
    std::deque<Waiting> waiting_;
    uint64_t handed_up_ = 0;
    std::optional<uint64_t> elsewhere_;  // written there, until the copy has gone on
};

}  // namespace fermata::noded
