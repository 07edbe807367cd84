#!/usr/bin/env bash
# MPI_Reduce of doubles: the last bits of an element's sum depend on how many elements are in the same call, in MPICH
# (2 KiB and more, unless the root is rank 0) and in Open MPI (from some 4 KiB on): sums of 100 elements are other ones
# when 900 more are reduced with them. MPI_Allreduce of the same elements does not show that (in these counts); its sums
# are those of MPI_Reduce now and then only.
#
# The guess: a reduction is element by element, so to put several into one call, or to take an array in pieces, gives
# the same bits on the same ranks; and MPI_Reduce gives what MPI_Allreduce gives.
#
# Where it matters: results that are compared to the last bit: a program that learnt to pack its reductions, output
# switched on beside a sum, and layers that split large counts or make one collective out of another one.
#
# Seen with Debian 12's mpich 4.0.2-3+b1 and openmpi 4.1.4-3+b1 (x86-64), six ranks.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { FIRST = 100, MOST = 10000 };
static double mine[MOST], sum[MOST], alone[FIRST], everybodys[FIRST];
static int others(const double* than) {
    int count = 0;
    for (int i = 0; i < FIRST; ++i) count += memcmp(sum + i, than + i, sizeof(double)) != 0;
    return count;
}
int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    srand48(rank + 1);
    for (int i = 0; i < MOST; ++i) mine[i] = (drand48() - 0.5) / (drand48() + 1e-3);
    MPI_Allreduce(mine, everybodys, FIRST, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce(mine, alone, FIRST, MPI_DOUBLE, MPI_SUM, size - 1, MPI_COMM_WORLD);
    for (int count = FIRST; count <= MOST; count *= 10) {
        MPI_Reduce(mine, sum, count, MPI_DOUBLE, MPI_SUM, size - 1, MPI_COMM_WORLD);
        int other = others(alone), than_everybodys = others(everybodys);
        MPI_Allreduce(mine, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (rank == size - 1)
            printf("%5d elements: of the first %d %d other than alone, %d other than MPI_Allreduce's; Allreduce: %d\n",
                   count, FIRST, other, than_everybodys, others(everybodys));
    }
    MPI_Finalize();
    return 0;
}
C
gcc -I"$folder/root/usr/include/x86_64-linux-gnu/mpich" sum.c -o mpich "$lib/libmpich.so.12"
gcc -I"$lib/openmpi/include" sum.c -o openmpi "$lib/libmpi.so.40" -Wl,-rpath-link,"$lib"
changed=0
for library in openmpi mpich; do
    oversubscribe=()
    [[ $library == mpich ]] || oversubscribe=(--oversubscribe)
    echo "$library:"
    timeout 60 "root/usr/bin/mpirun.$library" "${oversubscribe[@]}" -n 6 "./$library" 2>/dev/null | tee said
    grep -q "^  100 elements: of the first 100 0 other than alone" said || changed=1
    for count in 1000 10000; do
        grep -qE "^ *$count elements: of the first 100 [1-9][0-9]+ other than alone, .*Allreduce: 0$" said || changed=1
    done
done
[[ $changed == 0 ]] || { echo "changed: some were other than alone at 1000 and 10000 elements"; exit 1; }
