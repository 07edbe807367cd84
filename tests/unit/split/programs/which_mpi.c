// Says which libmpi.so.40 it got.
#include <stdio.h>
const char* which_mpi(void);
int main(void) { return puts(which_mpi()) < 0; }
