#!/usr/bin/env bash
# MUMPS: with two ranks or more the same program with the same matrix on the same machine solves to other last bits in
# almost every run: six runs, six solutions. It takes messages as they come, and hands out work while it runs.
#
# The guess: a direct solver does the same operations each time; only iterations that end by a residual are a lottery.
#
# Where it matters: finite elements (FEniCS, PETSc's -pc_factor_mat_solver_type mumps), structures, electromagnetics.
# Two undisturbed runs of such a program do not agree, so a restarted one cannot be judged by comparing bits with an
# undisturbed one either; a time step that branches on such a number goes another way each time. With one rank, and so
# with a communicator of one, it is the same each time.
#
# Seen with Debian 12's libmumps-5.5 5.5.1-1, reference BLAS, one thread, Open MPI 4.1.4 (x86-64).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download libmumps-5.5=5.5.1-1 libmumps-dev=5.5.1-1 libmumps-headers-dev=5.5.1-1 libscalapack-openmpi2.2 \
    libscotch-7.0 libptscotch-7.0 libmetis5 liblapack3 libblas3 libgfortran5 libquadmath0 openmpi-bin=4.1.4-3+b1 \
    openmpi-common=4.1.4-3 libopenmpi3=4.1.4-3+b1 libopenmpi-dev=4.1.4-3+b1 libpmix2=4.2.2-1+deb12u1 \
    libevent-core-2.1-7 libevent-pthreads-2.1-7 libfabric1 libmunge2 libnl-3-200 libnl-route-3-200 \
    libpsm-infinipath1 libpsm2-2 librdmacm1 libibverbs1 libucx0=1.13.1-1 libhwloc15 libnuma1
for package in *.deb; do dpkg -x "$package" root; done
lib=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$lib:$lib/blas:$lib/lapack OMP_NUM_THREADS=1
export OPAL_PREFIX=$folder/root/usr PMIX_MCA_mca_base_component_path=$lib/pmix2/lib/pmix
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

cat >solve.c <<'C'
#include <dmumps_c.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { EDGE = 20, N = EDGE * EDGE * EDGE };
static int row[7 * N], column[7 * N];
static double value[7 * N], x[N];
static int entries;
static void add(int i, int j, double v) { row[entries] = i + 1, column[entries] = j + 1, value[entries++] = v; }
int main(int argc, char** argv) {
    const int steps[3] = {1, EDGE, EDGE * EDGE};
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    DMUMPS_STRUC_C id;
    memset(&id, 0, sizeof id);
    id.comm_fortran = MPI_Comm_c2f(MPI_COMM_WORLD);
    id.par = 1;
    id.job = -1;
    dmumps_c(&id);
    srand48(1);
    for (int i = 0; i < N; ++i) {
        add(i, i, 6.1 + drand48());
        for (int k = 0; k < 3; ++k) {
            int at = i / steps[k] % EDGE;
            if (at > 0) add(i, i - steps[k], -drand48());
            if (at < EDGE - 1) add(i, i + steps[k], -drand48());
        }
        x[i] = drand48();
    }
    if (rank == 0) id.n = N, id.nnz = entries, id.irn = row, id.jcn = column, id.a = value, id.rhs = x;
    for (int k = 0; k < 3; ++k) id.icntl[k] = -1; /* says nothing */
    id.job = 6;
    dmumps_c(&id);
    if (rank == 0) {
        uint64_t sum = 0, bits;
        for (int i = 0; i < N; ++i) memcpy(&bits, &x[i], 8), sum = sum * 31 + bits;
        printf("error %d, solution %016lx, in its middle %.10f\n", id.infog[0], (unsigned long)sum, x[N / 2]);
    }
    MPI_Finalize();
    return 0;
}
C
gcc -O1 -I"$folder/root/usr/include" -I"$lib/openmpi/include" solve.c -o solve -L"$lib" -ldmumps -lmpi \
    -Wl,--allow-shlib-undefined
different() {  # of six runs with so many ranks
    for _ in 1 2 3 4 5 6; do
        timeout -k 5 120 "$folder/root/usr/bin/mpiexec.openmpi" --oversubscribe --mca mpi_yield_when_idle 1 -n "$1" ./solve
    done >"said.$1"
    grep -q '^error 0,' "said.$1"
    sort -u "said.$1" | wc -l
}
one=$(different 1) four=$(different 4)
cat said.4
echo "different solutions in six runs: one rank $one, four ranks $four"
[[ $one == 1 && $four -gt 1 ]] || { echo "it has changed"; exit 1; }
