#!/usr/bin/env bash
# MPICH: MPI_Allreduce with MPI_MAX of doubles, one of which is NaN, returns MPI_SUCCESS and other values on other
# ranks: NaN on one, a number on the next. (Every rank compares its partner's value with its own, "a > b ? a : b", and
# with NaN that depends on which comes first; recursive doubling is not made for an operation that does not commute.)
#
# The guess: whatever NaN does, all ranks get the same from one MPI_Allreduce, as the standard advises, so that they
# take the same branch afterwards.
#
# Where it matters: "if (largest residual > limit) stop", time steps from a global maximum, the choice of a checkpoint
# that all ranks agree on: after one NaN the ranks go different ways and wait for each other, which looks like a lost
# message. Reduce to one rank and broadcast, or add up a flag of isnan.
#
# Seen with Debian 12's mpich 4.0.2-3+b1 (x86-64), and with mpich 5.0.2 of PyPI. Open MPI 4.1.4 and 5.0.11 gave all
# ranks the same (which one depends on the rank that has the NaN).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download mpich=4.0.2-3+b1 libmpich12=4.0.2-3+b1 libmpich-dev=4.0.2-3+b1 \
    libucx0=1.13.1-1 libhwloc15 libnuma1 libslurm38
for package in *.deb; do dpkg -x "$package" 4.0.2; done
python3 -m venv 5.0.2
5.0.2/bin/pip -q install --no-deps mpich==5.0.2 2>/dev/null
declare -A lib=([4.0.2]=$folder/4.0.2/usr/lib/x86_64-linux-gnu)
lib[5.0.2]=$(dirname "$(find "$folder/5.0.2" -name libmpi.so.12 | head -1)")
cat >largest.c <<'C'
#include <math.h>
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
    int rank, size, same = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int bad = 0; bad < size; ++bad) {
        double mine = rank == bad ? NAN : rank + 1, largest, all[16];
        MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Gather(&largest, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (rank != 0) continue;
        printf("NaN on rank %d: the maximum is", bad);
        for (int each = 0; each < size; ++each) {
            printf(" %g", all[each]);
            same &= isnan(all[each]) == isnan(all[0]) && (isnan(all[0]) || all[each] == all[0]);
        }
        printf(" on ranks 0 to %d\n", size - 1);
    }
    if (rank == 0) printf("%s\n", same ? "all the same" : "not the same on all ranks");
    MPI_Finalize();
    return 0;
}
C
gcc -I4.0.2/usr/include/x86_64-linux-gnu/mpich largest.c -o largest.4.0.2 "${lib[4.0.2]}/libmpich.so.12" \
    -Wl,-rpath-link,"${lib[4.0.2]}"
gcc -I5.0.2/include largest.c -o largest.5.0.2 "${lib[5.0.2]}/libmpi.so.12"
changed=0
for version in 4.0.2 5.0.2; do
    mpiexec=$version/bin/mpiexec
    [[ -x $mpiexec ]] || mpiexec=$version/usr/bin/mpiexec.mpich
    echo "mpich $version:"
    LD_LIBRARY_PATH=${lib[$version]} timeout 60 "$mpiexec" -n 4 "./largest.$version" 2>/dev/null | tee said
    grep -q "not the same" said || { echo "changed: they were not the same"; changed=1; }
done
exit $changed
