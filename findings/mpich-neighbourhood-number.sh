#!/usr/bin/env bash
# MPICH's MPIX_COMM_TYPE_NEIGHBORHOOD (communicators of ranks that share a directory, nbhd_common_dirname) is 4 up to
# 4.1 and 5 from 4.2 on, where 4 is the standard's MPI_COMM_TYPE_RESOURCE_GUIDED. The library's name stays libmpi.so.12
# and its ABI is promised to stay: a program built with 4.1 gets MPI_COMM_NULL and MPI_SUCCESS on 4.2 where it got a
# communicator, one built with 4.2 an error on 4.1.
#
# Where it matters: programs that site upgrades of MPICH (or of the libraries of its ABI) meet without a new build.
# Fermata's front tells the two apart by the keys of the info (src/front/calls/comm_create.cpp), and asks the library
# below by its own number.
#
# Seen with mpich 4.1.3 and 4.2.3 of PyPI (x86-64).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

declare -A lib
for version in 4.1.3 4.2.3; do
    python3 -m venv "$version"
    "$version/bin/pip" -q install --no-deps "mpich==$version"
    lib[$version]=$(dirname "$(find "$folder/$version" -name libmpi.so.12 | head -1)")
done
cat >split.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Info_create(&info);
    MPI_Info_set(info, "nbhd_common_dirname", "/tmp");
    int rc = MPI_Comm_split_type(MPI_COMM_WORLD, MPIX_COMM_TYPE_NEIGHBORHOOD, 0, info, &comm);
    printf("%d %s\n", MPIX_COMM_TYPE_NEIGHBORHOOD,
           rc != MPI_SUCCESS ? "error" : comm == MPI_COMM_NULL ? "MPI_COMM_NULL" : "communicator");
    MPI_Finalize();
    return 0;
}
C
changed=0
expect() {  # built with, on, wanted
    local said
    said=$(LD_LIBRARY_PATH=${lib[$2]} timeout 60 "./split.$1" 2>/dev/null)
    echo "built with mpich $1, on $2: $said"
    [[ $said == "$3" ]] || { echo "changed: was '$3'"; changed=1; }
}
for version in 4.1.3 4.2.3; do
    gcc -I"$version/include" split.c -o "split.$version" "${lib[$version]}/libmpi.so.12"
done
expect 4.1.3 4.1.3 "4 communicator"
expect 4.1.3 4.2.3 "4 MPI_COMM_NULL"
expect 4.2.3 4.1.3 "5 error"
expect 4.2.3 4.2.3 "5 communicator"
exit $changed
