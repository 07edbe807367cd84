#!/usr/bin/env bash
# A rank of MPICH over UCX does not end at SIGHUP and SIGUSR1, the two signals that any program without a handler ends
# at. UCX takes SIGHUP, before main and also where it was ignored (nohup), for the wish to debug it: from then on it
# writes its log into the program's standard output, more than a hundred lines for MPI_Finalize alone. MPICH's MPI_Init
# takes SIGUSR1. Open MPI (without UCX) leaves both alone.
#
# The guess: a library for messages leaves signals alone that are not about them; nohup protects the output of a job.
#
# Where it matters: jobs that a closed terminal, "kill -HUP" or a batch system's "--signal=USR1" was to end, or was not
# to touch; results on standard output that are compared after a hangup. UCX_DEBUG_SIGNO=0 leaves SIGHUP alone.
#
# Seen with Debian 12's mpich 4.0.2-3+b1 and libucx0 1.13.1-1 (x86-64); with mpich 4.1.3 to 5.0.2 of PyPI, too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download mpich=4.0.2-3+b1 libmpich12=4.0.2-3+b1 libmpich-dev=4.0.2-3+b1 \
    libucx0=1.13.1-1 libhwloc15 libnuma1 libslurm38
for package in *.deb; do dpkg -x "$package" root; done
lib=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$lib

cat >hangup.c <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    for (int i = 1; i < argc; ++i) raise(atoi(argv[i]));
    printf("result 42\n");
    MPI_Finalize();
    return 0;
}
C
gcc -I"$folder/root/usr/include/x86_64-linux-gnu/mpich" hangup.c -o hangup "$lib/libmpich.so.12"
changed=0
run() {  # words of env or nohup, then signals
    timeout 60 root/usr/bin/mpiexec.mpich -n 1 "$@" >out 2>/dev/null </dev/null || true
    echo "$*: result written $(grep -c '^result' out || true) times, lines of UCX $(grep -c UCX out || true)"
}
echo "mpich 4.0.2-3+b1, libucx0 1.13.1-1; signals 1 (SIGHUP) and 10 (SIGUSR1)"
run ./hangup
grep -q '^result' out && ! grep -q UCX out || changed=1
run ./hangup 10
grep -q '^result' out && ! grep -q UCX out || changed=1
run ./hangup 1
grep -q '^result' out && (($(grep -c UCX out) > 20)) || changed=1
run nohup ./hangup 1
grep -q '^result' out && (($(grep -c UCX out) > 20)) || changed=1
run env UCX_DEBUG_SIGNO=0 ./hangup 1
! grep -q '^result' out || changed=1
[[ $changed == 0 ]] || { echo "changed: all but the last wrote the result, two the log of UCX"; exit 1; }
