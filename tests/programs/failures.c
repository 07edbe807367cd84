/* User-level failure mitigation in a job of which nobody fails: what asks is answered, agreements and shrunk
 * communicators work before and after a checkpoint. Of Debian 12's libraries only MPICH has some of these
 * functions (and ends with an internal error in them), so they are declared here; they need not be there when
 * the program is linked.
 */
#include "hold.h"

int MPIX_Comm_agree(MPI_Comm, int*);
int MPIX_Comm_shrink(MPI_Comm, MPI_Comm*);
int MPIX_Comm_failure_ack(MPI_Comm);
int MPIX_Comm_failure_get_acked(MPI_Comm, MPI_Group*);
int MPIX_Comm_revoke(MPI_Comm);
#ifdef OPEN_MPI
int MPIX_Comm_is_revoked(MPI_Comm, int*);
int MPIX_Comm_get_failed(MPI_Comm, MPI_Group*);
int MPIX_Comm_ack_failed(MPI_Comm, int, int*);
int MPIX_Comm_iagree(MPI_Comm, int*, MPI_Request*);
enum { PROC_FAILED = 75, REVOKED = 77 };
#else
enum { PROC_FAILED = MPIX_ERR_PROC_FAILED, REVOKED = MPIX_ERR_REVOKED };
#endif

static int rank, size;

static void nobody_of(MPI_Comm comm) {
    MPI_Group group;
    int n = -1;
    CHECK(MPIX_Comm_failure_ack(comm) == MPI_SUCCESS);
    CHECK(MPIX_Comm_failure_get_acked(comm, &group) == MPI_SUCCESS);
    MPI_Group_size(group, &n);
    CHECK(n == 0);
    MPI_Group_free(&group);
#ifdef OPEN_MPI
    int flag = -1, acked = -1;
    CHECK(MPIX_Comm_is_revoked(comm, &flag) == MPI_SUCCESS && flag == 0);
    CHECK(MPIX_Comm_get_failed(comm, &group) == MPI_SUCCESS);
    MPI_Group_size(group, &n);
    CHECK(n == 0);
    MPI_Group_free(&group);
    CHECK(MPIX_Comm_ack_failed(comm, size, &acked) == MPI_SUCCESS && acked == 0);
#endif
}

static void agree_on(MPI_Comm comm, MPI_Comm inter) {
    int flag = ~(1 << rank), remote = ~(1 << rank);
    CHECK(MPIX_Comm_agree(comm, &flag) == MPI_SUCCESS);
    CHECK(flag == -1 << size);
    int others = 0;
    for (int i = 0; i < size; ++i) others |= i % 2 != rank % 2 ? 1 << i : 0;
    CHECK(MPIX_Comm_agree(inter, &remote) == MPI_SUCCESS);
    CHECK(remote == ~others);
    hash_bytes(&flag, sizeof flag);
}

static void use(MPI_Comm comm) {
    int place, sum = 0, result;
    MPI_Comm_rank(comm, &place);
    CHECK(place == rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size * (size - 1) / 2);
    MPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
    CHECK(result == MPI_CONGRUENT);
    hash_bytes(&sum, sizeof sum);
}

static void classes(void) {
    char text[MPI_MAX_ERROR_STRING];
    int length, class;
    CHECK(MPI_Error_class(REVOKED, &class) == MPI_SUCCESS && class == REVOKED);
    CHECK(MPI_Error_class(PROC_FAILED, &class) == MPI_SUCCESS && class == PROC_FAILED);
    CHECK(MPI_Error_string(REVOKED, text, &length) == MPI_SUCCESS && strstr(text, "evoke") != NULL);
}

/* An error and not the end, where the communicator's handler returns. */
static void revoked(MPI_Comm comm) {
    int class = -1;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Error_class(MPIX_Comm_revoke(comm), &class);
    CHECK(class == MPI_ERR_UNSUPPORTED_OPERATION);
}

int main(int argc, char** argv) {
    int there = 0;
    MPI_Comm half, inter, shrunk, shrunk_inter, later;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter);
    nobody_of(MPI_COMM_WORLD);
    agree_on(MPI_COMM_WORLD, inter);
    CHECK(MPIX_Comm_shrink(MPI_COMM_WORLD, &shrunk) == MPI_SUCCESS);
    use(shrunk);
    CHECK(MPIX_Comm_shrink(inter, &shrunk_inter) == MPI_SUCCESS);
    MPI_Comm_remote_size(shrunk_inter, &there);
    CHECK(there == size / 2);
#ifdef OPEN_MPI
    /* Half of the ranks begin it before the checkpoint, and it is over after it. */
    int flag = ~(1 << rank);
    MPI_Request request;
    if (rank % 2 == 0) MPIX_Comm_iagree(shrunk, &flag, &request);
#endif
    hold();
#ifdef OPEN_MPI
    if (rank % 2 != 0) MPIX_Comm_iagree(shrunk, &flag, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(flag == -1 << size);
#endif
    agree_on(shrunk, shrunk_inter);
    use(shrunk);
    nobody_of(shrunk);
    CHECK(MPIX_Comm_shrink(shrunk, &later) == MPI_SUCCESS);
    use(later);
    classes();
    if (getenv("UNDER_FERMATA")) revoked(later);
    verdict("failures");
    MPI_Finalize();
    return 0;
}
