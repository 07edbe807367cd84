// One copy of a rank: what lies in its upper memory, that is the program with its place, and the production
// Machine. A hop copies it, as fork does.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "library.h"
#include "program.h"

namespace fermata::replay::test {

struct Fault {
    std::string what;
};

// A record on its way, with what the program's memory was afterwards.
struct Entry {
    Record record;
    uint64_t digest;
};

// The outside of a copy's memory.
class Door {
  public:
    virtual ~Door() = default;
    virtual bool room_for_record() = 0;
    virtual void commit(Entry entry) = 0;
    virtual const Entry* next_record() = 0;  // of a copy that follows or plays
    virtual void pop_record() = 0;
    virtual void print(Position at, const std::string& line) = 0;
    virtual void arrive() = 0;
    virtual size_t pick(size_t below) = 0;
};

// All that the program has done, to be compared at the end.
struct History {
    struct Consumed {
        RequestNo request;
        Pattern pattern;
        Content content;
    };
    struct Call {
        Arguments arguments;
        uint64_t input, result;
    };
    std::map<Channel, std::vector<uint64_t>> sent;
    std::map<Channel, std::vector<Consumed>> consumed;
    std::map<std::pair<Uid, Instance>, Call> calls;
    std::string printed;
};

class Copy {
  public:
    Copy(Rank me, const Program& program, const Options& options);
    std::unique_ptr<Copy> clone() const;
    Copy& operator=(const Copy&) = delete;

    Machine machine;
    std::shared_ptr<Library> library;  // of a copy that does not follow
    bool synchronous = false;          // the job sends synchronously
    bool released = false;
    History history;
    std::map<Channel, Receipt> said;  // the newest news of each channel

    // One step of the program. False: it cannot go on now.
    bool step(Door& door);
    // Sends out of the log and debts, in passing.
    bool poll_background();
    void carry_out(const Vec<Action>& actions);
    void drain();
    bool in_finalize() const { return op().what == Do::finalize; }
    uint64_t state() const { return state_; }
    std::string place() const;
    // A copy that followed to MPI_Finalize counted itself as arrived (without the rule `arrive_anew`).
    bool arrived = false;

  private:
    struct Buffer {
        Content content;     // what a send carries; what has arrived
        uint64_t input = 0;  // of a collective, as it lies there now
        uint64_t original = 0;
        const Op* op = nullptr;
        size_t place = 0;
    };
    struct Background {
        SendKey key;
        std::optional<Pay> debt;
        size_t place = 0;
    };

    Copy(const Copy&) = default;
    void attach();
    const Op& op() const { return program_->ranks[machine.me().index()][pc_]; }
    bool live() const { return machine.mode() == Mode::live; }
    void next();
    bool attempt(Door& door, const Op& op);
    bool start(const Op& op);
    void start_collective(const Op& op);
    bool blocks(const Op& op) const;
    void issue(RequestNo no);
    void take_part(const Take& take);
    bool poll(RequestNo no);
    bool ready(RequestNo no);
    bool make_room(size_t sends);
    template <class What, class Entry>
    void read_back(const What& what, const Entry& entry);
    bool try_wait(Door& door, const Op& op);
    bool try_choice(Door& door, const Op& op);
    bool try_probe(Door& door, const Op& op);
    bool tell(Door& door, Outcome outcome);
    bool follow(Door& door, CallKind kind);
    bool harvest(Door& door);
    bool finalize(Door& door);
    void heard(const Outcome& outcome);
    Pattern pattern(const Op& op) const;

    const Program* program_;
    size_t pc_ = 0;
    bool entered_ = false, started_ = false;
    uint64_t state_;
    RequestNo current_{};
    std::optional<Rank> probed_;  // whose message the last probe found
    std::map<int, RequestNo> handles_;
    std::map<RequestNo, Buffer> buffers_;
    uint64_t next_input_ = 0;
    std::vector<Background> background_;
    std::map<uint64_t, Bytes> spilled_;
    uint64_t next_place_ = 0;
};

}  // namespace fermata::replay::test
