#!/usr/bin/env bash
# CRIU: an alarm (alarm, setitimer) or a POSIX timer that goes off once, while a process is being dumped, is lost: after
# the restore it never comes. Signals that wait are noted first, then the memory is written, then the timers are asked,
# and this one is no longer set. The more memory, the longer that time is.
#
# The guess: an alarm is either still to come or waits, so the restored process hears it once, as it would have without
# the dump.
#
# Where it matters: programs that end a wait by an alarm (time-outs, "save all ten minutes" set anew each time) stand
# still after a restore, now and then, the bigger the more often. One that repeats by itself goes on.
#
# Seen with Debian 13's criu 4.1.1-1 on Linux 6.18 (x86-64), a process of 1 GiB. As root; 1.2 GB of disk.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Debian 13's, with its C library, whatever this machine is.
mkdir -p apt/lists/partial apt/archives/partial
echo "deb [trusted=yes] http://deb.debian.org/debian trixie main" >apt/sources
there() {
    apt-get -qq -o Dir::Etc::SourceList="$folder/apt/sources" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$folder/apt/lists" \
        -o Dir::Cache="$folder/apt" -o APT::Sandbox::User=root "$@"
}
there update
there download criu=4.1.1-1 libc6 libgcc-s1 libbsd0 libmd0 libffi8 libgmp10 libgnutls30t64 libhogweed6t64 libidn2-0 libjansson4 libmnl0 \
    libnet1 libnettle8t64 libnftables1 libnftnl11 libnl-3-200 libp11-kit0 libprotobuf-c1 libtasn1-6 libunistring5 libuuid1 \
    libxtables12 2>/dev/null
for package in *.deb; do dpkg -x "$package" root; done
lib=$folder/root/usr/lib/x86_64-linux-gnu
criu() { "$lib/ld-linux-x86-64.so.2" --library-path "$lib" root/usr/sbin/criu "$@" >criu.out 2>&1 || { cat criu.out; exit 1; }; }

cat >once.c <<'C'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile int heard;
static void hear(int number) { (void)number, ++heard; }
int main(int argc, char** argv) { /* alarm|timer MILLISECONDS */
    long ms = argc > 2 ? atol(argv[2]) : 0;
    memset(malloc((size_t)1 << 30), 1, (size_t)1 << 30);
    signal(SIGALRM, hear);
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, NULL, &timer); /* its signal is SIGALRM */
    if (!strcmp(argv[1], "alarm"))
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {ms / 1000, ms % 1000 * 1000}}, NULL);
    else
        timer_settime(timer, 0, &(struct itimerspec){{0, 0}, {ms / 1000, ms % 1000 * 1000000}}, NULL);
    fclose(fopen("ready", "w"));
    while (access("go", F_OK) != 0) nanosleep(&(struct timespec){0, 1000000}, NULL);
    printf("%d\n", heard);
    return 0;
}
C
gcc -O1 -w once.c -o once
heard() {  # what, milliseconds, dumped or not
    rm -rf images ready go
    mkdir images
    setsid ./once "$1" "$2" </dev/null >out 2>/dev/null &
    process=$!
    until [[ -e ready ]]; do sleep 0.002; done
    if [[ $3 == dumped ]]; then
        criu dump -t $process -D images -o log
        wait $process 2>/dev/null || true
        criu restore -d -D images -o log
    fi
    sleep 1
    touch go
    until [[ -s out ]]; do sleep 0.01; done
    while [[ -e /proc/$process ]] && ! grep -q '^State:.Z' /proc/$process/status; do sleep 0.01; done
    cat out
}
changed=0
for what in alarm timer; do
    echo "$what, natively: heard $(heard $what 200 natively)"
    lost=0
    for ms in 100 200 300 400 500; do
        count=$(heard $what $ms dumped)
        echo "$what after $ms ms, dumped and restored: heard $count"
        [[ $count != 0 ]] || lost=1
    done
    [[ $lost == 1 ]] || changed=1
done
[[ $changed == 0 ]] || { echo "it has changed"; exit 1; }
