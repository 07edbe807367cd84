#!/usr/bin/env bash
# FFTW with FFTW_ESTIMATE: the last bits of one row's transform depend on how many rows the plan has (one or more), on
# whether they lie behind or beside each other, and on whether the arrays begin at a multiple of 16 or 8 bytes later:
# the planner takes other codelets. For 128 elements 111 of 128 results are other ones in a plan of two rows than alone.
#
# The guess: FFTW_ESTIMATE measures nothing, so the same length, data and library give the same bits; only FFTW_MEASURE
# is a lottery.
#
# Where it matters: programs that divide rows among ranks: with twice as many ranks a rank has one row in the place of
# two, and all results differ in their last digits; restart files that are read into arrays at other addresses. An
# image of the process keeps plans and addresses.
#
# Seen with Debian 12's libfftw3-double3 3.3.10-1 (x86-64 with AVX2 or AVX-512).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download libfftw3-double3=3.3.10-1 libfftw3-dev=3.3.10-1
for package in *.deb; do dpkg -x "$package" root; done
lib=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$lib

cat >rows.c <<'C'
#include <fftw3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { ROWS = 8, MOST = 512 };
/* The transform of the first of `rows` rows; the others lie behind it, or beside it (each `step`-th element). */
static void transform(int n, int rows, int beside, int shift, fftw_complex* result) {
    char* memory = fftw_malloc(2 * sizeof(fftw_complex) * ROWS * MOST + 64);
    fftw_complex *in = (fftw_complex*)(memory + shift), *out = in + ROWS * MOST;
    int step = beside ? rows : 1, next = beside ? 1 : n;
    fftw_plan plan =
        fftw_plan_many_dft(1, &n, rows, in, NULL, step, next, out, NULL, step, next, FFTW_FORWARD, FFTW_ESTIMATE);
    srand48(1);
    for (int row = 0; row < rows; ++row)
        for (int i = 0; i < n; ++i) {
            in[row * next + i * step][0] = drand48();
            in[row * next + i * step][1] = drand48();
        }
    fftw_execute(plan);
    for (int i = 0; i < n; ++i) memcpy(result[i], out[i * step], sizeof(fftw_complex));
    fftw_destroy_plan(plan);
    fftw_free(memory);
    fftw_cleanup();
}
int main(void) {
    static fftw_complex alone[MOST], other[MOST];
    int all[4] = {0, 0, 0, 0};
    for (int n = 64; n <= MOST; n *= 2) {
        int differ[4] = {0, 0, 0, 0};
        transform(n, 1, 0, 0, alone);
        for (int way = 0; way < 4; ++way) {
            transform(n, way == 1 || way == 2 ? 2 : 1, way == 2, way == 3 ? 8 : 0, other);
            for (int i = 0; i < n; ++i) differ[way] += memcmp(alone[i], other[i], sizeof(fftw_complex)) != 0;
            all[way] += differ[way];
        }
        printf("%d elements: again %d, of two rows %d, of two beside each other %d, 8 bytes later %d are others\n", n,
               differ[0], differ[1], differ[2], differ[3]);
    }
    return all[0] == 0 && all[1] > 0 && all[2] > 0 && all[3] > 0 ? 0 : 1;
}
C
gcc -I"$folder/root/usr/include" rows.c -o rows "$lib/libfftw3.so.3" -lm
echo "libfftw3-double3 3.3.10-1, FFTW_ESTIMATE, compared with one row at a multiple of 16:"
./rows || { echo "changed: all but the first column had others"; exit 1; }
