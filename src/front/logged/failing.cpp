// A library below that fails: over a network it says so of calls once a process of its world has died, before
// anybody tells this rank to stand. What it has failed is open still, and a new library is given it again.
#include "front/core/fatal.h"
#include "front/core/sys.h"
#include "front/logged/state.h"
#include "front/objects/error_codes.h"

namespace fermata::front::logged {
namespace {

constexpr uint64_t kPatienceNs = 60'000'000'000;  // a node that is not heard is given up after 41 s

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

void see_whether_it_was_replaced() noexcept {
    const Failing& failing = the_log().failing;
    if (failing.since == 0 || now_ns() - failing.since < kPatienceNs) return;
    const char* pieces[] = {
        "fermata: the library has failed ",          failing.call, " (", error_text(failing.rc),
        "), and no rank that a copy plays has died", nullptr};
    fatal_join(pieces);
}

}  // namespace fermata::front::logged
