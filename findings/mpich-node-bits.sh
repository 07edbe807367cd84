#!/usr/bin/env bash
# MPICH 4.0.2: the last bits of MPI_Allreduce and MPI_Reduce of doubles depend on which ranks share a node: the same
# program, ranks and data give other sums on one node, on two with the ranks in halves, and on two with the ranks in
# turns. The variables with the right names do not help: MPIR_CVAR_ENABLE_SMP_COLLECTIVES=0 and
# MPIR_CVAR_ENABLE_SMP_ALLREDUCE=0 change nothing. MPIR_CVAR_NOLOCAL=1 does help (each rank is alone on its node, which
# costs the shared memory), and so does MPI_Iallreduce in the place of MPI_Allreduce.
#
# The guess: the same number of ranks and the same build give the same bits, wherever the ranks are; and collectives
# that know nothing of nodes are had by switching off those that do.
#
# Where it matters: a job that is continued on other nodes, or gets its ranks by slot today and by node tomorrow, has
# other results, without anything being wrong. Fermata sets NOLOCAL where a rank has copies, which must agree.
#
# Seen with Debian 12's mpich 4.0.2-3+b1 (x86-64), six ranks; two names of one machine stand for two nodes.
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
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { COUNT = 1000 };
static double mine[COUNT], sum[COUNT];
static void say(const char* how) {
    uint64_t all = 0;
    for (int i = 0; i < COUNT; ++i) {
        uint64_t bits;
        memcpy(&bits, sum + i, sizeof bits);
        all = all * 1099511628211u + bits;
    }
    printf("%s %016llx ", how, (unsigned long long)all);
}
int main(int argc, char** argv) {
    int rank;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    srand48(rank + 1);
    for (int i = 0; i < COUNT; ++i) mine[i] = (drand48() - 0.5) / (drand48() + 1e-3);
    MPI_Allreduce(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) say("Allreduce");
    MPI_Reduce(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) say("Reduce");
    MPI_Iallreduce(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 0) say("Iallreduce");
    MPI_Finalize();
    return 0;
}
C
gcc -I"$folder/root/usr/include/x86_64-linux-gnu/mpich" sum.c -o sum "$lib/libmpich.so.12"
run() {  # variable, hosts
    env "$1" timeout 60 root/usr/bin/mpiexec.mpich -launcher fork -hosts "$2" -n 6 ./sum 2>/dev/null
}
changed=0
echo "mpich 4.0.2-3+b1: hashes of 1000 sums of six ranks on one node, on two in halves, on two in turns"
for variable in plain=1 MPIR_CVAR_ENABLE_SMP_COLLECTIVES=0 MPIR_CVAR_ENABLE_SMP_ALLREDUCE=0 MPIR_CVAR_NOLOCAL=1; do
    echo "$variable:"
    for hosts in localhost localhost:3,127.0.0.2:3 localhost:1,127.0.0.2:1; do run "$variable" "$hosts"; echo; done |
        tee said
    for column in 2 4 6; do
        kinds=$(awk -v c=$column '{print $c}' said | sort -u | wc -l)
        wanted=3
        [[ $variable != MPIR_CVAR_NOLOCAL=1 && $column != 6 ]] || wanted=1
        [[ $kinds == 1 || $wanted != 1 ]] || { echo "changed: $kinds kinds in column $column, was 1"; changed=1; }
        [[ $kinds != 1 || $wanted == 1 ]] || { echo "changed: 1 kind in column $column, were more"; changed=1; }
    done
done
exit $changed
