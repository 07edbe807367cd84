// These are the messages between a node daemon and its PMIx helper, one struct each, and their frames. Every
// struct names its fields once, in `each`, for writing and reading. docs/formats/pmix-helper.md is the page
// of this format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "pmi/placement.h"
#include "pmi/service.h"

namespace fermata::pmi::helper {

// ---- daemon -> helper

// First: the world to be served. Answer: Ready.
struct Start {
    static constexpr uint8_t kType = 1;
    uint32_t version = 0;  // kVersion of the daemon
    std::string name;
    std::string directory;  // where the helper makes one of its own
    uint32_t node = 0;
    uint32_t universe = 0;
    uint32_t cores = 0;  // for the ranks of this node; 0 = not known
    std::vector<Block> placement;
    std::vector<uint32_t> programs;  // ranks of each
    std::vector<std::string> hosts;  // by node
    template <class F>
    void each(F&& f) {
        f(version, name, directory, node, universe, cores, placement, programs, hosts);
    }
};

// The result of the fence that the helper called `number`.
struct Fenced {
    static constexpr uint8_t kType = 2;
    uint32_t number = 0;
    std::string data, fault;
    template <class F>
    void each(F&& f) {
        f(number, data, fault);
    }
};

// Another node asks for what a rank of this one has published. Answer: Publication with `from` and `number`.
struct Wanted {
    static constexpr uint8_t kType = 3;
    uint32_t from = 0, number = 0;
    Rank rank{0};
    template <class F>
    void each(F&& f) {
        f(from, number, rank);
    }
};

// The answer to the helper's Request.
struct Given {
    static constexpr uint8_t kType = 4;
    uint32_t number = 0;
    std::string data, fault;
    template <class F>
    void each(F&& f) {
        f(number, data, fault);
    }
};

// A rank of this node has ended.
struct Ended {
    static constexpr uint8_t kType = 5;
    Rank rank{0};
    std::string how;
    template <class F>
    void each(F&& f) {
        f(rank, how);
    }
};

// ---- helper -> daemon

struct Variable {
    std::string name, value;
    template <class F>
    void each(F&& f) {
        f(name, value);
    }
};

struct Environment {
    Rank rank{0};
    std::vector<Variable> variables;
    template <class F>
    void each(F&& f) {
        f(rank, variables);
    }
};

// libpmix serves; what the ranks are to be started with.
struct Ready {
    static constexpr uint8_t kType = 16;
    std::vector<Environment> ranks;
    template <class F>
    void each(F&& f) {
        f(ranks);
    }
};

// All ranks of this node that take part have entered a fence. Answer: Fenced.
struct Entered {
    static constexpr uint8_t kType = 17;
    uint32_t number = 0;
    std::vector<RankRange> among;  // empty = the whole world
    std::string data;
    template <class F>
    void each(F&& f) {
        f(number, among, data);
    }
};

// Asks for the data that a rank of another node has published. Answer: Given.
struct Request {
    static constexpr uint8_t kType = 18;
    uint32_t number = 0;
    Rank rank{0};
    template <class F>
    void each(F&& f) {
        f(number, rank);
    }
};

struct Publication {
    static constexpr uint8_t kType = 19;
    uint32_t to = 0, number = 0;
    std::string data, fault;
    template <class F>
    void each(F&& f) {
        f(to, number, data, fault);
    }
};

// A rank has come to `stage`: running or finalized.
struct Reached {
    static constexpr uint8_t kType = 20;
    Rank rank{0};
    Stage stage = Stage::silent;
    template <class F>
    void each(F&& f) {
        f(rank, stage);
    }
};

struct Aborted {
    static constexpr uint8_t kType = 21;
    Rank rank{0};
    int32_t code = 0;
    std::string text;
    template <class F>
    void each(F&& f) {
        f(rank, code, text);
    }
};

// The helper cannot serve; it leaves.
struct Failed {
    static constexpr uint8_t kType = 22;
    std::string line;
    template <class F>
    void each(F&& f) {
        f(line);
    }
};

using Message = std::variant<Start, Fenced, Wanted, Given, Ended, Ready, Entered, Request, Publication,
                             Reached, Aborted, Failed>;

inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kMostOfFrame = 512u << 20;

// u32 length of what follows (little-endian), u8 type, fields.
std::string frame(const Message& message);

// Stream of bytes in, messages out. Throws Error for what no writer has written; then it is at its end.
class Decoder {
  public:
    void feed(std::string_view bytes) { bytes_ += bytes; }
    std::optional<Message> next();

  private:
    std::string bytes_;
    size_t start_ = 0;
};

}  // namespace fermata::pmi::helper
