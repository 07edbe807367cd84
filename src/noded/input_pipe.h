// InputPipe is the standard input of rank 0, as far as it is no file: bytes from the root, into a pipe, as
// fast as the rank reads.
#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "wire/message.h"

namespace fermata::noded {

class InputPipe {
  public:
    InputPipe();
    // The rank's end, until it has been started.
    int ranks_end() const { return reader_.get(); }
    void started() { reader_.reset(); }
    // The rank has ended.
    void close();

    void take(const wire::Input& input);
    // One entry.
    void add_to(std::vector<pollfd>& fds) const;
    // The message for the root, if there is one.
    std::optional<wire::InputTaken> serve(short revents);

  private:
    Fd reader_, writer_;
    std::string waiting_;
    bool end_ = false;     // nothing comes behind what waits
    bool closed_ = false;  // the root has been told that nobody reads
};

}  // namespace fermata::noded
