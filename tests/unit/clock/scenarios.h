// Programs that taught something; see docs/collective-clock.md for what each one breaks.
#pragma once

namespace fermata::clock::test {

struct Scenario {
    const char* name;
    const char* text;
};

inline constexpr Scenario kScenarios[] = {
    // 3 is inside A, 2 waits for 1's message, 1 and 4 are parked before B: somebody must ask for the message.
    {"message_behind_a_collective", "A=2,3 B=1,4; 1: B >2; 2: <1 A; 3: A; 4: B"},
    {"message_behind_a_collective_endless", "A=2,3 B=1,4; 1: [ B >2; 2: [ <1 A; 3: [ A; 4: [ B"},
    // 1 must not be held at the end of D, 2 needs what it sends next.
    {"park_at_exit", "A=2,3 D=1,3; 1: D >2; 2: <1 A; 3: D A"},
    // Roots and leaves leave early: some members have not even begun.
    {"broadcast", "A=1,2 B=1,3; 1: B A^1; 2: A^1; 3: B"},
    {"broadcast_ring", "A=1,2 B=2,3 C=1,3; 1: A^1 C; 2: B A^1; 3: B C"},
    {"reduce_ahead", "A=1,2 B=2,3; 1: A~2 A~2 A~2; 2: B A~2 A~2 B A~2; 3: B B"},
    // Two communicators with the same group, begun in opposite order: clocks belong to communicators.
    {"same_group_nonblocking", "A=1,2 B=1,2; 1: iA iB wA wB; 2: iB iA wA wB"},
    {"same_group_threads", "A=1,2 B=1,2; 1: A; 1: B; 2: A; 2: B"},
    // Never is every started collective started by all: only completions that were told may oblige.
    {"skewed_nonblocking", "A=1,2 B=1,2; 1: [ iA iB wA wB; 2: iB [ iB iA wB wA"},
    {"skewed_polling", "A=1,2 B=1,2; 1: [ iA iB tA tB; 2: iB [ iB iA tB tA"},
    {"nonblocking_and_blocking", "A=1,2 B=1,3; 1: iA B wA; 2: iA wA; 3: B"},
    {"pipeline", "A=1,2 B=3,4; 1: [ A; 2: [ <3 A; 3: [ B >2; 4: [ B"},
    // At every cut somebody is inside whose partner waits for a message from behind another collective.
    {"ring", "A=1,2 B=2,3 C=3,4 D=4,1; 1: [ A >3 <4 D; 2: [ A >4 <3 B; 3: [ <1 C >2 B; 4: [ <2 C >1 D"},
    // "Release everybody when stuck" never ends here: two copies in opposite phase.
    {"two_copies",
     "A=2,3 B=1,4 C=6,7 D=5,8; 1: [ B B >2; 2: [ <1 A; 3: [ A; 4: [ B B; 5: D [ D >6 D; 6: [ <5 C; 7: [ C; "
     "8: [ D"},
    {"threads", "A=1,2 B=1,2; 1: [ A; 1: [ B; 2: [ A; 2: [ B"},
    {"wildcard_behind_collectives", "A=3,4 B=1,2,5; 1: B >3; 2: B >3; 3: <* <* A; 4: A; 5: B"},
    {"not_reissuable", "A=1,2 B=1,3; 1: !A B wA; 2: !A wA; 3: B"},
    // Test then increment in one step or two: one call each is enough to go wrong.
    {"one_call", "A=1,2; 1: A; 2: A"},
};

}  // namespace fermata::clock::test
