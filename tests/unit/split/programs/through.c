// A library between the program and its MPI.
const char* which_mpi(void);
const char* through(void);
const char* through(void) { return which_mpi(); }
