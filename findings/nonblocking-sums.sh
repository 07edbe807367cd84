#!/usr/bin/env bash
# Open MPI: MPI_Ireduce and MPI_Ireduce_scatter_block give other last digits of sums of doubles than MPI_Reduce and
# MPI_Reduce_scatter_block of the same ranks and data, and where the number of ranks is no power of two so does
# MPI_Iallreduce than MPI_Allreduce. MPICH's agree, but for MPI_Reduce_scatter_block with large messages.
#
# The guess: the non-blocking form is the same operation, so a library has one order of additions for both. Or: since
# MPICH's agree, Open MPI's do.
#
# Where it matters: replacing MPI_Allreduce by MPI_Iallreduce with a wait behind it, to hide its latency, changes results
# that regression tests compare, and so does a tool that stands between program and library and issues the one for the
# other (to be able to stop in the middle, or to find a deadlock). Fermata does so with a message log (docs/limits.md).
#
# Seen with Debian 12's openmpi 4.1.4-3+b1 and mpich 4.0.2-3+b1 (x86-64), three to eight ranks on one machine.
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

cat >sum.c <<'C'
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { MOST = 20000 };
static double mine[MOST * 8], now[MOST], later[MOST];
static int rank, size;
static void compare(const char* what, int count, int here) {
    const int same = memcmp(now, later, sizeof(double) * (size_t)count) == 0;
    if (here) printf("%d ranks, %s of %d: %s\n", size, what, count, same ? "same" : "other");
    memset(now, 0, sizeof now);
    memset(later, 0, sizeof later);
}
int main(int argc, char** argv) {
    const int counts[] = {1, 10, 1000, MOST};
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint32_t state = (uint32_t)rank * 7919 + 1;
    for (int i = 0; i < MOST * 8; ++i) {
        state = state * 1664525u + 1013904223u;
        mine[i] = ((double)(state >> 8) / (1 << 24) - 0.5) / (1 + (state >> 5) % 1000);
    }
    for (int i = 0; i < 4; ++i) {
        const int n = counts[i];
        MPI_Allreduce(mine, now, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Iallreduce(mine, later, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        compare("Allreduce", n, rank == 0);
        MPI_Reduce(mine, now, n, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        MPI_Ireduce(mine, later, n, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        compare("Reduce", n, rank == 0);
        MPI_Reduce_scatter_block(mine, now, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Ireduce_scatter_block(mine, later, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        compare("Reduce_scatter_block", n, rank == 0);
        MPI_Scan(mine, now, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Iscan(mine, later, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        compare("Scan", n, rank == size - 1);
    }
    MPI_Finalize();
    return 0;
}
C
gcc -I"$folder/root/usr/include/x86_64-linux-gnu/mpich" sum.c -o mpich "$lib/libmpich.so.12"
gcc -I"$lib/openmpi/include" sum.c -o openmpi "$lib/libmpi.so.40" -Wl,-rpath-link,"$lib"
changed=0
expect() {  # library, words of all its operations that have other sums in one form than in the other
    local oversubscribe=() said
    [[ $1 == mpich ]] || oversubscribe=(--oversubscribe)
    for ranks in 3 4 5 6 8; do
        timeout 120 "root/usr/bin/mpiexec.$1" "${oversubscribe[@]}" -n $ranks "./$1" 2>/dev/null </dev/null
    done >out
    grep other out | sort
    said=$(grep other out | sed 's/.*, \(.*\) of.*/\1/' | sort | uniq -c | awk '{printf "%s%s %s", sep, $1, $2; sep = ", "}')
    echo "$1, of $(wc -l <out) sums other ones: $said"
    [[ $said == "$2" ]] || { echo "changed: was '$2'"; changed=1; }
}
expect openmpi "4 Allreduce, 14 Reduce, 10 Reduce_scatter_block"
expect mpich "4 Reduce_scatter_block"
exit $changed
