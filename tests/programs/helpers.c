/* Runs two helper commands that take a moment, with a barrier between them, then one
 * that lasts. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void helper(const char* name, const char* command) {
    char line[256] = "";
    FILE* pipe = popen(command, "r");
    printf("%s runs\n", name);
    fflush(stdout);
    if (!fgets(line, sizeof line, pipe)) strcpy(line, "nothing\n");
    int status = pclose(pipe);
    printf("%s ended with %d: %s", name, status < 0 ? status : WEXITSTATUS(status), line);
    fflush(stdout);
}

int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) helper("helper", "sleep 1; echo said");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) helper("second helper", "sleep 1; echo said");
    MPI_Barrier(MPI_COMM_WORLD);
    sleep(1);
    helper("long helper", "exec sleep 4"); /* on each: nobody waits in a barrier for the other */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
