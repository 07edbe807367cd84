const char* which_mpi(void) { return WHICH; }
