#!/usr/bin/env bash
# A job of N agents without ranks below M real node daemons and a real root: its start, one checkpoint, its end.
#   bench/scale/run.sh BUILD N M
# Prints seconds, and of the root: CPU time (ticks of 10 ms), greatest memory, descriptors.
set -euo pipefail
build=$(realpath "$1") ranks=$2 nodes=$3
here=$(mktemp -d /dev/shm/fermata-scale-XXXXXX)
trap 'rm -rf "$here"' EXIT
mkdir "$here/bin" "$here/lib"
ln -s "$build/bin/scale-agents" "$here/bin/mpiexec.openmpi"
for one in openmpi mpich; do ln -s /bin/true "$here/lib/lower-$one"; done
ln -s "$build/libexec/fermata/noded" "$here/lib/noded"
export PATH=$here/bin:/usr/bin:/bin FERMATA_RUN_DIR=$here/run FERMATA_LIBEXEC=$here/lib SCALE_NODES=$nodes SCALE_HOLD=$here/mark
wait_for() {  # seconds, command…
    local end=$((SECONDS + $1))
    shift
    until "$@" 2>/dev/null; do
        kill -0 "$root" && ((SECONDS < end)) || { echo "waited in vain for: $*" >&2; exit 1; }
        sleep 0.02
    done
}
ticks() { awk '{print $14 + $15}' "/proc/$root/stat"; }
between() { awk 'NR == FNR {a = $1; next} {printf "%.2f", $1 - a}' "$here/mark.$1" "$here/mark.$2"; }
"$build/bin/fermata" run --job scale -n "$ranks" --mpi openmpi --ckpt-dir "$here/ckpt" -- /bin/true &
root=$!
wait_for 120 test -e "$here/mark.daemons"
before=$(date +%s.%N)
touch "$here/mark.go"
wait_for 120 grep -q '"running"' "$here/ckpt/journal.jsonl"
after=$(date +%s.%N)
start=$(ticks)
"$build/bin/fermata" checkpoint --job scale --json --timeout 120s > "$here/said" || { cat "$here/said"; exit 1; }
echo "$ranks agents, $nodes daemons: daemons $(between start daemons) s, agents registered $(awk "BEGIN {printf \"%.2f\", $after - $before}") s;" \
     "root: $start ticks until then, $(($(ticks) - start)) for the round, $(awk '/VmHWM/ {print $2}' "/proc/$root/status") kB," \
     "$(ls "/proc/$root/fd" | wc -l) descriptors"
cat "$here/said"
"$build/bin/fermata" cancel --job scale > /dev/null || true
wait "$root" || true
