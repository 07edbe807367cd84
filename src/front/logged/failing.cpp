// A library below that fails: over a network it says so of calls once a process of its world has died, before
// anybody tells this rank to stand. Whatever it has failed is open still, and a new library is given it
// again.
#include <utility>

#include "front/core/bridge.h"
#include "front/core/fatal.h"
#include "front/core/sys.h"
#include "front/logged/state.h"
#include "front/objects/error_codes.h"

namespace fermata::front::logged {
namespace {

// For a copy to take the place of the rank that has died: 71 s, where its node was cut off without a word.
constexpr uint64_t kPatienceNs = 120'000'000'000;

// Others are mistakes of the program's, and would be the same with another library.
bool is_of_the_library(int rc) noexcept {
    switch (rc) {
        case mpi::FM_ERR_UNKNOWN:
        case mpi::FM_ERR_OTHER:
        case mpi::FM_ERR_INTERN:
        case mpi::FM_ERR_PENDING:
        case mpi::FM_ERR_IN_STATUS:
        case mpi::FM_ERR_PROC_ABORTED:
        case mpi::FM_ERR_PROC_FAILED:
        case mpi::FM_ERR_PROC_FAILED_PENDING:
        case mpi::FM_ERR_REVOKED:
            return true;
        default:
            return false;
    }
}

}  // namespace

bool library_fails(const char* call, int rc) noexcept {
    if (!is_of_the_library(rc)) return false;
    Failing& failing = the_log().failing;
    if (failing.since == 0) failing = {now_ns(), call, rc};
    return true;
}

bool is_in_doubt() noexcept {
    const split::Connections& ends = *bridge()->connections;
    const uint32_t lost = __atomic_load_n(&ends.lost, __ATOMIC_ACQUIRE);
    if (lost == __atomic_load_n(&ends.cleared, __ATOMIC_ACQUIRE))
        return __atomic_load_n(&ends.broken, __ATOMIC_ACQUIRE) != 0;
    if (std::exchange(the_log().doubted, lost) != lost) bridge()->poke_agent();
    return true;
}

bool believe(RequestObject* r, const mpi::Status& status) noexcept {
    if (is_in_doubt()) {
        the_log().held.push_back({r, status});
        return false;
    }
    accept(r, status, 0);
    return true;
}

void believe_held() noexcept {
    Vec<Held>& held = the_log().held;
    if (is_in_doubt() || held.empty()) return;
    for (const Held& one : std::exchange(held, {})) accept(one.request, one.status, 0);
}

void forget_held(const RequestObject* r) noexcept {
    std::erase_if(the_log().held, [r](const Held& one) { return one.request == r; });
}

void see_whether_it_was_replaced() noexcept {
    const Failing& failing = the_log().failing;
    if (failing.since == 0 || now_ns() - failing.since < kPatienceNs) return;
    const char* pieces[] = {
        "fermata: the library has failed ",          failing.call, " (", error_text(failing.rc),
        "), and no rank that a copy plays has died", nullptr};
    fatal_join(pieces);
}

}  // namespace fermata::front::logged
