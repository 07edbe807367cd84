#!/usr/bin/env bash
# gcc's OpenMP (libgomp): reduction(+: sum) adds the threads' parts in the order in which the threads come to the end
# of the loop, one atomic addition each. So with the same number of threads and schedule(static) a sum's last bits, and
# with cancellation all of it, are those of who was late: of 1e16, 1 and -1e16 the sum is 0 or 1.
#
# The guess: with a fixed number of threads and a static schedule each thread has the same part each time, so the sum is
# the same; only schedule(dynamic) makes it a lottery.
#
# Where it matters: programs with MPI and threads whose results are compared to the last bit: what delays a thread, such
# as a checkpoint, a restart, or another job on the node, may change them. Sum the parts in an array by thread number.
#
# Seen with gcc 12.2.0-14+deb12u1 and libgomp1 of the same (Debian 12, x86-64), three threads that are made to come in
# two orders, by sleeping.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download libgomp1=12.2.0-14+deb12u1
dpkg -x libgomp1_*.deb root
export LD_LIBRARY_PATH=$folder/root/usr/lib/x86_64-linux-gnu

cat >sum.c <<'C'
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
    const double parts[3] = {1e16, 1, -1e16};
    double sum = 0;
    omp_set_dynamic(0);
    omp_set_num_threads(3);
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int i = 0; i < 3; ++i) {
        usleep(500000 * (argv[1][i] - '0'));
        sum += parts[i];
    }
    printf("%g\n", sum);
    return argc == 2 ? 0 : 1;
}
C
gcc -fopenmp sum.c -o sum
changed=0
for turns in 012 021 012 021; do # who comes first, second, third
    sum=$(./sum "$turns")
    echo "libgomp1 12.2.0-14+deb12u1, threads 0, 1, 2 come as number $turns: the sum is $sum"
    wanted=0
    [[ $turns == 012 ]] || wanted=1
    [[ $sum == "$wanted" ]] || { echo "changed: was $wanted"; changed=1; }
done
exit $changed
