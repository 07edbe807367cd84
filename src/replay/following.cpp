// A copy that follows: its calls take what the leader's calls said, and never enter the library.
#include "replay/machine.h"

namespace fermata::replay {

// Leaves to its leader what the library has to do.
void Machine::follow() {
    mode_ = Mode::follow;
    stream_.copy(Copy::none);
    pending_.clear();
    for (Outgoing& out : out_) {
        for (Logged& entry : out.log) entry.in_use = false;
        cut(out);
    }
    for (Communicator& on : comms_) {
        for (LoggedCall& entry : on.log) entry.in_use = false;
        cut(on);
    }
    for (Request& request : requests_)
        if (request.receive() && request.is_open()) request.stage = Stage::outside;
}

// The next message of the channel: perhaps one that was pulled before the copy was made.
void Machine::count_item(Incoming& in) {
    ++in.consumed;
    if (in.pulled > 0) in.pulled--;
}

bool Machine::fits(const Record& record, CallKind kind) const {
    return record.call == call_ && (record.outcome.kind == kind || record.outcome.kind == CallKind::harvest);
}

bool Machine::take(const Record& record) {
    always(mode_ != Mode::live, "a rank that is live takes a record");
    for (const Item& item : record.items) {
        if (const auto* message = std::get_if<MessageItem>(&item)) {
            Request* request = requests_.find(message->request);
            always(request && request->receive(), "a record names a receive that this copy has not posted");
            Receive& receive = *request->receive();
            receive.got = message->from;
            receive.named = true;
            receive.drained = false;
            request->stage = Stage::complete;
            count_item(incoming(message->comm, message->from));
            buffers_.deliver(buffers_.self, *request, message->bytes);
        } else if (const auto* call = std::get_if<CollectiveItem>(&item)) {
            Request* request = requests_.find(call->request);
            always(request && request->collective(),
                   "a record names a collective that this copy has not begun");
            request->collective()->made = call->made;
            request->stage = Stage::complete;
            buffers_.deliver(buffers_.self, *request, call->result);
        }
    }
    for (RequestNo no : record.outcome.told) {
        Request* request = requests_.find(no);
        always(request, "a record names a request that this copy does not have");
        finish(*request, nullptr);
    }
    parted_ = parted_ || digest_.value() != record.digest;
    stream_.add(record.determinant);
    requests_.sweep();
    forget_freed();
    return record.outcome.kind != CallKind::harvest;
}

}  // namespace fermata::replay
