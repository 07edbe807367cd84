// RankStream is the daemon's end of a rank's standard output or error.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "noded/one_output.h"
#include "noded/output_lines.h"

namespace fermata::noded {

class RankStream {
  public:
    // Makes the pipe; the rank's end is to be closed once the rank has been started.
    Fd make();

    // One entry. It is not read while much of it waits.
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
    bool parted() const { return both_.parted(); }

    std::string take(int64_t now_ms) { return lines_.take(now_ms); }
    bool over() const { return !pipe_ && lines_.size() == 0; }
    // ms that poll may take; -1: as long as it likes.
    int rest(int64_t now_ms) const { return lines_.rest(now_ms); }

  private:
    void end();
    void read_all();
    void add(std::string_view bytes, int64_t now_ms);
    Fd pipe_;
    OutputLines lines_;
    OneOutput both_;
    int64_t last_ = 0;  // ms; something came
};

}  // namespace fermata::noded
