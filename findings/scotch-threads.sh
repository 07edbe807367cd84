#!/usr/bin/env bash
# SCOTCH 7: the sequential partitioner and orderer use threads, as many as there are cores, and what comes out is another
# partition in each run: six runs, six of them. The seed is the same each time: with SCOTCH_PTHREAD_NUMBER=1 so is the
# partition.
#
# The guess: gpart and gord, which know no MPI and no option for threads, give the same file for the same graph;
# PT-SCOTCH is the parallel one.
#
# Where it matters: whoever cuts a mesh by it (OpenFOAM's decomposePar, Code_Saturne) or orders a matrix (MUMPS, PaStiX)
# gets other domains, and by them other sums, each time the job is set up: two runs of one case agree to no last digit,
# and files that hold a domain each do not fit to those of the run before. Keep the decomposition with the restart files.
#
# Seen with Debian 12's scotch and libscotch-7.0 7.0.3-2 (x86-64), a mesh of 60^3 points in 8 parts; needs two cores.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download scotch=7.0.3-2 libscotch-7.0=7.0.3-2
for package in *.deb; do dpkg -x "$package" root; done
export LD_LIBRARY_PATH=$folder/root/usr/lib/x86_64-linux-gnu
tools=$folder/root/usr/bin

"$tools/gmk_m3" 60 60 60 mesh
different() {  # of six files that "$@" makes of the mesh, its last argument
    for _ in 1 2 3 4 5 6; do
        "$@" made
        sha256sum <made
    done | sort -u | wc -l
}
parts=$(different "$tools/scotch_gpart" 8 mesh) orders=$(different "$tools/gord" mesh)
export SCOTCH_PTHREAD_NUMBER=1
parts_of_one=$(different "$tools/scotch_gpart" 8 mesh) orders_of_one=$(different "$tools/gord" mesh)
echo "$(nproc) cores; six runs give $parts partitions and $orders orderings; with one thread $parts_of_one and $orders_of_one"
[[ $parts -gt 1 && $orders -gt 1 && $parts_of_one == 1 && $orders_of_one == 1 ]] || { echo "it has changed"; exit 1; }
