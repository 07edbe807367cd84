/* Reaching the safe state (CC-D, docs/collective-clock.md steps a-f) on the program that deadlocks the published
   algorithm: 0: coll B{0,3}; send 1.   1: recv 0; coll A{1,2}.   2: coll A.   3: coll B.
   Ranks, agents and root run asynchronously over FIFO channels; the wrapper's stores and its look at `pend` are two
   steps, as in clock.h (the fence between them is gate.pml's business). Every execution is finite, so a deadlock is
   an invalid end state.
     default      buffered send                    must hold
     -DSYNC       synchronous send                 must hold
     -DNODEMAND   nobody asks for messages         invalid end state
     -DNOVERSION  SAFE reports carry no version    assertion violated
     -DOPENGATE   gates open until targets known   invalid end state */
#define A 0
#define B 1
#define RAISE 1
#define DEMAND 2
#define SAFE 3
#define at(x, r, c) x[2 * (r) + (c)]
byte entered[8], obliged[8], snap[8], target[8];
bool inside[4], pend[4], snapped[4], known[4];
byte begun[2], within;    /* really begun, over all ranks; how many are inside now */
byte first[2], reports;   /* the merged reports */
byte sent, wanted;        /* messages 0 -> 1; TC */
bool waits;               /* 1 is in its receive: posted, or pulling */
bool declared, resumed;
chan up[4] = [3] of { byte, byte, byte };
chan down[4] = [3] of { byte, byte, byte };

#define needy(r) (known[r] && (at(entered, r, A) < at(target, r, A) || at(entered, r, B) < at(target, r, B) || \
                               (r == 0 && sent < wanted)))

inline collective(r, c) {   /* the first on c */
    d_step { inside[r] = true; at(obliged, r, c) = 1; at(entered, r, c) = 1 }
    if
    :: !pend[r]
    :: else ->
        atomic {
            snapped[r];
            if
            :: 1 <= at(snap, r, c)
            :: else ->
                at(entered, r, c) = 0; at(obliged, r, c) = 0; inside[r] = false;
#ifdef OPENGATE
                (resumed || !known[r] || 1 <= at(target, r, c) || needy(r));
#else
                (resumed || (known[r] && (1 <= at(target, r, c) || needy(r))));
#endif
                if
                :: !resumed && known[r] && 1 > at(target, r, c) -> up[r]!RAISE, c, 1
                :: else
                fi;
                inside[r] = true; at(obliged, r, c) = 1; at(entered, r, c) = 1
            fi
        }
    fi;
    atomic { assert(!declared || resumed); begun[c]++; within++ }
    atomic { begun[c] == 2 -> within--; inside[r] = false }
}

proctype rank0() {
    collective(0, B);
#ifdef SYNC
    sent++;
    (waits || pend[1])   /* matched, or pulled */
#else
    sent++
#endif
}
proctype rank1() {
    bool asked;
    waits = true;
    do
    :: sent >= 1 -> break
#ifndef NODEMAND
    :: atomic { sent < 1 && needy(1) && !asked && !declared -> asked = true; up[1]!DEMAND, 0, 1 }
#endif
    od;
    collective(1, A)
}
proctype rank2() { collective(2, A) }
proctype rank3() { collective(3, B) }

proctype agent(byte r) {
    byte kind, c, v;
    byte version, told = 255;
    pend[r] = true;
    d_step {
        at(snap, r, A) = at(obliged, r, A); at(snap, r, B) = at(obliged, r, B);
        at(target, r, A) = at(snap, r, A); at(target, r, B) = at(snap, r, B);
        if :: at(snap, r, A) > first[A] -> first[A] = at(snap, r, A) :: else fi;
        if :: at(snap, r, B) > first[B] -> first[B] = at(snap, r, B) :: else fi;
        snapped[r] = true; reports++
    }
    atomic {
        reports == 4;
        if :: (r == 1 || r == 2) -> at(target, r, A) = first[A] :: else -> at(target, r, B) = first[B] fi;
        known[r] = true
    }
end:
    do
    :: atomic {
        down[r]?kind, c, v -> version++;
        if
        :: kind == RAISE && c == A && (r == 1 || r == 2) && v > at(target, r, A) -> at(target, r, A) = v
        :: kind == RAISE && c == B && (r == 0 || r == 3) && v > at(target, r, B) -> at(target, r, B) = v
        :: kind == DEMAND && r == 0 && v > wanted -> wanted = v
        :: else
        fi
       }
    :: atomic { !needy(r) && !inside[r] && told != version && !declared -> told = version; up[r]!SAFE, 0, version }
    od
}

proctype root() {
    byte kind, c, v, r, version;
    byte safe[4], highest[2], demanded;
    reports == 4;
    atomic { highest[A] = first[A]; highest[B] = first[B]; safe[0] = 255; safe[1] = 255; safe[2] = 255; safe[3] = 255 };
    do
#ifdef NOVERSION
    :: atomic { safe[0] != 255 && safe[1] != 255 && safe[2] != 255 && safe[3] != 255 -> break }
#else
    :: atomic { safe[0] == version && safe[1] == version && safe[2] == version && safe[3] == version -> break }
#endif
    :: atomic {
        if
        :: up[0]?kind, c, v -> r = 0
        :: up[1]?kind, c, v -> r = 1
        :: up[2]?kind, c, v -> r = 2
        :: up[3]?kind, c, v -> r = 3
        fi;
        if
        :: kind == SAFE -> safe[r] = v
        :: kind == RAISE && v > highest[c] ->
            highest[c] = v; version++;
            down[0]!kind, c, v; down[1]!kind, c, v; down[2]!kind, c, v; down[3]!kind, c, v
        :: kind == DEMAND && v > demanded ->
            demanded = v; version++;
            down[0]!kind, c, v; down[1]!kind, c, v; down[2]!kind, c, v; down[3]!kind, c, v
        :: else
        fi;
        kind = 0; c = 0; v = 0; r = 0
       }
    od;
    atomic {
        declared = true;
        assert(within == 0);
        assert(begun[A] != 1 && begun[B] != 1);
        assert(!needy(0) && !needy(1) && !needy(2) && !needy(3))
    };
    /* ... and it stays safe until somebody resumes. */
    atomic {
        assert(within == 0 && begun[A] != 1 && begun[B] != 1);
        resumed = true
    }
}

init { atomic { run rank0(); run rank1(); run rank2(); run rank3();
                run agent(0); run agent(1); run agent(2); run agent(3); run root() } }
