// The agent's part of a checkpoint before Save: it carries what the clock says, stops the threads and drains.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/log.h"
#include "lower/agent.h"
#include "lower/services.h"
#include "split/threads/records.h"
#include "split/threads/stop.h"

namespace fermata::lower {
namespace {

namespace threads = split::threads;

// One attempt to stop all threads; between attempts the agent pulls messages, so that senders come out.
constexpr uint64_t kStopSlice = 2'000'000;  // ns

// No thread of the program is inside MPI, where it may wait for other ranks.
bool computes() {
    const threads::ThreadTable& all = *threads::table();
    const uint32_t used = all.high_water;
    return std::none_of(all.record, all.record + used, [](const split::ThreadRecord& one) {
        return one.in_mpi != 0 && one.run != split::Run::free && one.run != split::Run::gone;
    });
}

}  // namespace

void Agent::converge_and_freeze() {
    if (!facts_of(stage_).in_checkpoint) return;
    if (stage_ == Stage::converging) {
        checkpoint_->times.looked(computes(), monotonic_ns());
        the_upper()->poll(monotonic_ns());
    }
    clock_out();
    const char* why = checkpoint_->anywhere ? nullptr : the_upper()->give_up();
    if (why && !checkpoint_->gave_up) {
        checkpoint_->gave_up = true;
        link_->send(wire::Again{checkpoint_->epoch, why});
    }
    // Helper commands that began while the ranks converged: the program runs on, up to its next MPI call.
    if (stage_ == Stage::calming && helpers_.reached(monotonic_ns())) on(Event::calm);
    if (stage_ == Stage::stopping) return stop_threads();
    if ((stage_ != Stage::calming && stage_ != Stage::frozen) || checkpoint_->anywhere) return;
    // Others may still be inside a send to this rank: pulling lets them out.
    split::DrainReport ignored{};
    the_upper()->drain(&ignored);
}

void Agent::stop_threads() {
    always(checkpoint_.has_value(), "threads are stopped for no checkpoint");
    threads::StopReport report = threads::stop_all(monotonic_ns() + kStopSlice);
    split::DrainReport drained{};
    if (!checkpoint_->anywhere) the_upper()->drain(&drained);
    for (const auto& thread : report.missing) spdlog::debug("rank {}: {}", rank().number(), thread.where);
    checkpoint_->not_stopped = std::move(report.missing);
    if (!report.stopped) return;
    checkpoint_->sent = drained.sent;
    on(Event::stand);
}

void Agent::hear_clock(const wire::Clock& m) {
    checkpoint_->times.heard(monotonic_ns());
    if (const char* why = the_upper()->inbox(m.bytes.data(), m.bytes.size()))
        link_->send(wire::Refuse{checkpoint_->epoch, fmt::format("the protocol broke: {}", why)});
}

void Agent::clock_out() {
    // Larger than any clock message (src/clock/messages.h splits tables into parts).
    static char buffer[1 << 16];
    while (size_t size = the_upper()->outbox(buffer, sizeof buffer)) {
        auto* bytes = reinterpret_cast<const std::byte*>(buffer);
        link_->send(wire::Clock{{bytes, bytes + size}});
        checkpoint_->times.said(monotonic_ns());
    }
}

void Agent::drain(const wire::Drain& m) {
    always(the_upper() && checkpoint_, "messages are drained for no checkpoint");
    split::DrainReport report{};
    const uint64_t began = monotonic_ns();
    the_upper()->drain(&report);
    checkpoint_->times.drained(monotonic_ns() - began);
    link_->send(wire::Drained{m.epoch, m.round, report.sent, report.received, report.open});
}

}  // namespace fermata::lower
