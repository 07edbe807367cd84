// Requests: what a rank has started and the program was not told complete, one list in the order of starting,
// which is the order of sends and the order of posting, too.
#pragma once

#include "replay/collective.h"
#include "replay/record.h"

namespace fermata::replay {

struct Send {
    Channel channel;
    MessageNo number;
    Ord ord;
    bool synchronous;
};
struct Receive {
    Pattern pattern;
    std::optional<Envelope> got;  // below, or for good
    bool named = false;           // a record names its message (or would)
    bool drained = false;         // a drain, or the queue, completed it
};
struct Collective {
    Uid comm;
    Instance instance;
    Arguments arguments;
    Bytes kept_input;          // of a call that overwrites it
    std::optional<Made> made;  // a creation, once complete
};

enum class Stage : uint8_t {
    outside,   // the present lower half does not know of it
    issued,    // it does
    below,     // it has said that it is complete: lost with it
    complete,  // counted, and kept over a hop
    told,      // over: leaves the list
};

struct Request {
    RequestNo no;
    Stage stage = Stage::outside;
    std::variant<Send, Receive, Collective> what;

    Send* send() { return std::get_if<Send>(&what); }
    Receive* receive() { return std::get_if<Receive>(&what); }
    Collective* collective() { return std::get_if<Collective>(&what); }
    const Send* send() const { return std::get_if<Send>(&what); }
    const Receive* receive() const { return std::get_if<Receive>(&what); }
    const Collective* collective() const { return std::get_if<Collective>(&what); }
    // True of a receive whose message the library, or nobody yet, has.
    bool is_open() const { return stage < Stage::complete; }
};

class Requests {
  public:
    Request& start(std::variant<Send, Receive, Collective> what) {
        ++started_;
        list_.push_back(Request{started_, Stage::outside, std::move(what)});
        return list_.back();
    }
    // One that the program was not told yet; null: there is none.
    Request* find(RequestNo no);
    const Request* find(RequestNo no) const { return const_cast<Requests*>(this)->find(no); }
    // Leaves the list at the next sweep().
    static void tell(Request& request) { request.stage = Stage::told; }
    void sweep();

    // Iterators in the order of starting. Those told since the last sweep are among them.
    auto begin() { return list_.begin(); }
    auto end() { return list_.end(); }
    auto begin() const { return list_.begin(); }
    auto end() const { return list_.end(); }
    bool empty() const { return list_.empty(); }

  private:
    Vec<Request> list_;
    RequestNo started_{};
};

}  // namespace fermata::replay
