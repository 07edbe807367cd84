/* MPI_Finalize: arrivals are counted out of band (the tree, not MPI); a rank waits, pulling and checkpointable, until
   all have come. Rank 0 goes straight to Finalize; 1 first sends to 0 synchronously what 0 never receives by itself
   before a checkpoint pulls it, then comes. One checkpoint may begin at any time.
     default     release is held back while a checkpoint runs, none begins after it   must hold
     -DEARLY     a rank that arrives leaves at once                                    assertion violated
     -DNOHOLD    release as soon as all have arrived                                   assertion violated */
byte arrived, saved;
bool released, running, gone[2], pend[2];
proctype rank(byte r) {
    arrived++;
#ifndef EARLY
    released;
#endif
    atomic { assert(!running || !pend[r]); gone[r] = true }   /* real MPI_Finalize: nothing left to save */
}
proctype agent(byte r) {
end:
    do
    :: atomic { running && !pend[r] && !gone[r] -> pend[r] = true }
    od
}
proctype root() {
    if
    :: atomic { arrived < 2 && !released -> running = true };
        pend[0] && pend[1];             /* safe state, drain, save: needs every rank */
        saved = 1;
        d_step { running = false; pend[0] = false; pend[1] = false }
    :: true                             /* no checkpoint */
    fi
}
proctype release() {
#ifdef NOHOLD
    atomic { arrived == 2 -> released = true }
#else
    atomic { arrived == 2 && !running -> released = true }
#endif
}
init { atomic { run rank(0); run rank(1); run agent(0); run agent(1); run root(); run release() } }
