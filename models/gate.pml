/* Memory order at the gate, on a machine with store buffers (TSO). The wrapper stores inside, obliged, entered (in this
   order) and then looks at `pending`; the agent stores pending, fences, and reads entered, then obliged.
     default      the agent's fence is membarrier: it drains every CPU's buffer    must hold
     -DNOFENCE    no fence                                                         assertion violated
     -DOWNFENCE   the agent drains only its own buffer                             assertion violated
     -DLOOKFIRST  the wrapper looks first and stores afterwards                    assertion violated
     -DORDER      entered is stored before obliged                                 assertion violated */
#define INSIDE 0
#define OBLIGED 1
#define ENTERED 2
bool memory[3], pending;                     /* what everybody sees */
chan wrapper = [3] of { byte, bool };        /* store buffers */
bool agent_has_stored;
bool snapped, counted, reported;             /* snapshot: obliged, entered */
bool through;                                /* the call went in */

proctype app() {
    bool seen;
#ifdef LOOKFIRST
    seen = pending;
#endif
    wrapper!INSIDE, true;
#ifdef ORDER
    wrapper!ENTERED, true;
    wrapper!OBLIGED, true;
#else
    wrapper!OBLIGED, true;
    wrapper!ENTERED, true;
#endif
#ifndef LOOKFIRST
    seen = pending;
#endif
    if
    :: !seen -> through = true               /* fast path */
    :: else ->
        empty(wrapper);                      /* the lock drains the buffer */
        atomic {
            snapped;
            if
            :: counted -> through = true
            :: else ->                       /* undone; parked */
                memory[INSIDE] = false; memory[OBLIGED] = false; memory[ENTERED] = false;
                assert(!reported)            /* the report must not have promised a call that is taken back */
            fi
        }
    fi;
    /* A call that is inside and that the snapshot does not know can meet a member that is held back. */
    atomic { snapped -> assert(!through || counted) }
}
proctype drain_wrapper() {
    byte where; bool what;
end:
    do :: atomic { wrapper?where, what -> memory[where] = what } od
}
proctype drain_agent() {
end:
    do :: atomic { agent_has_stored && !pending -> pending = true } od
}
proctype agent() {
    bool e;
    agent_has_stored = true;
#ifdef NOFENCE
    skip;
#else
    pending;                                 /* own buffer */
#ifndef OWNFENCE
    empty(wrapper);                          /* everybody's: membarrier */
#endif
#endif
    e = memory[ENTERED];
    atomic { reported = e; counted = memory[OBLIGED]; snapped = true }
}
init { atomic { run app(); run drain_wrapper(); run drain_agent(); run agent() } }
