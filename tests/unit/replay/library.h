// The MPI library of one epoch, simulated: messages that do not overtake, receives matched as MPI says,
// collectives that are complete as early as MPI allows.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "replay/machine.h"

namespace fermata::replay::test {

// The bytes of a message: what was computed, and its true number and place, which no receiver looks at.
struct Content {
    uint64_t value = 0;
    uint64_t number = 0;
    uint64_t ord = 0;
};
Bytes bytes_of(const Content& content);
Content content_of(const Bytes& bytes);
uint64_t mix(uint64_t a, uint64_t b);

// A send below: of a request, or out of the log.
struct SendKey {
    RequestNo request{};
    std::optional<Channel> channel;
    MessageNo number{};
    auto operator<=>(const SendKey&) const = default;
};

class Library {
  public:
    explicit Library(int ranks) : ranks_(size_t(ranks)) {}
    std::string fault;  // members that call differently, no such communicator

    void make(Uid comm, const Vec<Rank>& members);
    bool has(Uid comm) const { return comms_.count(comm) != 0; }

    void send(const SendKey& key, const Channel& channel, const Content& content, bool slow, bool waits);
    bool sent(Rank rank, const SendKey& key) const;
    void post(Rank rank, RequestNo request, const Pattern& pattern);
    // Complete: from whom, and what.
    struct Got {
        Envelope from;
        Content content;
    };
    std::optional<Got> received(Rank rank, RequestNo request) const;
    void forget(Rank rank, RequestNo request);
    // The message that a probe finds: the first that no receive has taken.
    std::optional<Got> probe(Rank rank, const Pattern& pattern) const;

    struct Part {
        Kind kind{};
        Instance instance{};
        Way way{};
        uint32_t from = 0;  // of `from_result`
        std::optional<Rank> root;
        uint64_t input = 0;
    };
    // Its place in the member's sequence of calls on the communicator.
    size_t join(Uid comm, Rank rank, const Part& part);
    std::optional<uint64_t> result(Uid comm, Rank rank, size_t place) const;

    // Steps of the network. False: there was nothing to do.
    bool deliver(size_t which);
    bool transfer(Rank rank);
    // Everything that is on its way arrives; receives that are matched become complete, the rest is given to
    // `pulled`.
    void settle();
    std::vector<std::pair<Channel, Content>> take_unexpected(Rank rank);

  private:
    struct Message {
        Channel channel;
        Content content;
        SendKey key;
        bool slow, waits;
    };
    struct Posted {
        RequestNo request;
        Pattern pattern;
        std::optional<Message> matched;
        bool complete = false;
    };
    struct End {
        std::vector<Message> unexpected;
        std::vector<Posted> posted;
        std::map<SendKey, bool> sends;
    };
    struct Comm {
        std::vector<Rank> members;
        std::map<Rank, std::vector<Part>> calls;
    };
    void arrive(const Message& message);
    void match(Posted& posted, const Message& message);
    void finish(Posted& posted);
    bool all_joined(const Comm& comm, size_t place) const;

    std::vector<End> ranks_;
    std::map<std::tuple<Uid, Rank, Rank>, std::deque<Message>> flight_;
    std::map<Uid, Comm> comms_;
};

// The member's result, from what all contribute; the form matters where the order of evaluation does.
uint64_t evaluate(const Library::Part& mine, Rank me, const std::map<Rank, uint64_t>& inputs);

}  // namespace fermata::replay::test
