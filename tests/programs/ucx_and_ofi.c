/* A library to preload: MPICH seems to be a build that has UCX and libfabric, and says what it was to use
 * when it started (src/lower/netmod.h). What it has in truth, one of them, is not told. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int MPI_Get_library_version(char* version, int* length) {
    strcpy(version,
           "MPICH Version:      5.0.2\nMPICH ABI:          18:2:6\nMPICH Device:       ch4:ucx ofi\n");
    *length = (int)strlen(version);
    return MPI_SUCCESS;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    const char* netmod = getenv("MPIR_CVAR_CH4_NETMOD");
    fprintf(stderr, "netmod %s\n", netmod ? netmod : "not set");
    if (netmod) setenv("MPIR_CVAR_CH4_NETMOD", "", 1);
    return PMPI_Init_thread(argc, argv, required, provided);
}
