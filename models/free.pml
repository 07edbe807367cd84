/* MPI_Comm_free may be local in the real library: one rank can be rid of C while the other has not called it.
     default     the wrapper counts it and runs a barrier on C first       must hold
     -DNOBARRIER counted, but the real call alone                          assertion violated */
byte entered[2], snap[2], target[2], first, reports;
bool inside[2], exists[2] = true, pend[2], snapped[2], known[2];
byte begun;
bool declared, resumed;
#define needy(r) (known[r] && exists[r] && entered[r] < target[r])
proctype rank(byte r) {
    d_step { inside[r] = true; entered[r] = 1 }
    if
    :: !pend[r]
    :: else -> atomic {
        snapped[r];
        if
        :: 1 <= snap[r]
        :: else ->
            entered[r] = 0; inside[r] = false;
            (resumed || (known[r] && (1 <= target[r] || needy(r))));
            entered[r] = 1; inside[r] = true
        fi }
    fi;
    assert(!declared || resumed);
    begun++;
#ifndef NOBARRIER
    begun == 2;
#endif
    d_step { exists[r] = false; inside[r] = false }   /* real free, unregister */
}
proctype agent(byte r) {
    pend[r] = true;
    d_step {
        if :: exists[r] -> snap[r] = entered[r]; if :: snap[r] > first -> first = snap[r] :: else fi :: else fi;
        snapped[r] = true; reports++
    }
    atomic { reports == 2; target[r] = first; known[r] = true }
}
proctype monitor() {
    atomic {
        known[0] && known[1] && !needy(0) && !needy(1) && !inside[0] && !inside[1] ->
        declared = true;
        assert(exists[0] == exists[1])    /* else restart cannot make C again */
    };
    atomic { assert(exists[0] == exists[1]); resumed = true }
}
init { atomic { run rank(0); run rank(1); run agent(0); run agent(1); run monitor() } }
