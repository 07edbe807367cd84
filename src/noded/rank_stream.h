// RankStream is the daemon's end of a rank's standard output or error.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
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

    // The rank stands: all that it has written until now is what its copy has written, too.
    void copy_is_made();
    // The rank has died, and its copy writes here from now on; `copys`: what it has written since it was
    // made. Each byte comes once, whoever wrote it.
    void copy_goes_on(const std::string& copys, int64_t now_ms);

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
    int64_t last_ = 0;   // ms; something came
    uint64_t read_ = 0;  // bytes since the copy was made
    uint64_t skip_ = 0;  // bytes that have come already
};

}  // namespace fermata::noded
