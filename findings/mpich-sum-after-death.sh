#!/usr/bin/env bash
# MPICH 4.0.2 (ch4:ucx): a blocking MPI_Allreduce in which a peer has died returns MPI_SUCCESS and a sum without the
# peer's part, although the communicator's handler is MPI_ERRORS_RETURN. (Recursive doubling: the send to the dead one
# fails, so its receive is not waited for; that error is kept, and not returned in the end.) Ranks that have lost nobody
# may be handed such a sum. MPI_Iallreduce waits, or returns an error.
#
# Where it matters: whoever survives the death of a rank, or saves data when a rank dies, must not believe what the
# library gave back since. Fermata hides the end of a connection from MPICH until all ranks are seen to live
# (docs/internals/replicas.md), and commits no checkpoint after a death.
#
# Seen with Debian 12's mpich 4.0.2-3+b1 and UCX 1.13.1-1 over TCP on one machine (x86-64).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download mpich=4.0.2-3+b1 libmpich12=4.0.2-3+b1 libmpich-dev=4.0.2-3+b1 \
    libucx0=1.13.1-1 libhwloc15 libnuma1 libslurm38
for package in *.deb; do dpkg -x "$package" root; done
lib=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$lib

cat >sum.c <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
static int rank, size;
static void times_up(int signal) {
    (void)signal;
    if (rank >= size / 2) kill(getpid(), SIGKILL);
    _exit(0); /* a survivor that waits for the dead */
}
int main(int argc, char** argv) {
    signal(SIGUSR1, SIG_IGN); /* hydra's word of a death */
    signal(SIGPIPE, SIG_IGN);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    long us = atol(argv[1]) + (rank < size / 2 ? 1500000 : 0);
    struct itimerval timer = {{0, 0}, {us / 1000000, us % 1000000}};
    signal(SIGALRM, times_up);
    MPI_Barrier(MPI_COMM_WORLD);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int step = 0;; ++step) {
        double mine = 1000.0 * step + rank + 1, sum = -1;
        if (MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS) _exit(0);
        double right = 1000.0 * step * size + size * (size + 1) / 2;
        if (sum == right) continue;
        FILE* file = fopen(argv[2], "a");
        fprintf(file, "rank %d, step %d: MPI_SUCCESS and %.0f, not %.0f\n", rank, step, sum, right);
        fclose(file);
        _exit(0);
    }
}
C
gcc -I"$folder/root/usr/include/x86_64-linux-gnu/mpich" sum.c -o sum "$lib/libmpich.so.12"
: >wrong
# Hydra ends what it has started once a rank has died: each is in a session of its own.
for try in $(seq 1 20); do
    MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp,self timeout 20 "$folder/root/usr/bin/mpiexec.mpich" -disable-auto-cleanup -n 4 \
        setsid -w ./sum $((200000 + try * 1013)) "$folder/wrong" >/dev/null 2>&1 || true
done
sleep 2 # the last survivors' time
echo "20 deaths in MPI_Allreduce: $(wc -l <wrong) ranks got MPI_SUCCESS and a wrong sum"
head -3 wrong
[[ -s wrong ]] || { echo "changed: were 11 and 14"; exit 1; }
