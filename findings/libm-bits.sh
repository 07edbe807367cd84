#!/usr/bin/env bash
# glibc's sin, cos, exp, pow and atan have other last bits on a CPU without FMA than on one with it: the library has
# several versions of each and chooses by the CPU when a program is loaded. Some 0.07 % of the values differ (of atan
# half as many, of log and tan hardly any), with the same binary, the same libm and no compiler option. (Switched off
# here by a tunable, the same as on such a CPU, or in an emulator or virtual machine that hides FMA.)
#
# The guess: compiled for plain x86-64, a program computes the same everywhere, as its instructions are the same; only
# -march=native or MKL look at the CPU. And glibc's functions are correctly rounded or at least fixed by their version.
#
# Where it matters: partitions with unlike nodes; results that are compared to the last bit between machines, or between
# a job that ran through and one whose restart file was read on another node. A job that goes on from an image of its
# memory keeps the functions it had chosen, and so its bits, on a CPU that has their instructions.
#
# Seen with libc6 2.36-9+deb12u14 (Debian 12, x86-64).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download libc6=2.36-9+deb12u14
dpkg -x libc6_*.deb root
lib=$folder/root/lib/x86_64-linux-gnu
cat >functions.c <<'C'
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
    double (*const functions[])(double) = {sin, cos, tan, exp, log, atan, sqrt};
    srand48(1);
    for (int i = 0; i < 100000; ++i) {
        double x = drand48() * 20;
        for (int f = 0; f < 7; ++f) printf("%a ", functions[f](x));
        printf("%a\n", pow(x, 1.3));
    }
    return 0;
}
C
gcc -O1 -fno-builtin functions.c -o functions -lm
if ! grep -qw fma /proc/cpuinfo; then
    echo "this CPU has no FMA: nothing to compare"
    exit 0
fi
run() { "$lib/ld-linux-x86-64.so.2" --library-path "$lib" ./functions; }
run >with
GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA_Usable,-FMA,-FMA4_Usable,-FMA4,-AVX2_Usable,-AVX2 run >without
run >again
cmp with again || { echo "changed: two runs differ"; exit 1; }
echo "libc6 2.36-9+deb12u14, of 100000 values each, other ones without FMA:"
paste -d' ' with without | awk '
    { for (f = 1; f <= 8; ++f) other[f] += $f != $(f + 8) }
    END {
        split("sin cos tan exp log atan sqrt pow", name, " ")
        for (f = 1; f <= 8; ++f) printf "%s %d%s", name[f], other[f], f < 8 ? ", " : "\n"
        exit !(other[1] && other[2] && other[4] && other[8] && other[7] == 0)
    }' || { echo "changed: sin, cos, exp and pow had others, sqrt none"; exit 1; }
