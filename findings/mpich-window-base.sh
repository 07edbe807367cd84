#!/usr/bin/env bash
# MPICH 4.0.2 over UCX 1.13 (Debian 12's): a window of MPI_Win_create whose memory does not begin at a multiple of 16 is
# read and written at the wrong place by other ranks: MPI_Put, MPI_Get and MPI_Accumulate go to the base rounded down to
# 16, so up to 15 bytes too low, into what lies before the window, without an error. So do windows of MPI_Win_allocate
# whose sizes are no multiples of 16: the parts of a node's ranks lie one behind the other. An array of malloc begins at
# a multiple of 16, so most programs never notice.
#
# It comes of UCX's registration cache, which keeps regions in units of 16 bytes: without UCX's memory hooks there is no
# cache, and all is right (UCX_MEM_MMAP_HOOK_MODE=none, a way around it).
#
# The guess: any memory can be a window (the standard has no alignment for it), and a Put that went astray would have
# been seen long ago, in the library of a distribution.
#
# Where it matters: windows over a part of an array (from its second double on), over a Fortran array or an automatic
# variable: data is wrong, or a neighbouring variable is. A new build, or a job that began on another
# library and is continued on this one, makes such an error come and go.
#
# Seen with Debian 12's mpich 4.0.2-3+b1 and libucx0 1.13.1-1 (x86-64), two ranks on one machine, over shared memory and
# over TCP.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download mpich=4.0.2-3+b1 libmpich12=4.0.2-3+b1 libmpich-dev=4.0.2-3+b1 \
    libucx0=1.13.1-1 libhwloc15 libnuma1 libslurm38
for package in *.deb; do dpkg -x "$package" root; done
lib=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$lib

cat >window.c <<'C'
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* A window of 32 integers in the middle of an array; element 16 of it is put, added to, and got. */
int main(int argc, char** argv) {
    enum { BASE = 512, PLACE = 16 };
    static _Alignas(64) int32_t array[1024];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int shift = 0; shift < 5; ++shift) {
        int32_t put = 1, add = 5000, got = -1, *base = array + BASE + shift;
        int put_at = -1, added_at = -1;
        MPI_Win window;
        for (int i = 0; i < 1024; ++i) array[i] = 0;
        MPI_Win_create(base, 32 * 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        MPI_Win_fence(0, window);
        if (rank == 1) MPI_Put(&put, 1, MPI_INT32_T, 0, PLACE, 1, MPI_INT32_T, window);
        MPI_Win_fence(0, window);
        for (int i = 0; i < 1024; ++i)
            if (array[i] == 1) put_at = (int)(array + i - base);
        for (int i = 0; i < 1024; ++i) array[i] = 0;
        MPI_Win_fence(0, window);
        if (rank == 1) MPI_Accumulate(&add, 1, MPI_INT32_T, 0, PLACE, 1, MPI_INT32_T, MPI_SUM, window);
        MPI_Win_fence(0, window);
        for (int i = 0; i < 1024; ++i)
            if (array[i] == 5000) added_at = (int)(array + i - base);
        for (int i = 0; i < 1024; ++i) array[i] = (int)(array + i - base);
        MPI_Win_fence(0, window);
        if (rank == 1) MPI_Get(&got, 1, MPI_INT32_T, 0, PLACE, 1, MPI_INT32_T, window);
        MPI_Win_fence(0, window);
        MPI_Win_free(&window);
        MPI_Bcast(&got, 1, MPI_INT32_T, 1, MPI_COMM_WORLD);
        int32_t *mine, theirs = -1;
        MPI_Win_allocate(28, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
        for (int i = 0; i < 7; ++i) mine[i] = 100 * rank + i;
        MPI_Win_fence(0, window);
        if (rank == 0) MPI_Get(&theirs, 1, MPI_INT32_T, 1, 0, 1, MPI_INT32_T, window);
        MPI_Win_fence(0, window);
        MPI_Win_free(&window);
        if (rank == 0 && shift == 0) printf("allocated, 28 bytes each: got %d of 100\n", theirs);
        if (rank == 0)
            printf("base %% 16 = %2d: element 16 was put to %d, added to %d, got from %d\n",
                   (int)((uintptr_t)base % 16), put_at, added_at, got);
    }
    MPI_Finalize();
    return 0;
}
C
gcc -I"$folder/root/usr/include/x86_64-linux-gnu/mpich" window.c -o window "$lib/libmpich.so.12"
changed=0
cat >wanted <<'W'
allocated, 28 bytes each: got 4 of 100
base % 16 =  0: element 16 was put to 16, added to 16, got from 16
base % 16 =  4: element 16 was put to 15, added to 15, got from 15
base % 16 =  8: element 16 was put to 14, added to 14, got from 14
base % 16 = 12: element 16 was put to 13, added to 13, got from 13
base % 16 =  0: element 16 was put to 16, added to 16, got from 16
W
sed 's/to 1[345]/to 16/g; s/from 1[345]/from 16/; s/got 4 of/got 100 of/' wanted >right
for transport in all tcp,self; do
    for hooks in bistro none; do
        UCX_MEM_MMAP_HOOK_MODE=$hooks UCX_TLS=$transport timeout 60 root/usr/bin/mpiexec.mpich -n 2 ./window >said 2>/dev/null
        echo "mpich 4.0.2-3+b1, UCX_TLS=$transport, hooks $hooks:"
        cat said
        expected=wanted
        [ $hooks = none ] && expected=right
        diff -q said $expected >/dev/null || { echo "changed: was"; cat $expected; changed=1; }
    done
done
exit $changed
