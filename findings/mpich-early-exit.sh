#!/usr/bin/env bash
# MPICH: when one rank ends by exit(0) without MPI_Finalize, mpiexec kills the other ranks in the middle of their work,
# writes nothing, and ends with exit code 0 itself. (Its proxy takes the closed connection for the end of the job, and
# what it kills then is not counted.) Open MPI's kills them, too, but says so and ends with 1.
#
# The guess: the others go on, or wait in vain, or the job fails; a job whose ranks were killed does not succeed.
#
# Where it matters: loops and batch scripts that start a job again until it has succeeded, and take what half of it has
# written for results; ranks that leave early on purpose (sys.exit, STOP, a rank with no work, one that has saved).
#
# Seen with Debian 12's mpich 4.0.2-3+b1 (x86-64), 8 to 10 of 10 times; mpich 4.2.3 of PyPI the same, 5.0.2 now and
# then with exit code 9. Beside it Debian 12's openmpi 4.1.4-3+b1.
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

cat >early.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) exit(0);
    sleep(3); /* work that needs nobody else */
    FILE* file = fopen("result", "w");
    fprintf(file, "42\n");
    fclose(file);
    exit(0);
}
C
gcc -I"$folder/root/usr/include/x86_64-linux-gnu/mpich" early.c -o mpich "$lib/libmpich.so.12"
gcc -I"$lib/openmpi/include" early.c -o openmpi "$lib/libmpi.so.40" -Wl,-rpath-link,"$lib"
run() {  # library
    local oversubscribe=()
    [[ $1 == mpich ]] || oversubscribe=(--oversubscribe)
    rm -f result
    code=0
    timeout 60 "root/usr/bin/mpiexec.$1" "${oversubscribe[@]}" -n 2 "./$1" >said 2>&1 || code=$?
}
silent=0
for _ in $(seq 1 10); do
    run mpich
    [[ $code != 0 || -s said || -f result ]] || silent=$((silent + 1))
done
echo "mpich 4.0.2-3+b1: $silent of 10 jobs: exit code 0, nothing said, and no result of rank 0"
run openmpi
echo "openmpi 4.1.4-3+b1: exit code $code, $(grep -m1 -o 'exiting improperly' said || true)," \
    "$([[ -f result ]] && echo a || echo no) result of rank 0"
((silent >= 5)) || { echo "changed: were 10"; exit 1; }
[[ $code == 1 && ! -f result ]] || { echo "changed: was exit code 1"; exit 1; }
