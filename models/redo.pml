/* Collectives of the message log that a recovery finds told to one member and not to the other, both members with a copy
   (docs/internals/message-log.md). Instances 1 and 2: a broadcast from member 0, who may run ahead; 3: Allreduce of
   values whose sum depends on the form (1: the library's own, 2: non-blocking). Two leaders may die, one hop may come
   without a death; a recovery is one step.
     default          members call alike below, both have the undisturbed sum, logs empty at the end   must hold
     -DENTERED        what is entered and told to nobody is redone in the non-blocking form             assertion violated
     -DINPUTS         Allreduce is redone from its inputs                                               assertion violated
     -DNODEBT         who was told does not take part again                                             invalid end state
     -DNOTBINDING     what all were told meanwhile leaves the plan                                      assertion violated
     -DCUTACTUAL      the exchange's counts cut logs                                                    assertion violated
     -DPASTRING       a promoted copy calls below before its ring's end                                 invalid end state */
#define LAST 3
#define bit_(k) (1 << (k))
#define NATIVE 0
#define TWIN 1
#define RESULT 2
byte deaths, hops;

/* of member m: the leader, and [m + 2] its copy */
byte told[4], log[4], sum[4];
bool inside[4];
/* stream: records made (= told), at the copy's node, taken by it; the sum that the record of instance 3 holds */
byte there[2], taken[2], record[2];
bool copy[2], plays[2];
/* the present lower half: calls of each member, by place; where the call that it waits in stands */
byte calls[2], at[2], code[8];
/* plan: instances first..last were told to one member only; everywhere: told to both, stably */
byte first, last, who, everywhere;

#define planned(i) (i >= first && i <= last)
#define cut(m) log[m] = log[m] & ~(bit_(everywhere + 1) - 1)
#define reached(m) (plays[m] -> there[m] : told[m])
#define keep(m, i) (i > everywhere || (plays[m] && planned(i) && who == m))

inline call(r, i, form) {
    code[r * 4 + calls[r]] = (i) * 4 + form;
    at[r] = calls[r];
    calls[r]++;
    assert(calls[1 - r] <= at[r] || code[(1 - r) * 4 + at[r]] == code[r * 4 + at[r]])
}
inline begin(r, i) {
    if
    :: planned(i) && i == 3 ->
#ifdef INPUTS
        call(r, i, TWIN)
#else
        if
        :: who == 2 -> call(r, i, TWIN)
        :: else -> call(r, i, RESULT)
        fi
#endif
    :: planned(i) && i < 3 -> call(r, i, TWIN)
    :: else -> call(r, i, NATIVE)
    fi
}
inline debts(r) {
    byte i;
    i = first;
    do
    :: i != 0 && i <= last && who == r ->
#ifdef NOTBINDING
        if
        :: i > everywhere -> assert(log[r] & bit_(i)); begin(r, i)
        :: else
        fi;
#else
#ifndef NODEBT
        assert(log[r] & bit_(i)); begin(r, i);
#endif
#endif
        i++
    :: else -> break
    od;
    i = 0
}
inline resume(r) {
    debts(r);
    if
    :: inside[r] -> begin(r, told[r] + 1)
    :: else
    fi
}
inline recover() {
    byte a, b;
    a = reached(0); b = reached(1);
    first = 0; last = 0; who = 2;
    if
    :: a > b -> first = b + 1; last = a; who = 0
    :: b > a -> first = a + 1; last = b; who = 1
    :: else
#ifdef ENTERED
        -> if
        :: inside[0] && inside[1] && a == told[0] && b == told[1] -> first = a + 1; last = a + 1
        :: else
        fi
#endif
    fi;
#ifdef CUTACTUAL
    everywhere = (a < b -> a : b); cut(0); cut(1); cut(2); cut(3);
#endif
    a = 0; b = 0;
    calls[0] = 0; calls[1] = 0; at[0] = 0; at[1] = 0;
    code[0] = 0; code[1] = 0; code[2] = 0; code[3] = 0; code[4] = 0; code[5] = 0; code[6] = 0; code[7] = 0;
    if :: !plays[0] -> resume(0) :: else fi;
    if :: !plays[1] -> resume(1) :: else fi
}
/* `memory` takes the ring's next record of member `r`. */
inline take(memory, r) {
    told[memory]++;
    taken[r]++;
    inside[memory] = false;
    if :: told[memory] == 3 -> sum[memory] = record[r] :: else fi;
    if :: keep(r, told[memory]) -> log[memory] = log[memory] | bit_(told[memory]) :: else fi
}
#define form (code[m * 4 + at[m]] % 4)
#define joined (calls[1 - m] > at[m])
#define over (joined || (form != RESULT && told[m] < 2 && m == 0) || (form == RESULT && m == who))

proctype member(byte m) {
    do
    :: atomic { !plays[m] && !inside[m] && told[m] < LAST -> inside[m] = true; begin(m, told[m] + 1) }
    :: atomic { !plays[m] && inside[m] && over ->
        if
        :: told[m] == 2 -> sum[m] = (form == NATIVE -> 1 : (form == TWIN -> 2 : sum[1 - m])); record[m] = sum[m]
        :: else
        fi;
        told[m]++;
        inside[m] = false;
        if :: told[m] > everywhere -> log[m] = log[m] | bit_(told[m]) :: else fi;
        if :: !copy[m] -> there[m] = told[m] :: else fi }
    :: d_step { copy[m] && there[m] < told[m] -> there[m]++ }
    :: atomic { copy[m] && taken[m] < there[m] -> take(m + 2, m) }
    :: d_step { copy[m] && !inside[m + 2] && told[m + 2] < LAST -> inside[m + 2] = true }
    :: atomic { plays[m] && taken[m] < there[m] -> take(m, m) }
    :: atomic { plays[m] && !inside[m] && told[m] < LAST -> inside[m] = true;
#ifdef PASTRING
        begin(m, told[m] + 1)
#endif
        }
    :: atomic { plays[m] && taken[m] == there[m] -> resume(m); plays[m] = false;
        cut(m) }
    :: atomic { deaths < 2 && copy[m] -> deaths++;
        copy[m] = false; plays[m] = true;
        told[m] = told[m + 2]; log[m] = log[m + 2]; sum[m] = sum[m + 2]; inside[m] = inside[m + 2];
        told[m + 2] = 0; log[m + 2] = 0; sum[m + 2] = 0; inside[m + 2] = false;
        recover() }
    :: atomic { hops < 1 && m == 0 -> hops++; recover() }
    :: d_step { told[0] == LAST && told[1] == LAST && !plays[0] && !plays[1] && everywhere == LAST &&
                there[m] == LAST && log[m] == 0 -> assert(sum[0] == 1 && sum[1] == 1) } -> break
    od
}
#define stably(m) (plays[m] || !copy[m] -> told[m] : there[m])
#define both_ (stably(0) < stably(1) -> stably(0) : stably(1))
/* Not what a copy that plays still owes. */
#ifdef NOTBINDING
#define free_to_cut(m) true
#else
#define free_to_cut(m) (!(plays[m] && who == m))
#endif
proctype receipts() {
end:
    do
    :: d_step { both_ > everywhere -> everywhere = both_;
        if :: free_to_cut(0) -> cut(0) :: else fi;
        if :: free_to_cut(1) -> cut(1) :: else fi;
        cut(2); cut(3) }
    od
}
init {
    atomic {
        copy[0] = true; copy[1] = true; who = 2;
        run member(0); run member(1); run receipts()
    }
}
