/* One channel of the message log, both ranks with a copy (docs/internals/message-log.md). The sender is told a bit that
   could have been otherwise and sends it twice; the receiver takes both. Records come to the copy's node later. Two
   leaders may die, one hop may come without a death; a recovery is one step, the rest of a ring is played after it.
     default          every message once, in order, with the sender's bit; logs empty at the end   must hold
     -DNOCOMMIT       sends do not wait for determinants                                            assertion violated
     -DNOSUPPRESS     what was consumed is sent again                                               assertion violated
     -DTRUNCACTUAL    the exchange's count cuts the log                                             invalid end state
     -DRMAX           a smaller count of a later exchange is not believed                           invalid end state
     -DNOLOG          what is suppressed is not logged                                              invalid end state
     -DNORESEND       nothing out of the log is sent again                                          invalid end state */
#define N 2
#define bit_(k) (1 << (k))
chan net = [4] of { byte, byte };                 /* number, bit: one lower half's */
byte deaths, hops;

/* sender: the leader's (or the promoted copy's) memory, and the copy's */
byte pc, value = 2, log, pc2, value2 = 2, log2;   /* pc: 0 the choice, k = send k not told yet */
bool begun, complete, begun2;
byte known, stable;                               /* of the last exchange; of receipts, in both copies */
byte told_value, made, there, taken;              /* stream: the choice's record; records made, at the node, taken */
bool copy = true, plays;

/* receiver */
byte r, had[3], r2, had2[3], item[3];
byte rmade, rthere, rtaken;
bool rcopy = true, rplays;

#define cut(l) l = l & ~(bit_(stable + 1) - 1)

inline log_own(k) {
    if
#ifdef NOLOG
    :: k > stable && k > known -> log = log | bit_(k)
#else
    :: k > stable -> log = log | bit_(k)
#endif
    :: else
    fi
}
inline resume() {
    byte k;
    k = 1;
    do
    :: k <= N ->
        if
#ifndef NORESEND
        :: (log & bit_(k)) && k > known -> net!k, value
#endif
        :: else
        fi;
        k++
    :: else -> break
    od;
    if
    :: begun -> complete = true;
        if
        :: pc > known -> net!pc, value
        :: else
        fi
    :: else
    fi;
    k = 0
}
inline recover() {
    do
    :: net?[_, _] -> net?_, _
    :: else -> break
    od;
    byte count;
    count = (rplays -> rthere : r);               /* what a ring holds counts */
#ifdef RMAX
    known = (count > known -> count : known);
#else
    known = count;
#endif
#ifdef TRUNCACTUAL
    stable = (count > stable -> count : stable); cut(log); cut(log2);
#endif
    complete = false;
    if
    :: !plays -> resume()
    :: else
    fi;
    count = 0
}

proctype job() {
    do
    /* the sender */
    :: atomic { !plays && pc == 0 -> pc = 1; made = 1;
        if :: value = 0 :: value = 1 fi;
        told_value = value;
        if :: !copy -> there = made :: else fi }
#ifdef NOCOMMIT
    :: atomic { !plays && pc >= 1 && pc <= N && !begun ->
#else
    :: atomic { !plays && pc >= 1 && pc <= N && !begun && (!copy || there >= 1) ->
#endif
        begun = true; complete = true;
        if
#ifndef NOSUPPRESS
        :: pc <= known
#endif
        :: else -> net!pc, value
        fi }
    :: atomic { !plays && begun && complete -> log_own(pc); begun = false; complete = false; pc++; made++;
        if :: !copy -> there = made :: else fi }
    :: d_step { copy && there < made -> there++ }
    :: d_step { copy && taken < there ->
        if
        :: taken == 0 -> value2 = told_value; pc2 = 1
        :: else -> if :: pc2 > stable -> log2 = log2 | bit_(pc2) :: else fi; pc2++; begun2 = false
        fi;
        taken++ }
    :: d_step { copy && pc2 >= 1 && pc2 <= N && !begun2 -> begun2 = true }
    :: d_step { plays && taken < there ->
        if
        :: taken == 0 -> value = told_value; pc = 1
        :: else -> if :: pc > stable -> log = log | bit_(pc) :: else fi; pc++; begun = false
        fi;
        taken++ }
    :: d_step { plays && pc >= 1 && pc <= N && !begun -> begun = true }
    :: atomic { plays && taken == there -> plays = false; resume() }

    /* the receiver */
    :: atomic { !rplays && r < N && nempty(net) ->
        byte n, v;
        net?n, v;
        assert(n == r + 1);
        r++; had[r] = v; rmade++; item[r] = v;
        n = 0; v = 0;
        if :: !rcopy -> rthere = rmade :: else fi }
    :: d_step { rcopy && rthere < rmade -> rthere++ }
    :: d_step { rcopy && rtaken < rthere -> rtaken++; r2 = rtaken; had2[r2] = item[r2] }
    :: d_step { rplays && rtaken < rthere -> rtaken++; r = rtaken; had[r] = item[r] }
    :: d_step { rplays && rtaken == rthere -> rplays = false }
    :: d_step { !rplays && (rcopy -> rthere : r) > stable -> stable = (rcopy -> rthere : r); cut(log); cut(log2) }

    /* failures; the fence: what has not come to the node is thrown away */
    :: atomic { deaths < 2 && copy -> deaths++;
        copy = false; plays = true; pc = pc2; value = value2; log = log2; begun = begun2; made = there;
        pc2 = 0; value2 = 2; log2 = 0; begun2 = false;
        recover() }
    :: atomic { deaths < 2 && rcopy -> deaths++;
        rcopy = false; rplays = true; r = r2; had[1] = had2[1]; had[2] = had2[2]; rmade = rthere; r2 = 0;
        recover() }
    :: atomic { hops < 1 -> hops++; recover() }

    :: atomic { pc > N && r == N && !plays && !rplays && there == made && rthere == rmade && log == 0 ->
        assert(had[1] == value && had[2] == value);
        break }
    od
}
init { run job() }
