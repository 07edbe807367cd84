/* Freeze, drain, restart. 0: send 1 (synchronous: captive in the lower half until matched or pulled); start N; wait N.
   1: start N; receive 0; wait N. The network delays. N is a non-blocking collective that completes when both have
   started it; it may be told complete before the freeze (then T = 1) or not (T = 0: issued again at restart).
   Freeze comes at any moment that is safe for N. Then the lower half, with all it holds, is thrown away.
     default       must hold: nothing is lost or doubled, and the program ends after restart
     -DNOPULL      nobody receives for the frozen ranks           invalid end state
     -DSUMEARLY    sums are taken before all ranks are frozen      assertion violated
     -DNOREISSUE   open collectives are not issued again          invalid end state
     -DREISSUEALL  also those up to T                              assertion violated */
bool flying, arrived;                 /* the message: in the network, in MPI's queue at 1 */
bool queued;                          /* pulled: in the upper half of 1 */
byte sent, counted;                   /* ledger: 0's sends, 1's receipts */
byte delivered;                       /* to the application */
bool matched;                         /* the synchronous send may return */
bool started[2];                      /* N in this lower half */
bool issued[2], told[2];              /* N in the upper half: started, application knows it is complete */
bool frozen[2];
bool resumed;
byte target;

#define free(r) (!frozen[r] || resumed)
proctype rank0() {
    atomic { free(0) -> sent++; flying = true }
    matched;                          /* captive; a frozen rank's captive thread runs on */
    atomic { free(0) -> issued[0] = true; started[0] = true }
    /* a completion beyond the target is not told while frozen */
    atomic { free(0) && started[0] && started[1] -> told[0] = true }
}
proctype rank1() {
    atomic { free(1) -> issued[1] = true; started[1] = true }
    do
    :: atomic { free(1) && queued -> queued = false; delivered++; break }
    :: atomic { free(1) && !queued && arrived -> arrived = false; counted++; matched = true; delivered++; break }
    od;
    atomic { free(1) && started[0] && started[1] -> told[1] = true }
}
proctype network() {
end:
    do :: atomic { flying -> flying = false; arrived = true } od
}
proctype root() {
    byte s, r;
    /* Converged: whoever was told N is told with both started, so any moment will do for N. */
#ifdef SUMEARLY
    s = sent; r = counted;
#endif
    frozen[0] = true;
    frozen[1] = true;
    d_step { target = 0; if :: told[0] || told[1] -> target = 1 :: else fi }
    /* Rounds: pull, test, report; until the sums agree and nothing up to T is open. */
    do
#ifdef SUMEARLY
    :: atomic { s == r -> break }
#else
    :: atomic { sent == counted && (target == 0 || (started[0] && started[1])) -> break }
#endif
#ifndef NOPULL
    :: atomic { arrived && !queued -> arrived = false; queued = true; counted++; matched = true }
#endif
    od;
    /* Images written; kill everything; new lower half. */
    atomic {
        assert(!flying && !arrived);                       /* nothing was in the network */
        assert(sent == counted);
        started[0] = false; started[1] = false;
        if
        :: target == 1 ->                                  /* complete everywhere: its results are in the image */
#ifdef REISSUEALL
            started[0] = issued[0] && !told[0]; started[1] = issued[1] && !told[1];
            assert(started[0] == started[1])               /* a collective issued by some members only */
#endif
            started[0] = true; started[1] = true
        :: else ->
#ifndef NOREISSUE
            started[0] = issued[0]; started[1] = issued[1]
#endif
        fi;
        resumed = true
    }
    (delivered == 1 && told[0] && told[1]);
    assert(!queued && !arrived && !flying)
}
init { atomic { run rank0(); run rank1(); run network(); run root() } }
