// A copy of a rank: its calls take what the leader's calls said, until the leader is gone and the stream has
// ended. And the leader's side: what it says goes into the ring before its call returns.
#include "base/kill_point.h"
#include "front/core/bridge.h"
#include "front/core/fatal.h"
#include "front/core/line.h"
#include "front/core/sys.h"
#include "front/logged/ring.h"
#include "front/logged/state.h"
#include "replay/record_form.h"
#include "replay/wire_form.h"

namespace fermata::front::logged {
namespace {

constexpr uint64_t kPatienceNs = 20'000'000'000;  // with a copy that takes nothing while the ring is full

constexpr long kLastWordNs = 2'000'000'000;

// A word of another rank, which stands in the ring beside records.
struct Heard {
    uint32_t sort;  // where a record has another number
    uint32_t from;
    Receipts::Line line;
};
constexpr uint32_t kWordOfAnother = 0x31574c46;  // "FLW1"

bool is_word(const uint8_t* bytes, size_t size, Heard* heard) noexcept {
    if (size != sizeof *heard) return false;
    __builtin_memcpy(heard, bytes, sizeof *heard);
    return heard->sort == kWordOfAnother;
}

std::optional<replay::Record> next_record() noexcept {
    Log& log = the_log();
    for (replay::Bytes bytes; log.ring->next(&bytes);) {
        Heard heard;
        if (is_word(bytes.data(), bytes.size(), &heard)) {
            Receipts::hear_as_copy(heard.line, Rank(heard.from));
            continue;
        }
        auto record = replay::record_from(bytes, static_cast<uint32_t>(front.world_size));
        if (!record) fatal_line("fermata: the stream of a replicated rank is damaged");
        return record;
    }
    return {};
}

// The copy is gone, perhaps.
bool has_copy() noexcept {
    Log& log = the_log();
    if (!log.machine.stream().has_copy()) return false;
    if (log.ring->is_closed()) log.machine.copy(replay::Copy::none);
    return log.machine.stream().has_copy();
}

void put_part(const uint8_t* bytes, size_t size) noexcept {
    uint64_t since = 0;  // when the ring was found full
    while (size > 0 && has_copy()) {
        const size_t more = the_log().ring->put(bytes, size);
        bytes += more;
        size -= more;
        if (more != 0) {
            since = 0;
            continue;
        }
        kill_point("stream.full");
        yield_cpu();  // the copy is behind
        if (since == 0) since = now_ns();
        if (now_ns() - since < kPatienceNs) continue;
        bridge()->warn("a copy of this rank takes nothing any more, and is given up");
        the_log().ring->give_up();
        since = 0;
    }
}

void put(const uint8_t* bytes, size_t size) noexcept {
    const uint64_t length = size;
    put_part(reinterpret_cast<const uint8_t*>(&length), sizeof length);
    put_part(bytes, size);
}

}  // namespace

void publish(const replay::Record& record) noexcept {
    if (!has_copy()) return;
    const replay::Bytes form = replay::wire_form(record);
    put(form.data(), form.size());
    Log& log = the_log();
    if (!has_copy()) return;
    // (All that was written before a copy follows elsewhere is there before it counts as one.)
    if (!log.ring->is_elsewhere()) return log.machine.became_stable(log.machine.stream().end());
    log.on_way.push_back({log.ring->end(), log.machine.stream().end()});
    hear_what_is_stable();
}

// Records that have reached the copy's node. They do so in order.
void hear_what_is_stable() noexcept {
    Log& log = the_log();
    if (log.on_way.empty()) return;
    if (!has_copy()) return log.on_way.clear();  // nobody needs to have them
    const uint64_t arrived = log.ring->arrived();
    size_t gone = 0;
    while (gone < log.on_way.size() && log.on_way[gone].end <= arrived) ++gone;
    if (gone == 0) return;
    log.machine.became_stable(log.on_way[gone - 1].position);
    log.on_way.erase(log.on_way.begin(), log.on_way.begin() + static_cast<ptrdiff_t>(gone));
    log.consumed++;  // receipts are of what is stable only
}

void Receipts::copy_hears(const Line& line, Rank from) noexcept {
    if (!is_live() || !has_copy()) return;
    const Heard heard{kWordOfAnother, from.number(), line};
    put(reinterpret_cast<const uint8_t*>(&heard), sizeof heard);
}

void see_whether_stream_ended() noexcept {
    Log& log = the_log();
    if (log.machine.mode() != replay::Mode::play || !log.machine.may_tell()) return;
    if (!log.heard) log.heard = next_record();
    if (log.heard) return;
    kill_point("promotion.before_files");
    for (const replay::Action& action : log.machine.ring_ended()) act(action);
    if (bridge()->take_private_files() != 0) {
        sleep_ns(kLastWordNs);  // the agent has said why, unless it has not heard
        fatal_line("fermata: the copy that takes a rank's place does not get the rank's files");
    }
    front.follows = 0;
    kill_point("promotion.after_files");
}

bool is_live() noexcept { return machine().mode() == replay::Mode::live; }

// The rank goes on without this copy; if it is gone already nobody has its state.
[[noreturn]] void part(const char* why) noexcept {
    if (machine().mode() == replay::Mode::play) {
        const char* pieces[] = {"fermata: the copy that takes a rank's place ", why, nullptr};
        fatal_join(pieces);
    }
    char text[200];
    Line(text, sizeof text) << "its copy " << why << ": the rank goes on without one";
    bridge()->end_copy(text);
    __builtin_unreachable();
}

// The copy of an earlier call of this entry may be wanted before its record comes: asked again then.
std::optional<replay::Outcome> follow(replay::CallKind kind) noexcept {
    Log& log = the_log();
    if (!log.heard) log.heard = next_record();
    if (!log.heard) return {};
    replay::Record& record = *log.heard;
    kill_point("copy.heard");
    if (!log.machine.fits(record, kind)) part("calls MPI in another way (the program's steps differ)");
    const bool over = log.machine.take(record);
    keep_within_bound();
    if (log.machine.parted()) part("has sent other data (the program does not compute the same twice)");
    std::optional<replay::Outcome> outcome;
    if (over) outcome = std::move(record.outcome);
    log.heard.reset();
    return outcome;
}

const replay::Record* look_ahead() noexcept {
    Log& log = the_log();
    if (!log.heard) log.heard = next_record();
    return log.heard ? &*log.heard : nullptr;
}

size_t said(void* bytes, size_t capacity) noexcept {
    if (front.life == Life::before) begin_before_init();
    if (!on()) return 0;
    Log& log = the_log();
    replay::Vec<replay::Record> ring;
    if (!is_live()) {
        if (log.heard) ring.push_back(*log.heard);
        log.ring->each([&](const uint8_t* data, size_t size) {
            Heard heard;
            if (is_word(data, size, &heard)) return;
            auto record = replay::record_from({data, size}, static_cast<uint32_t>(front.world_size));
            if (!record) fatal_line("fermata: the stream of a replicated rank is damaged");
            ring.push_back(std::move(*record));
        });
    }
    if (log.ring != nullptr) log.ring->forget_what_was_read();
    close_spill_files();
    const replay::Bytes form = replay::wire_form(log.machine.said(ring));
    if (form.size() <= capacity) __builtin_memcpy(bytes, form.data(), form.size());
    return form.size();
}

// ---- the agent, all threads stand

namespace {

const char* begin_stream(Ring* (*make)(int), int descriptor) noexcept {
    if (!on()) return "the program keeps no message log";
    Log& log = the_log();
    if (log.machine.mode() != replay::Mode::live) return kStillFollows;
    Ring* ring = make(descriptor);
    if (ring == nullptr) return "there is no memory for its stream";
    if (log.ring != nullptr) Ring::forget(log.ring);  // of a copy before, which has its own end
    log.ring = ring;
    log.on_way.clear();
    log.machine.copy(replay::Copy::follows);
    listen_to_clocks();
    return nullptr;
}

}  // namespace

const char* begin_copy() noexcept {
    return begin_stream([](int) { return Ring::make(); }, -1);
}

const char* begin_copy_elsewhere(int descriptor) noexcept {
    return begin_stream([](int file) { return Ring::make_elsewhere(file); }, descriptor);
}

// At any time: whoever writes into the ring finds it closed.
void copy_is_gone() noexcept {
    if (on() && the_log().ring != nullptr) the_log().ring->close();
}

const char* be_copy_elsewhere(int descriptor) noexcept {
    if (!on() || the_log().ring == nullptr) return "its image holds no stream";
    if (!the_log().ring->move_to(descriptor)) return "there is no memory for its stream";
    be_copy();
    the_log().orders = {};  // no communicator is made: a copy needs none
    the_log().ordered = true;
    the_log().loaded = true;
    return nullptr;
}

void be_copy() noexcept {
    Log& log = the_log();
    front.follows = 1;
    log.on_way.clear();
    forget_library(log);
    log.machine.follow();
    log.heard.reset();
}

}  // namespace fermata::front::logged
