// Stream is one connection between two node daemons that have proved to each other that they know the job's
// key: frames out, frames in, each with its tag. For a thread of its own: everything waits, and every wait
// ends, when the other end is silent for too long or when this one has given up.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "transfer/frame.h"
#include "wire/auth.h"

namespace fermata::transfer {

// How long a wait may take, and whether it is to be given up at once; asked often, by any thread.
struct Patience {
    int64_t silent_ms = 30'000;
    std::function<bool()> given_up = [] { return false; };
};

// The connection is of no use any more.
struct StreamError : Error {
    using Error::Error;
};

class Stream {
  public:
    Stream(Fd socket, const wire::Handshake& shake, Patience patience);

    // Both throw StreamError.
    void send(Kind kind, View payload);
    struct Frame {
        Kind kind = Kind::end;
        View payload;  // until the next receive()
    };
    Frame receive(uint32_t most);

  private:
    int64_t from_now() const;  // ms: until then it may be silent
    void wait_for(short events, int64_t end) const;
    void write(View bytes);
    void fill(size_t size);

    Fd socket_;
    Patience patience_;
    wire::BulkSeal out_, in_;
    std::vector<std::byte> buffer_;
    size_t begin_ = 0, end_ = 0;  // what is there, and is not used
};

}  // namespace fermata::transfer
