#!/usr/bin/env bash
# ld.so with an auditor (LD_AUDIT) lays out static TLS before it has loaded the program's libraries, and leaves a
# reserve of some 1.7 KiB for all of them. A library with larger thread-locals of the initial-exec model, which
# loads well without an auditor, then ends the program: jemalloc of Debian 12 (2632 bytes), preloaded into
# /bin/true, together with an auditor that does nothing. The tunable glibc.rtld.optional_static_tls makes room.
#
# Where it matters: tools of HPC that are auditors (Spindle, library tracers), and Fermata's own
# (src/split/loader/static_tls.h).
#
# Seen with glibc 2.36-9+deb12u14 and libjemalloc2 5.3.0-1 (Debian 12, x86-64): exit code 127 and
#     error while loading shared libraries: …: cannot allocate memory in static TLS block
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -qq libjemalloc2=5.3.0-1 >/dev/null
dpkg -x libjemalloc2_*.deb .
jemalloc=$(find "$folder" -name libjemalloc.so.2)
cat >auditor.c <<'C'
#define _GNU_SOURCE
#include <link.h>
unsigned la_version(unsigned version) { return version; }
C
gcc -shared -fPIC auditor.c -o auditor.so

echo "glibc: $(dpkg-query -W -f='${Version}' libc6); jemalloc: 5.3.0-1"
LD_PRELOAD=$jemalloc /bin/true && echo "jemalloc alone: loads"
LD_AUDIT=$folder/auditor.so /bin/true && echo "auditor alone: loads"

code=0
LD_AUDIT=$folder/auditor.so LD_PRELOAD=$jemalloc /bin/true 2>said || code=$?
cat said
if [[ $code != 127 ]] || ! grep -q "cannot allocate memory in static TLS block" said; then
    echo "changed: both together end with code $code"
    exit 1
fi
echo "both together: exit code 127"

GLIBC_TUNABLES=glibc.rtld.optional_static_tls=4096 LD_AUDIT=$folder/auditor.so LD_PRELOAD=$jemalloc /bin/true
echo "both together, with optional_static_tls=4096: loads"
