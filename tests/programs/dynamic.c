/* Dynamic processes: `dynamic CASE`. What a case has computed is in its "right" line; dynamic_test.py says
 * where it is checkpointed, and where that has to be refused.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include "hold.h"

enum { kChildren = 2 };

static int rank, size;

/* Says `line` once all ranks are here, then all wait until the file exists that the variable names. */
static void stop_at(const char* line, const char* variable) {
    const char* path = getenv(variable);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!path) return;
    if (rank == 0) {
        printf("%s\n", line);
        fflush(stdout);
    }
    while (access(path, F_OK) != 0) usleep(5000);
}

static void hash_int(int value) { hash_bytes(&value, sizeof value); }

/* ---- parent and children talk; the same lines on both sides */

static void merged_and_apart(MPI_Comm inter, int high, MPI_Comm* side) {
    MPI_Comm merged, twin, group_comm;
    MPI_Group all, world, some;
    int me, n, sum = 0, strangers = 0;
    MPI_Intercomm_merge(inter, high, &merged);
    MPI_Comm_rank(merged, &me);
    MPI_Comm_size(merged, &n);
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, merged);
    CHECK(sum == n * (n - 1) / 2);
    /* Who is who: the merged communicator's members of this world are its ranks, the others nobody of it. */
    MPI_Comm_group(merged, &all);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int i = 0; i < n; i++) {
        int theirs;
        MPI_Group_translate_ranks(all, 1, &i, world, &theirs);
        strangers += theirs == MPI_UNDEFINED;
    }
    CHECK(strangers == n - size);
    MPI_Comm_dup(merged, &twin);
    int result;
    MPI_Comm_compare(merged, twin, &result);
    CHECK(result == MPI_CONGRUENT);
    /* The first of all and the last of all, who are of different worlds. */
    int ends[2] = {0, n - 1};
    MPI_Group_incl(all, 2, ends, &some);
    MPI_Comm_create(twin, some, &group_comm);
    if (me == 0 || me == n - 1) {
        int mine = me + 7, other = -1, there = me == 0 ? 1 : 0;
        MPI_Sendrecv(&mine, 1, MPI_INT, there, 3, &other, 1, MPI_INT, there, 3, group_comm,
                     MPI_STATUS_IGNORE);
        CHECK(other == (me == 0 ? n - 1 + 7 : 7));
        MPI_Comm_free(&group_comm);
    } else {
        CHECK(group_comm == MPI_COMM_NULL);
    }
    /* A part of it with ranks of one world only. */
    MPI_Comm_split(twin, high, -me, side);
    int side_size, side_rank;
    MPI_Comm_size(*side, &side_size);
    MPI_Comm_rank(*side, &side_rank);
    CHECK(side_size == size && side_rank == size - 1 - rank);
    /* Requests, wildcards, a synchronous send around the ring of all. */
    int next = (me + 1) % n, got = -1;
    MPI_Request requests[2];
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 5, twin, &requests[0]);
    MPI_Issend(&me, 1, MPI_INT, next, 5, twin, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(got == (me + n - 1) % n);
    MPI_Request request;
    sum = 0;
    MPI_Iallreduce(&me, &sum, 1, MPI_INT, MPI_SUM, twin, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == n * (n - 1) / 2);
    MPI_Group_free(&all);
    MPI_Group_free(&world);
    MPI_Group_free(&some);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&merged); /* Open MPI 4.1.4 waits for ever in MPI_Comm_disconnect of a merged one */
}

static void child(MPI_Comm parent, int argc, char** argv) {
    int number[1000], sum = 0, from_root[3] = {0}, parents, mine, theirs = 0;
    CHECK(argc == 4 && strcmp(argv[1], "child") == 0 && strcmp(argv[2], "two words") == 0);
    MPI_Comm_remote_size(parent, &parents);
    for (int p = 0; p < parents; p++) {
        MPI_Status status;
        MPI_Recv(number, 1000, MPI_INT, MPI_ANY_SOURCE, 1, parent, &status);
        for (int i = 0; i < 1000; i++) sum += number[i] * (status.MPI_SOURCE + 1);
    }
    for (int p = 0; p < parents; p++) MPI_Send(&sum, 1, MPI_INT, p, 2, parent);
    MPI_Bcast(from_root, 3, MPI_INT, 1, parent);
    CHECK(from_root[2] == 42);
    mine = 100 + rank;
    MPI_Allreduce(&mine, &theirs, 1, MPI_INT, MPI_SUM, parent);
    CHECK(theirs == parents * (parents - 1) / 2);
    MPI_Comm side;
    merged_and_apart(parent, 1, &side);
    MPI_Comm_free(&side);
    MPI_Comm_disconnect(&parent);
}

/* `ours`: a communicator of this world's ranks that was made from one with the children. */
static int family(const char* self, MPI_Comm* ours, int may_fail, int stop) {
    char* arguments[] = {"child", "two words", "last", NULL};
    int codes[kChildren] = {-1, -1}, number[1000], sum, theirs = 0;
    MPI_Comm inter;
    if (may_fail) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int root = 1 % size;
    int rc = MPI_Comm_spawn(rank == root ? self : NULL, rank == root ? arguments : NULL, kChildren,
                            MPI_INFO_NULL, root, MPI_COMM_WORLD, &inter, codes);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (rc != MPI_SUCCESS) return 0;
    for (int c = 0; c < kChildren; c++) CHECK(codes[c] == MPI_SUCCESS);
    MPI_Comm_remote_size(inter, &theirs);
    CHECK(theirs == kChildren);
    for (int c = 0; c < kChildren; c++) {
        for (int i = 0; i < 1000; i++) number[i] = i + rank * c;
        MPI_Send(number, 1000, MPI_INT, c, 1, inter);
    }
    if (stop) stop_at("CONNECTED", "HOLD_CONNECTED");
    for (int c = 0; c < kChildren; c++) {
        MPI_Recv(&sum, 1, MPI_INT, c, 2, inter, MPI_STATUS_IGNORE);
        hash_int(sum);
    }
    int from_root[3] = {1, 2, 42};
    MPI_Bcast(from_root, 3, MPI_INT, rank == 1 ? MPI_ROOT : MPI_PROC_NULL, inter);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK(sum == 100 * kChildren + 1);
    merged_and_apart(inter, 0, ours);
    MPI_Comm_disconnect(&inter);
    CHECK(inter == MPI_COMM_NULL);
    return 1;
}

static void use(MPI_Comm ours) {
    int mine = rank * rank, sum = 0, me;
    MPI_Comm_rank(ours, &me);
    CHECK(me == size - 1 - rank);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, ours);
    hash_int(sum);
}

static void spawn(const char* self) {
    MPI_Comm ours, more;
    CHECK(family(self, &ours, 0, 1));
    use(ours);
    hold();
    use(ours);
    MPI_Comm_free(&ours);
    /* It cannot on another library than the program's: so not in the result. */
    unsigned long long so_far = hash_state;
    int again = family(self, &more, 1, 0);
    if (again) {
        use(more);
        MPI_Comm_free(&more);
    }
    hash_state = so_far;
    if (rank == 0) printf("again: %s\n", again ? "worked" : "refused");
}

/* Two programs at once, with arguments and hints of their own. */
static void several(const char* self) {
    char* first[] = {"child", "two words", "first", NULL};
    char* second[] = {"child", "two words", "second", NULL};
    char** arguments[] = {first, second};
    char* commands[] = {(char*)self, (char*)self};
    int numbers[] = {1, 1}, codes[2] = {-1, -1}, sum, number[1000];
    MPI_Info infos[2] = {MPI_INFO_NULL};
    MPI_Info_create(&infos[1]);
    MPI_Info_set(infos[1], "wd", "/");
    MPI_Comm inter, ours;
    MPI_Comm_spawn_multiple(2, commands, arguments, numbers, infos, 0, MPI_COMM_WORLD, &inter, codes);
    CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS);
    MPI_Info_free(&infos[1]);
    for (int c = 0; c < 2; c++) {
        for (int i = 0; i < 1000; i++) number[i] = i + rank + c;
        MPI_Send(number, 1000, MPI_INT, c, 1, inter);
    }
    for (int c = 0; c < 2; c++) {
        MPI_Recv(&sum, 1, MPI_INT, c, 2, inter, MPI_STATUS_IGNORE);
        hash_int(sum);
    }
    int from_root[3] = {1, 2, 42};
    MPI_Bcast(from_root, 3, MPI_INT, rank == 1 ? MPI_ROOT : MPI_PROC_NULL, inter);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    merged_and_apart(inter, 0, &ours);
    MPI_Comm_disconnect(&inter);
    hold();
    use(ours);
    MPI_Comm_free(&ours);
}

/* ---- processes of this job find each other: an ordinary communicator in the end */

static void exchange(MPI_Comm inter) {
    int mine = rank + 1, sum = 0, got = -1, peers, me;
    MPI_Comm_remote_size(inter, &peers);
    MPI_Comm_rank(inter, &me);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
    hash_int(sum);
    if (me < peers) {
        MPI_Sendrecv(&mine, 1, MPI_INT, me, 4, &got, 1, MPI_INT, me, 4, inter, MPI_STATUS_IGNORE);
        hash_int(got);
    }
}

/* A message on its way over the hold, and a posted receive. */
static void held(MPI_Comm inter) {
    int mine = 1000 + rank, early = -1, late = -1, me;
    MPI_Request request;
    MPI_Comm_rank(inter, &me);
    MPI_Irecv(&late, 1, MPI_INT, me, 9, inter, &request);
    MPI_Send(&mine, 1, MPI_INT, me, 8, inter);
    hold();
    MPI_Send(&mine, 1, MPI_INT, me, 9, inter);
    MPI_Recv(&early, 1, MPI_INT, me, 8, inter, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    hash_int(early);
    hash_int(late);
    exchange(inter);
}

static void ports(void) {
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, inter;
    int low = rank < size / 2;
    MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
    if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    stop_at("PORT", "HOLD_PORT");
    if (low)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
    if (rank == 0) MPI_Close_port(port);
    exchange(inter);
    held(inter);
    MPI_Comm_disconnect(&inter);
    MPI_Comm_free(&half);
}

/* One waits for somebody who comes late; the others compute. */
static void accepting(void) {
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter = MPI_COMM_NULL;
    if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        MPI_Close_port(port);
    } else if (rank == 1) {
        const char* path = getenv("HOLD_ACCEPT");
        if (path) {
            usleep(300000); /* the other one is in the call */
            printf("ACCEPTING\n");
            fflush(stdout);
            while (access(path, F_OK) != 0) usleep(5000);
        }
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    }
    if (inter != MPI_COMM_NULL) exchange(inter);
    hold();
    if (inter != MPI_COMM_NULL) {
        exchange(inter);
        MPI_Comm_disconnect(&inter);
    }
}

static void join(void) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "join.%d", getppid());
    MPI_Bcast(&at, sizeof at, MPI_BYTE, 0, MPI_COMM_WORLD);
    int fd = -1;
    MPI_Comm inter = MPI_COMM_NULL;
    if (rank == 0) {
        int door = socket(AF_UNIX, SOCK_STREAM, 0);
        CHECK(bind(door, (struct sockaddr*)&at, sizeof at) == 0 && listen(door, 1) == 0);
        MPI_Barrier(MPI_COMM_WORLD);
        fd = accept(door, NULL, NULL);
        close(door);
        unlink(at.sun_path);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) {
            fd = socket(AF_UNIX, SOCK_STREAM, 0);
            CHECK(connect(fd, (struct sockaddr*)&at, sizeof at) == 0);
        }
    }
    if (rank < 2) {
        MPI_Comm_join(fd, &inter);
        close(fd);
        exchange(inter);
    }
    hold();
    if (rank < 2) {
        exchange(inter);
        MPI_Comm_disconnect(&inter);
    }
}

/* Another job: each is a server or a client, the port's name is in a file. */
static void jobs(int serves) {
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    if (serves && rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        FILE* file = fopen("port.new", "w");
        fputs(port, file);
        fclose(file);
        CHECK(rename("port.new", "port") == 0);
    } else if (rank == 0) {
        while (access("port", R_OK) != 0) usleep(5000);
        FILE* file = fopen("port", "r");
        CHECK(fgets(port, sizeof port, file) != NULL);
        fclose(file);
    }
    if (serves)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    if (serves && rank == 0) MPI_Close_port(port);
    stop_at("CONNECTED", "HOLD_CONNECTED");
    exchange(inter);
    MPI_Comm_disconnect(&inter);
    hold();
    hash_int(rank);
}

/* A library that cannot: every call answers, and the job is as before. */
static void missing(const char* self) {
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm none;
    int codes[1];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int failed =
        MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &none, codes) != MPI_SUCCESS;
    failed += MPI_Open_port(MPI_INFO_NULL, port) != MPI_SUCCESS;
    if (rank == 0) printf("missing: %d\n", failed);
    hold();
    hash_int(rank);
}

int main(int argc, char** argv) {
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#ifdef RECORDER_H
    rec_constants();
#endif
    MPI_Comm_get_parent(&parent);
    const char* name = argc > 1 ? argv[1] : "";
    if (parent != MPI_COMM_NULL) {
        child(parent, argc, argv);
        MPI_Finalize();
        return 0;
    }
    hash_int(rank);
    if (strcmp(name, "spawn") == 0)
        spawn(argv[0]);
    else if (strcmp(name, "several") == 0)
        several(argv[0]);
    else if (strcmp(name, "ports") == 0)
        ports();
    else if (strcmp(name, "accepting") == 0)
        accepting();
    else if (strcmp(name, "join") == 0)
        join();
    else if (strcmp(name, "server") == 0 || strcmp(name, "client") == 0)
        jobs(strcmp(name, "server") == 0);
    else if (strcmp(name, "missing") == 0)
        missing(argv[0]);
    else
        CHECK(!"a case of this name");
    verdict(name);
    MPI_Finalize();
#ifdef RECORDER_H
    rec_write(getenv("RECORD_PREFIX"), rank);
#endif
    return 0;
}
