#!/usr/bin/env bash
# MPICH's "mpiexec -disable-auto-cleanup", which is there so that ranks go on when one has died, kills them most of the
# time: in a race between the end of the dead one and that of its connection its proxy sends the others SIGKILL, before
# or after the SIGUSR1 that is meant as news of the death. Those that live get that signal, whatever it is for in the
# program.
#
# The guess: with -disable-auto-cleanup survivors live, and SIGUSR1 comes from nobody but the user.
#
# Where it matters: programs that survive a failure (with MPI_ERRORS_RETURN, ULFM), or that save a last state after one,
# and programs that take SIGUSR1 for "save now", as batch systems send it. What has to survive must leave the process
# group of its rank (setsid).
#
# Seen with Debian 12's mpich 4.0.2-3+b1 (x86-64) and two survivors that need nothing from MPI: 2 to 10 of 24 lived;
# with mpich 4.1.3 to 5.0.2 of PyPI 2 to 15 of 24.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download mpich=4.0.2-3+b1 libmpich12=4.0.2-3+b1 libmpich-dev=4.0.2-3+b1 \
    libucx0=1.13.1-1 libhwloc15 libnuma1 libslurm38
for package in *.deb; do dpkg -x "$package" root; done
lib=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$lib

cat >survive.c <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile sig_atomic_t heard;
static void hear(int signal) { heard = signal; }
int main(int argc, char** argv) {
    char name[100];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    signal(SIGUSR1, hear);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(300000);
    if (rank == 0) raise(SIGKILL);
    for (int i = 0; i < 20; ++i) usleep(100000);
    snprintf(name, sizeof name, "alive.%d", rank);
    FILE* file = fopen(name, "w");
    fprintf(file, "SIGUSR1: %d\n", heard == SIGUSR1);
    fclose(file);
    _exit(0);
}
C
gcc -I"$folder/root/usr/include/x86_64-linux-gnu/mpich" survive.c -o survive "$lib/libmpich.so.12"
: >lived
for _ in $(seq 1 12); do
    rm -f alive.*
    timeout 30 root/usr/bin/mpiexec.mpich -disable-auto-cleanup -n 3 ./survive >/dev/null 2>&1 || true
    sleep 2.5 # what mpiexec has left behind
    for each in alive.*; do [[ ! -f $each ]] || cat "$each" >>lived; done
done
alive=$(wc -l <lived)
signalled=$(grep -c 'SIGUSR1: 1' lived || true)
echo "mpich 4.0.2-3+b1, 12 deaths: $alive of 24 survivors lived, $signalled of them got SIGUSR1"
((alive <= 18)) || { echo "changed: most died"; exit 1; }
