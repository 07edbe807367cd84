// The table of forms (docs/internals/message-log.md).
#include "replay/collective.h"

#include <algorithm>

namespace fermata::replay {

bool Planned::was_told(Rank rank) const { return std::binary_search(told.begin(), told.end(), rank); }

static bool reduces(Kind kind) {
    return kind == Kind::reduce || kind == Kind::scan || kind == Kind::reduce_scatter;
}

Way normal_way(const Arguments& call, Rules rules) {
    if (reduces(call.kind) && call.order_matters && rules.have(Rule::twin_is_normal)) return Way::twin;
    return call.blocking ? Way::native : Way::twin;
}

Way planned_way(const Arguments& call, const Planned& planned, Rank me, Rules rules) {
    if (planned.told.empty()) return call.kind == Kind::barrier ? Way::pass : Way::twin;  // a rule is away
    if (planned.was_told(me) && !rules.have(Rule::debts)) return Way::pass;
    switch (call.kind) {
        case Kind::barrier:
        case Kind::free:
            return Way::pass;
        case Kind::gather:
        case Kind::reduce:
            // The root has the result: the others' parts are not needed any more.
            if (planned.was_told(*call.root)) return Way::pass;
            return Way::twin;
        case Kind::allreduce:
        case Kind::allgather:
            if (rules.have(Rule::result_from_told)) return Way::from_result;
            return Way::twin;
        case Kind::bcast:
        case Kind::scatter:
        case Kind::alltoall:
        case Kind::scan:
        case Kind::reduce_scatter:
        case Kind::create:
            break;
    }
    return Way::twin;
}

}  // namespace fermata::replay
