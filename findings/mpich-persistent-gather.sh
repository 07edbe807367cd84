#!/usr/bin/env bash
# MPICH 4.0.2 and 4.1.3: a request of MPI_Gather_init gathers what was in the send buffers when it was made, at each
# start again, without an error: what the program has put there since is never sent. MPI_Allgather_init of 4.0.2 does
# so for the part of other ranks, from the second start on. Reductions by MPI_Allreduce_init are right, and from 4.2.3
# on all are.
#
# The guess: a persistent collective is one plan for many data; buffers are read at MPI_Start.
#
# Where it matters: programs that were moved to MPI-4 for speed: their diagnostics, and what rank 0 collects for a
# restart file, are those of before the first step. A layer over MPI that starts an ordinary collective in the place of
# a persistent one, as Fermata does, gives other results than the library itself: the right ones.
#
# Seen with Debian 12's mpich 4.0.2-3+b1, and mpich 4.1.3 and 4.2.3 of PyPI (x86-64), two ranks.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download mpich=4.0.2-3+b1 libmpich12=4.0.2-3+b1 libmpich-dev=4.0.2-3+b1 \
    libucx0=1.13.1-1 libhwloc15 libnuma1 libslurm38
for package in *.deb; do dpkg -x "$package" 4.0.2; done
declare -A lib=([4.0.2]=$folder/4.0.2/usr/lib/x86_64-linux-gnu)
for version in 4.1.3 4.2.3; do
    python3 -m venv "$version"
    "$version/bin/pip" -q install --no-deps "mpich==$version" 2>/dev/null
    lib[$version]=$(dirname "$(find "$folder/$version" -name libmpi.so.12 | head -1)")
done
cat >gather.c <<'C'
#include <mpi.h>
#include <stdio.h>
static int rank, mine, all[2];
static void twice(const char* name, MPI_Request request) {
    for (int step = 1; step <= 2; ++step) {
        mine = 100 * step + rank;
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (rank == 0) printf("%s%d %d%s", step == 1 ? name : "", all[0], all[1], step == 1 ? ", " : "; ");
    }
    MPI_Request_free(&request);
}
int main(int argc, char** argv) {
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mine = -1;
    MPI_Gather_init(&mine, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    twice("gather ", request);
    mine = -1;
    MPI_Allgather_init(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    twice("allgather ", request);
    mine = -1;
    all[1] = 0;
    MPI_Allreduce_init(&mine, all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    twice("sum ", request);
    MPI_Finalize();
    return 0;
}
C
changed=0
expect() {  # version, its mpi.h, library and mpiexec, wanted
    local said
    gcc -I"$2" gather.c -o "gather.$1" "${lib[$1]}/$3" -Wl,-rpath-link,"${lib[$1]}"
    said=$(LD_LIBRARY_PATH=${lib[$1]} timeout 60 "$4" -n 2 "./gather.$1" 2>/dev/null)
    echo "mpich $1: $said"
    [[ $said == "$5" ]] || { echo "changed: was '$5'"; changed=1; }
}
right="gather 100 101, 200 201; allgather 100 101, 200 201; sum 201 0, 401 0; "
expect 4.0.2 4.0.2/usr/include/x86_64-linux-gnu/mpich libmpich.so.12 4.0.2/usr/bin/mpiexec.mpich \
    "gather -1 -1, -1 -1; allgather 100 101, 200 101; sum 201 0, 401 0; "
expect 4.1.3 4.1.3/include libmpi.so.12 4.1.3/bin/mpiexec "gather -1 -1, -1 -1; ${right#*; }"
expect 4.2.3 4.2.3/include libmpi.so.12 4.2.3/bin/mpiexec "$right"
exit $changed
