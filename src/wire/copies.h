// Messages of ranks that have a copy: another process that follows what the rank was told, and takes its
// place when it dies (docs/internals/replicas.md). message.h has the rules of all messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/generation.h"
#include "wire/daemons.h"

namespace fermata::wire {

// First of a process that its rank has left, and that stays as the rank's copy.
struct Stays {
    static constexpr uint16_t kType = 92;
    std::string job_id;
    int32_t rank = -1;
    template <class F>
    void each(F&& f) {
        f(job_id, rank);
    }
};

// A copy that has its rank's place stands: where it has written the rank's output and error since it was
// made.
struct Wrote {
    static constexpr uint16_t kType = 93;
    int32_t output = -1, error = -1;  // descriptors of its process
    template <class F>
    void each(F&& f) {
        f(output, error);
    }
};

// To a rank: its copy has ended. To the daemon of a rank: likewise, it was on another node.
struct CopyGone {
    static constexpr uint16_t kType = 46;
    int32_t rank = -1;
    template <class F>
    void each(F&& f) {
        f(rank);
    }
};

// A rank has died and its copy speaks for it from now on; `how` it died.
struct Promoted {
    static constexpr uint16_t kType = 109;
    int32_t rank = -1;
    int32_t pid = 0;
    std::string host, how;
    template <class F>
    void each(F&& f) {
        f(rank, pid, host, how);
    }
};

// This rank gets no copy in this renewal, and why. The daemon puts in where the rank is.
struct NoCopy {
    static constexpr uint16_t kType = 110;
    int32_t rank = -1;
    std::string host, why;
    template <class F>
    void each(F&& f) {
        f(rank, host, why);
    }
};

// From a daemon: this process is the rank's copy.
struct CopyMade {
    static constexpr uint16_t kType = 111;
    int32_t rank = -1;
    int32_t pid = 0;
    std::string host;
    template <class F>
    void each(F&& f) {
        f(rank, pid, host);
    }
};

// From a daemon: that process has ended; `how`, and its last line ("": it has said none).
struct CopyEnded {
    static constexpr uint16_t kType = 112;
    int32_t rank = -1;
    int32_t pid = 0;
    std::string host, how, line;
    template <class F>
    void each(F&& f) {
        f(rank, pid, host, how, line);
    }
};

// To daemons: copies of these ranks are not wanted any more.
struct EndCopies {
    static constexpr uint16_t kType = 45;
    std::vector<Run> ranks;
    template <class F>
    void each(F&& f) {
        f(ranks);
    }
};

// To daemons: this process of a rank, or of its copy, is killed, as if the node had lost it (`--inject`).
struct Inject {
    static constexpr uint16_t kType = 47;
    uint32_t number = 0;
    int32_t rank = -1;
    int32_t pid = 0;
    template <class F>
    void each(F&& f) {
        f(number, rank, pid);
    }
};

// From the daemon that has it: it was killed.
struct Injected {
    static constexpr uint16_t kType = 113;
    uint32_t number = 0;
    int32_t rank = -1;
    int32_t pid = 0;
    bool copy = false;
    std::string host;
    template <class F>
    void each(F&& f) {
        f(number, rank, pid, copy, host);
    }
};

// ---- copies on other nodes

// From a rank that begins a stream for a copy on another node, and from such a copy that waits for it: the
// memory in which it is (base/stream_ring.h).
struct Streams {
    static constexpr uint16_t kType = 94;
    int32_t rank = -1;
    int32_t descriptor = -1;  // of its process
    template <class F>
    void each(F&& f) {
        f(rank, descriptor);
    }
};

// From a daemon: this rank's stream has begun, and can be fetched from `stream`, and its image is being
// written, to be fetched from `images`; how many bytes of output and error it had written by then.
struct Cloned {
    static constexpr uint16_t kType = 114;
    int32_t rank = -1;
    std::string host, images, stream;
    uint64_t output = 0, error = 0;
    template <class F>
    void each(F&& f) {
        f(rank, host, images, stream, output, error);
    }
};

// To the daemon that shall have the copy. Answered by CopyMade or NoCopy.
struct StartCopy {
    static constexpr uint16_t kType = 85;
    uint32_t world = 0;  // number of the copy's own, in which it is alone
    int32_t rank = -1;
    std::string host, images, stream;  // of the rank's daemon
    Generation generation;             // of the image
    uint32_t ranks = 0;                // of the job
    template <class F>
    void each(F&& f) {
        f(world, rank, host, images, stream, generation, ranks);
    }
};

// From the daemon of a rank whose copy is on another node: the rank was killed. Its output, and as much of
// its stream as it has written, have left before.
struct LeaderDied {
    static constexpr uint16_t kType = 115;
    int32_t rank = -1;
    int32_t pid = 0;
    std::string host, how;
    int32_t status = 0;  // as waitpid() has it
    template <class F>
    void each(F&& f) {
        f(rank, pid, host, how, status);
    }
};

// To the daemon of a copy: it has its rank's place; how many bytes of the rank's output and error have been
// written since the copy was made. Answered by Promoted.
struct TakePlace {
    static constexpr uint16_t kType = 86;
    int32_t rank = -1;
    uint64_t output = 0, error = 0;
    std::string how;  // the rank died
    template <class F>
    void each(F&& f) {
        f(rank, output, error, how);
    }
};

}  // namespace fermata::wire
