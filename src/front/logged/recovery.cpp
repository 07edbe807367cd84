// A new lower half: what the exchange hears of this rank, and what the library is given then.
#include <utility>

#include "base/kill_point.h"
#include "front/core/fatal.h"
#include "front/core/line.h"
#include "front/logged/state.h"
#include "front/objects/api.h"
#include "front/objects/objects.h"
#include "replay/wire_form.h"

namespace fermata::front::logged {
namespace {

// A call may fail already, since another rank has died.
void must(const char* call, int rc) noexcept {
    if (!library_fails(call, rc)) fatal_line("fermata: the new library refuses what is in the message log");
}

void issue_again(replay::RequestNo request) noexcept {
    machine().issued(request);
    hand_to_library(find(request));
}
void do_it(const replay::SendOpen& action) noexcept { issue_again(action.request); }
void do_it(const replay::Post& action) noexcept { issue_again(action.request); }
void do_it(const replay::SendLogged& action) noexcept {
    bring_back(action);
    const replay::Logged* entry = machine().logged(action.channel, action.number);
    const CommObject* comm = find(action.channel.comm);
    Again again{action.channel, action.number, {}};
    const int rc = LOWER(Isend)(entry->bytes.data(), static_cast<mpi::Count>(entry->bytes.size()),
                                real_byte(), rank_in(*comm, action.channel.destination),
                                static_cast<int>(action.channel.tag), real_of(comm), &again.real);
    if (rc != 0) return must("MPI_Isend", rc);
    the_log().again.push_back(again);
}
// A blocking call is issued by its thread, which finds here how.
void do_it(const replay::Take& action) noexcept {
    RequestObject* r = find(action.request);
    Part& part = *r->collective->part;
    const replay::Collective* call = machine().request(action.request)->collective();
    part.way = action.way;
    part.from = action.from;
    part.planned = machine().find(call->comm)->planned(call->instance) != nullptr;
    part.outside = action.way == replay::Way::native;
    if (part.outside) return;
    machine().issued(action.request);
    if (const int rc = issue_call(r); rc != 0) {
        r->real = 0;
        must("a collective", rc);
    }
}
void do_it(const replay::Pay& action) noexcept { owe(action); }

}  // namespace

// Nothing that the old library worked on is known to the new one.
void forget_library(Log& log) noexcept {
    for (RequestObject* r : log.open) {
        r->real = 0;
        if (r->what != What::collective) continue;
        Part& part = *r->collective->part;
        forget_made(part);
        part.outside = false;  // unless an action says so
    }
    for (RequestObject* r : log.left) {
        r->real = 0;
        r->state = State::complete;
        release_request(r);
    }
    log.left.clear();
    log.debts.clear();
    log.again.clear();
    log.failing = {};
    log.held.clear();
    log.doubted = 0;
}

const replay::Orders* orders() noexcept { return on() && the_log().ordered ? &the_log().orders : nullptr; }

void begin_before_init() noexcept {
    objects_start();
    start();
}

void act(const replay::Action& action) noexcept {
    std::visit([](const auto& one) { do_it(one); }, action);
}

const char* take_orders(const void* bytes, size_t size) noexcept {
    if (!on()) return "this program keeps no message log";
    auto orders = replay::orders_from({static_cast<const uint8_t*>(bytes), size},
                                      static_cast<uint32_t>(front.world_size));
    if (!orders) return "what the exchange of the message logs says is damaged";
    the_log().orders = std::move(*orders);
    the_log().ordered = true;
    return nullptr;
}

int rebuild(char* error, size_t size) noexcept {
    Log& log = the_log();
    if (!log.ordered) {
        Line(error, size) << "the message log has not heard of the other ranks' logs";
        return 1;
    }
    kill_point("rebuild.log");
    forget_library(log);
    spill_anew();
    if (std::exchange(log.loaded, false)) return 0;
    for (const replay::Action& action : log.machine.recover(log.orders)) act(action);
    return 0;
}

void go(uint32_t epoch) noexcept {
    if (!on()) return;
    machine().go(static_cast<replay::Epoch>(epoch));
    the_log().consumed++;  // words on their way are lost: the next wait says all of them again
}

}  // namespace fermata::front::logged
