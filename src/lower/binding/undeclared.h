/* What a library exports, and its Fortran module offers, though its mpi.h hides it. Included after <mpi.h>,
 * also by C. */
#pragma once

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION == 4 && !OMPI_ENABLE_MPI1_COMPAT
#undef MPI_LB
#undef MPI_UB
#ifdef __cplusplus
extern "C" {
#endif
extern struct ompi_predefined_datatype_t ompi_mpi_lb, ompi_mpi_ub;
#ifdef __cplusplus
}
#endif
#define MPI_LB OMPI_PREDEFINED_GLOBAL(MPI_Datatype, ompi_mpi_lb)
#define MPI_UB OMPI_PREDEFINED_GLOBAL(MPI_Datatype, ompi_mpi_ub)
#endif
