/* Communicator creation meets a checkpoint. Both ranks: a collective on W makes C; then a collective on C. One rank may
   be in C's first collective while the other has not registered C yet.
     default   targets of unknown uids are kept; registration, still inside the creating call, looks them up   holds
     -DFORGET  targets of unknown uids are dropped           invalid end state
     -DLATE    registration after leaving the creating call  assertion violated */
#define W 0
#define C 1
#define at(x, r, c) x[2 * (r) + (c)]
byte entered[4], snap[4], target[4], kept[2];
bool inside[2], pend[2], snapped[2], known[2], registered[2];
byte begun[2], first[2], reports;
bool declared, resumed;
#define needy(r) (known[r] && (at(entered, r, W) < at(target, r, W) || \
                               (registered[r] && at(entered, r, C) < at(target, r, C))))

inline call(r, c) {
    d_step { inside[r] = true; at(entered, r, c) = 1 }
    if
    :: !pend[r]
    :: else -> atomic {
        snapped[r];
        if
        :: 1 <= at(snap, r, c)
        :: else ->
            at(entered, r, c) = 0; inside[r] = false;
            (resumed || (known[r] && (1 <= at(target, r, c) || needy(r))));
            if
            :: !resumed && 1 > at(target, r, c) ->      /* RAISE, here broadcast at once */
                at(target, r, c) = 1;
                if
                :: c == W || registered[1 - r] -> at(target, 1 - r, c) = 1
                :: else ->
#ifndef FORGET
                    kept[1 - r] = 1
#else
                    skip
#endif
                fi
            :: else
            fi;
            at(entered, r, c) = 1; inside[r] = true
        fi }
    fi;
    assert(!declared || resumed);
    begun[c]++;
    begun[c] >= 2
}
inline enrol(r) {
    d_step { registered[r] = true; if :: kept[r] > at(target, r, C) -> at(target, r, C) = kept[r] :: else fi }
}

proctype rank(byte r) {
    call(r, W);
#ifdef LATE
    inside[r] = false;
    enrol(r);
#else
    enrol(r);
    inside[r] = false;
#endif
    call(r, C);
    inside[r] = false
}
proctype agent(byte r) {
    pend[r] = true;
    d_step {
        at(snap, r, W) = at(entered, r, W);
        at(target, r, W) = at(snap, r, W);
        if :: at(snap, r, W) > first[W] -> first[W] = at(snap, r, W) :: else fi;
        if
        :: registered[r] ->
            at(snap, r, C) = at(entered, r, C);
            at(target, r, C) = at(snap, r, C);
            if :: at(snap, r, C) > first[C] -> first[C] = at(snap, r, C) :: else fi
        :: else
        fi;
        snapped[r] = true; reports++
    }
    atomic {
        reports == 2;
        at(target, r, W) = first[W];
        if
        :: registered[r] -> if :: first[C] > at(target, r, C) -> at(target, r, C) = first[C] :: else fi
        :: else ->
#ifndef FORGET
            if :: first[C] > kept[r] -> kept[r] = first[C] :: else fi
#else
            skip
#endif
        fi;
        known[r] = true
    }
}
proctype monitor() {
    atomic {
        known[0] && known[1] && !needy(0) && !needy(1) && !inside[0] && !inside[1] ->
        declared = true;
        assert(begun[W] != 1 && begun[C] != 1);
        assert(registered[0] == registered[1])    /* else restart cannot make C again */
    };
    atomic { assert(begun[W] != 1 && begun[C] != 1); resumed = true }
}
init { atomic { run rank(0); run rank(1); run agent(0); run agent(1); run monitor() } }
