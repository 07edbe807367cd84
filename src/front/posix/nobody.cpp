#include "front/posix/nobody.h"

#include "split/gate.h"

namespace fermata::front {
namespace {
split::ThreadRecord nobody;  // thread pointers 0: nobody's
// As much of a thread control block as is read of it.
constinit struct {
    char other[split::kRecordInTcb];
    split::ThreadRecord* record;
} block{{}, &nobody};
}  // namespace

uint64_t nobody_gs() noexcept { return reinterpret_cast<uint64_t>(&block); }
void become_nobody() noexcept { split::write_gs(nobody_gs()); }

}  // namespace fermata::front
