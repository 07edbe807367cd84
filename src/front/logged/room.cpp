// The bound of a message log's memory: others are asked what they need no more; what is left goes to files.
#include <errno.h>

#include <algorithm>
#include <utility>

#include "base/kill_point.h"
#include "front/core/bridge.h"
#include "front/core/fatal.h"
#include "front/core/line.h"
#include "front/core/sys.h"
#include "front/logged/state.h"

namespace fermata::front::logged {

constinit split::LogSize log_size{};

namespace {

constexpr uint64_t kPatienceNs = 50'000'000, kLeastPatienceNs = 1'000'000;
constexpr uint64_t kAskEveryNs = 5'000'000;
constexpr size_t kAskedAtOnce = 64;  // ranks, that often
constexpr long kNapNs = 200'000;
constexpr size_t kBatch = size_t{1} << 20;  // bytes that go to a file at once

int make_file() noexcept {
    const char* place = nullptr;
    const int made = bridge()->log_file(&place);
    if (made >= 0) the_log().bound.place = place;
    return made;
}

const char* text_of(long error) noexcept {
    switch (-error) {
        case ENOSPC:
            return "no space is left";
        case EDQUOT:
            return "the quota is used up";
        case EACCES:
            return "it may not write there";
        case ENOENT:
            return "there is no directory for it";
        default:
            return nullptr;
    }
}

// Said once: what cannot be written stays in memory.
void cannot_spill(long error) noexcept {
    Bound& bound = the_log().bound;
    machine().log_bytes(machine().use().held + bridge()->log_bytes);  // tried again then
    bound.failed = true;
    if (std::exchange(bound.said_failed, true)) return;
    char text[300];
    Line line(text, sizeof text);
    line << "its message log stays in memory, though it is larger than --message-log-memory: ";
    if (const char* why = text_of(error))
        line << why;
    else
        line << "error " << static_cast<int>(-error);
    bridge()->warn(text);
}

void say_that_it_spills() noexcept {
    if (std::exchange(the_log().bound.said, true)) return;
    const auto kib = static_cast<int>(bridge()->log_bytes >> 10);
    char text[400];
    Line(text, sizeof text) << "other ranks have not taken what it sent: what its message log has beyond "
                            << (kib < 1024 ? kib : kib >> 10) << (kib < 1024 ? " KiB" : " MiB")
                            << " goes to a file in " << the_log().bound.place;
    bridge()->warn(text);
}

// Puts entries of the log one behind the other into a file.
class Batch {
  public:
    // False: it cannot be written.
    bool add(const replay::Machine::Spill& spill) noexcept {
        const auto* message = std::get_if<replay::SendLogged>(&spill.what);
        if (message != nullptr && spill.bytes >= kBatch) {
            const replay::Bytes& bytes = machine().logged(message->channel, message->number)->bytes;
            return write() && put(bytes.data(), bytes.size(), &spill, 1);
        }
        machine().bytes_of(spill, &bytes_);
        spills_.push_back(spill);
        return bytes_.size() < kBatch || write();
    }
    bool write() noexcept {
        const bool good =
            spills_.empty() || put(bytes_.data(), bytes_.size(), spills_.data(), spills_.size());
        bytes_.clear();
        spills_.clear();
        return good;
    }

  private:
    static bool put(const uint8_t* bytes, size_t size, const replay::Machine::Spill* spills,
                    size_t count) noexcept {
        uint64_t place = 0;
        if (const long error = the_log().files.append(make_file, bytes, size, &place); error != 0) {
            cannot_spill(error);
            return false;
        }
        for (size_t i = 0; i < count; i++) {
            const uint64_t part = spills[i].bytes;
            machine().spilled(spills[i], {place, part, SpillFiles::digest_of(bytes, part)});
            place += part;
            bytes += part;
        }
        return true;
    }
    replay::Bytes bytes_;
    replay::Vec<replay::Machine::Spill> spills_;
};

void spill(uint64_t bytes) noexcept {
    kill_point("log.spills");
    Batch batch;
    bool good = true;
    for (const replay::Machine::Spill& one : machine().to_spill(bytes))
        if (!(good = batch.add(one))) break;
    if (!good || !batch.write()) return;
    kill_point("log.spilled");
    if (machine().use().spilled == 0) return;
    the_log().bound.failed = false;
    machine().log_bytes(bridge()->log_bytes);
    say_that_it_spills();
}

int64_t bytes_of(const Side& side) noexcept {
    return side.for_each_member ? bytes_of_all(side) : side.type != nullptr ? side.whole().bytes() : 0;
}

// Bytes that the log takes more once these are told.
uint64_t bytes_of(const replay::Outcome& outcome) noexcept {
    int64_t all = 0;
    for (replay::RequestNo no : outcome.told) {
        const RequestObject* r = find(no);
        if (r == nullptr) continue;
        if (r->what == What::send) all += Block{r->buf, r->count, r->type}.bytes();
        if (r->what == What::collective) all += bytes_of(r->collective->part->send);
    }
    return all > 0 ? static_cast<uint64_t>(all) : 0;
}

// At most so often that hundreds of ranks are not kept busy by it.
void exchange_words(uint64_t now) noexcept {
    Bound& bound = the_log().bound;
    if (now < bound.ask_next) return;
    bound.ask_next = now + kAskEveryNs * (1 + Receipts::ask() / kAskedAtOnce);
    exchange_receipts();
}

// Others may need a moment. Synchronous senders, whom they wait for, are told what they wait for.
void wait_for_room(uint64_t bytes, bool harvests) noexcept {
    Bound& bound = the_log().bound;
    const uint64_t before = machine().use().held;
    for (uint64_t now = now_ns(), end = now + bound.patience; now < end; now = now_ns()) {
        exchange_words(now);
        if (harvests) harvest();
        progress();
        if (machine().log_lacks(bytes) == 0) break;
        kill_point("log.full");
        sleep_ns(kNapNs);
    }
    const bool helped = machine().use().held < before;
    bound.patience = helped ? kPatienceNs : std::max(kLeastPatienceNs, bound.patience / 2);
}

}  // namespace

void note_log_use() noexcept {
    for (const replay::Spilled& over : machine().take_over()) the_log().files.forget(over);
    log_size.held = machine().use().held;
    log_size.spilled = machine().use().spilled;
}

void make_room(uint64_t bytes, bool harvests) noexcept {
    Bound& bound = the_log().bound;
    const uint64_t limit = bridge()->log_bytes, held = machine().use().held;
    if (bound.failed && held + bytes <= limit) {
        bound.failed = false;
        machine().log_bytes(limit);
    }
    if (held + bytes <= limit / 2) return;
    if (is_live()) {
        exchange_words(now_ns());
        if (bytes > 0 && machine().log_lacks(bytes) != 0) wait_for_room(bytes, harvests);
    }
    // More than is lacking: the next ones shall not wait, too.
    if (const uint64_t lacks = machine().log_lacks(bytes); lacks != 0) spill(lacks + limit / 2);
    note_log_use();
}

void make_room_for(const replay::Outcome& outcome) noexcept {
    if (machine().use().held + bytes_of(outcome) > bridge()->log_bytes / 2)
        make_room(bytes_of(outcome), true);
}

void keep_within_bound() noexcept {
    const uint64_t lacks = machine().log_lacks(0);
    if (lacks != 0) spill(lacks + bridge()->log_bytes / 2);
    note_log_use();
}

namespace {

template <typename What, typename Entry>
void read_back(const What& what, const Entry* entry) noexcept {
    if (entry == nullptr || !entry->spilled) return;
    replay::Bytes bytes;
    if (!the_log().files.read(*entry->spilled, &bytes))
        fatal_line(
            "fermata: the file to which a rank has written a part of its message log is damaged, and other "
            "ranks need what was in it");
    machine().comes_back(what, std::move(bytes));
}

}  // namespace

void bring_back(const replay::SendLogged& what) noexcept {
    read_back(what, machine().logged(what.channel, what.number));
}
void bring_back(const replay::CallLogged& what) noexcept {
    read_back(what, machine().logged(what.comm, what.instance));
}

// The process may be another one from now on; an image holds memory only.
void close_spill_files() noexcept {
    if (!the_log().files.close())
        fatal_line("fermata: there is no address space for what a message log has in files");
}

// A restart has it all in memory.
void spill_anew() noexcept {
    machine().log_bytes(bridge()->log_bytes);
    const Bound& old = the_log().bound;
    the_log().bound = Bound{.said = old.said, .said_failed = old.said_failed};
    if (const long error = the_log().files.leave_memory(make_file); error != 0) cannot_spill(error);
    note_log_use();
}

}  // namespace fermata::front::logged
