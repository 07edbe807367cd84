#!/usr/bin/env bash
# MPICH: what the status of a finished request says of a message is wrong for
#  - MPI_Isendrecv: in 4.0.2 nothing is filled in (source 0, tag 0, count 0, whatever came); in 4.1.3, 4.2.3 and 5.0.2
#    source and count are right, and the tag is a number of the library's own, other than the message's
#  - MPI_Irecv from MPI_PROC_NULL: source 0 and tag 0 in 4.0.2, not MPI_PROC_NULL and MPI_ANY_TAG. MPI_Recv is right.
#
# The guess: a status is right when the data is.
#
# Where it matters: exchanges at the border of a grid that tell by status.MPI_SOURCE whether a neighbour was there, and
# programs that sort what came by its tag: the data of one neighbour goes where another one's belongs. Whoever records
# messages by their statuses (logs, tools) has the wrong ones.
#
# Seen with Debian 12's mpich 4.0.2-3+b1 and mpich 4.1.3, 4.2.3, 5.0.2 of PyPI (x86-64), two ranks.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download mpich=4.0.2-3+b1 libmpich12=4.0.2-3+b1 libmpich-dev=4.0.2-3+b1 \
    libucx0=1.13.1-1 libhwloc15 libnuma1 libslurm38
for package in *.deb; do dpkg -x "$package" 4.0.2; done
declare -A lib=([4.0.2]=$folder/4.0.2/usr/lib/x86_64-linux-gnu)
for version in 4.1.3 4.2.3 5.0.2; do
    python3 -m venv "$version"
    "$version/bin/pip" -q install --no-deps "mpich==$version" 2>/dev/null
    lib[$version]=$(dirname "$(find "$folder/$version" -name libmpi.so.12 | head -1)")
done
cat >status.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static int count_of(MPI_Status* status) {
    int count = -1;
    MPI_Get_count(status, MPI_INT, &count);
    return count;
}
int main(int argc, char** argv) {
    int rank, mine, other = -1;
    MPI_Status status;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mine = rank + 40;
    memset(&status, 0, sizeof status);
    MPI_Isendrecv(&mine, 1, MPI_INT, 1 - rank, 345, &other, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                  &request);
    MPI_Wait(&request, &status);
    if (rank == 0)
        printf("Isendrecv: %d from %d, tag %s, count %d; ", other, status.MPI_SOURCE,
               status.MPI_TAG == 345 ? "345" : "wrong", count_of(&status));
    for (int waits = 0; waits < 2; ++waits) {
        memset(&status, 0, sizeof status);
        if (waits) {
            MPI_Irecv(&other, 1, MPI_INT, MPI_PROC_NULL, 345, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, &status);
        } else {
            MPI_Recv(&other, 1, MPI_INT, MPI_PROC_NULL, 345, MPI_COMM_WORLD, &status);
        }
        if (rank == 0)
            printf("%s of nobody: %s%s", waits ? "Irecv" : "Recv",
                   status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG ? "right" : "wrong",
                   waits ? "\n" : "; ");
    }
    MPI_Finalize();
    return 0;
}
C
changed=0
expect() {  # version, its mpi.h, library and mpiexec, wanted
    local said
    gcc -I"$2" status.c -o "status.$1" "${lib[$1]}/$3" -Wl,-rpath-link,"${lib[$1]}"
    said=$(LD_LIBRARY_PATH=${lib[$1]} timeout 60 "$4" -n 2 "./status.$1" 2>/dev/null)
    echo "mpich $1: $said"
    [[ $said == "$5" ]] || { echo "changed: was '$5'"; changed=1; }
}
expect 4.0.2 4.0.2/usr/include/x86_64-linux-gnu/mpich libmpich.so.12 4.0.2/usr/bin/mpiexec.mpich \
    "Isendrecv: 41 from 0, tag wrong, count 0; Recv of nobody: right; Irecv of nobody: wrong"
for version in 4.1.3 4.2.3 5.0.2; do
    expect "$version" "$version/include" libmpi.so.12 "$version/bin/mpiexec" \
        "Isendrecv: 41 from 1, tag wrong, count 1; Recv of nobody: right; Irecv of nobody: right"
done
exit $changed
