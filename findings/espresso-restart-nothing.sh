#!/usr/bin/env bash
# Quantum ESPRESSO's pw.x with restart_mode='restart' where there is nothing to restart from: computes all again from the
# beginning and ends with exit code 0. So it does after a run that was killed, which has saved nothing ("Cannot read rho :
# file not found" stands among a hundred lines), and with an empty folder ("restart disabled: needed files not found").
# And a run that its own max_seconds has ended, without a result, closes with "JOB DONE." like one that has converged;
# its exit code is 2, or 255.
#
# The guess: whoever asks for a restart gets one, or an error; and "JOB DONE." means that there is a result.
#
# Where it matters: jobs in a chain. A folder on scratch that was purged, or a path with a slip, costs a whole run again
# and says so by its time only; and scripts that look for "JOB DONE." take a run that was cut off for a finished one. Look
# at the exit code, and at "convergence has been achieved".
#
# Seen with Debian 12's quantum-espresso 6.7-2+b1, one rank (x86-64).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download quantum-espresso=6.7-2+b1 quantum-espresso-data libfftw3-double3 libscalapack-openmpi2.2 liblapack3 \
    libblas3 libgfortran5 libquadmath0 openmpi-bin=4.1.4-3+b1 openmpi-common=4.1.4-3 libopenmpi3=4.1.4-3+b1 \
    libpmix2=4.2.2-1+deb12u1 libevent-core-2.1-7 libevent-pthreads-2.1-7 libfabric1 libmunge2 libnl-3-200 \
    libnl-route-3-200 libpsm-infinipath1 libpsm2-2 librdmacm1 libibverbs1 libucx0=1.13.1-1 libhwloc15 libnuma1
for package in *.deb; do dpkg -x "$package" root; done
lib=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$lib:$lib/blas:$lib/lapack OMP_NUM_THREADS=1
export OPAL_PREFIX=$folder/root/usr PMIX_MCA_mca_base_component_path=$lib/pmix2/lib/pmix
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

input() {  # further words of the namelist "control"
    cat <<E
&control
 calculation='scf', prefix='bulk', pseudo_dir='$folder/root/usr/share/espresso/pseudo', outdir='./out', $1
/
&system
 ibrav=2, celldm(1)=10.2, nat=2, ntyp=1, ecutwfc=50.0
/
&electrons
 conv_thr=1.0d-10
/
ATOMIC_SPECIES
 Si 28.086 Si.pz-vbc.UPF
ATOMIC_POSITIONS alat
 Si 0.01 0.00 0.00
 Si 0.25 0.25 0.25
K_POINTS automatic
 6 6 6 1 1 1
E
}
pw() {  # name, further words
    input "$2" >"$1.in"
    code=0
    timeout -k 5 300 "$folder/root/usr/bin/pw.x" -in "$1.in" >"$1.out" 2>&1 || code=$?
    echo "$1: exit code $code, $(grep -c 'iteration #' "$1.out") iterations, $(grep -o 'JOB DONE' "$1.out" || true)"
    if grep -m1 -oE 'restart disabled.*|Cannot read rho.*|Maximum CPU time exceeded|restarted from scf.*' "$1.out"; then :; fi
}
again() { [[ $code == 0 ]] && grep -q "convergence has been achieved" "$1.out" && ! grep -q "restarted from scf" "$1.out"; }

pw no_folder "restart_mode='restart'"
again no_folder || { echo "it has changed"; exit 1; }
rm -r out
input "" >killed.in
"$folder/root/usr/bin/pw.x" -in killed.in >killed.out 2>&1 &
for ((i = 0; i < 600; ++i)); do
    if grep -q 'iteration # *3' killed.out; then break; fi
    sleep 0.05
done
kill -KILL $!
wait $! 2>/dev/null || true
pw after_killed "restart_mode='restart'"
again after_killed || { echo "it has changed"; exit 1; }
rm -r out
pw cut_off "max_seconds=1"
[[ $code != 0 ]] && grep -q 'JOB DONE' cut_off.out && ! grep -q '^!' cut_off.out || { echo "it has changed"; exit 1; }
