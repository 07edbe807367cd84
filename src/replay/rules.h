// Rules of the protocol that the tests take away one at a time, to see that each is missed. Nobody else does.
#pragma once

#include <cstdint>

namespace fermata::replay {

enum class Rule : uint8_t {
    none,  // takes nothing away
    // telling
    harvest,         // a told receive takes along the earlier ones that match its message
    harvest_probe,   // ... and so does a probe
    name_drained,    // the next record names all that a drain completed
    commit_send,     // sends wait until determinants are stable
    commit_coll,     // ... and so do collectives
    told_is_a_set,   // a later instance told does not tell an earlier one
    tell_any_order,  // instances need not be told in order
    ssend_receipt,   // a synchronous send is complete when a receipt covers it
    promise_order,   // a receive is promised its messages unless an earlier one of any source may take them
    input_copied,    // inputs that the call overwrites are copied before it
    spill,           // a full log does not keep the sender waiting
    // sends after a recovery
    suppress,         // a send that was consumed is not issued again
    suppressed_open,  // ... nor when it was open
    suppressed_logged,
    resend,         // what is logged and not consumed is sent again
    by_ord,         // in the order of all sends, not channel by channel
    interleaved,    // logged and open ones together
    replace_known,  // each exchange replaces what the one before said
    // counting
    count_pulled,    // messages that a drain pulled count as consumed
    count_ring,      // a promoted replica counts what its ring holds
    cut_by_receipt,  // an exchange's numbers cut no log
    cut_by_everywhere,
    drain_takes_all,    // also what the library had completed before it
    drain_is_receipts,  // a drained checkpoint empties no log by itself
    // collectives
    only_told,         // what nobody was told is no recovery instance
    result_from_told,  // Allreduce: its result, not the inputs again
    twin_is_normal,    // operations whose result depends on the order: always the non-blocking form
    debts,             // who was told takes part again
    pass_logs,         // who passes logs its input
    ring_first,        // debts are issued at the ring's end
    plan_binds,        // what all were told meanwhile stays in the plan
    orphans,           // communicators of others are rebuilt too
    orphans_plan,      // ... and keep their part of the plan
    members_make,      // a creation that only those were told who have none of it: its members make it
    free_late,         // a freed communicator is kept until all frees are stable
    free_settled,      // ... and until nothing that was begun on it is open, or in a log of messages
    // recovery, output, end
    nothing_before_go,
    keep_output,    // a replica's output beyond the root's count is kept
    output_stable,  // output waits for what it stands on
    finalize_stable,
    arrive_anew,         // a promoted replica that stands in Finalize arrives itself
    release_or_recover,  // never both
    kCount,
};

struct Rules {
    Rule away = Rule::none;
    bool have(Rule rule) const { return __builtin_expect(rule != away, 1); }
};

}  // namespace fermata::replay
