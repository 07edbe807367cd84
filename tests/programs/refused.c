/* What no checkpoint can hold, one after the other: each is there until the file go-NAME exists, then it is
 * given up. The job goes on every time (everything_test.py refused). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "hold.h"

static int rank_;

static void until(const char* name, int there) {
    int all = 0;
    MPI_Allreduce(&there, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank_ == 0) printf("%s %s\n", all ? "READY" : "WITHOUT", name), fflush(stdout);
    char file[64];
    snprintf(file, sizeof file, "go-%s", name);
    while (all && access(file, F_OK) != 0) usleep(3000);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void send_descriptor(int to, int what) {
    char byte = 'x', control[CMSG_SPACE(sizeof what)] = {0};
    struct iovec one = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &one, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof what);
    memcpy(CMSG_DATA(header), &what, sizeof what);
    CHECK(sendmsg(to, &message, 0) == 1);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);

    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */);
    until("userfaultfd", fd >= 0);
    if (fd >= 0) close(fd);

    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    send_descriptor(pair[0], 0);
    until("descriptors-on-their-way", 1);
    close(pair[0]), close(pair[1]);

    unsigned long context = 0;
    int there = syscall(SYS_io_setup, 8, &context) == 0;
    until("aio", there);
    if (there) syscall(SYS_io_destroy, context);

    /* The adapter's place, with another device behind the name. */
    mkdir("/dev/infiniband", 0755);
    char name[64];
    snprintf(name, sizeof name, "/dev/infiniband/fermata-test-%d", (int)getpid());
    fd = mknod(name, S_IFCHR | 0600, makedev(1, 3)) == 0 ? open(name, O_RDWR) : -1;
    until("infiniband", fd >= 0);
    if (fd >= 0) close(fd);
    unlink(name);
    rmdir("/dev/infiniband"); /* stays when it is a real one */

    MPI_File file;
    CHECK(MPI_File_open(MPI_COMM_WORLD, "gone.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) ==
          MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_ == 0) unlink("gone.dat");
    MPI_Barrier(MPI_COMM_WORLD);
    until("removed-mpi-file", 1);
    MPI_File_close(&file);

    until("nothing", 1);
    if (rank_ == 0) printf("done\n");
    MPI_Finalize();
}
