/* Moments at which it is not obvious that a checkpoint can come: waits CASE REPEATS [SECONDS]. With four
 * ranks each prints the same result whatever happens on the way. SECONDS: how long the cases that compute do
 * so. */
#include <time.h>

#include "hold.h"

static int rank, size, repeats;
static double seconds;

static int sum_on(MPI_Comm comm, int value) {
    int sum = 0;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
    hash_bytes(&sum, sizeof sum);
    return sum;
}

static MPI_Comm comm_of(int from, int to) {
    MPI_Comm made;
    MPI_Comm_split(MPI_COMM_WORLD, rank >= from && rank <= to ? 1 : MPI_UNDEFINED, rank, &made);
    return made;
}

/* No MPI call and no system call: only a signal can reach it. */
static void compute(void) {
    struct timespec from, now;
    volatile double x = 0;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        for (int i = 0; i < 100000; ++i) x += i;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - from.tv_sec) + 1e-9 * (double)(now.tv_nsec - from.tv_nsec) < seconds);
}

static void ready(void) {
    if (rank == 0) {
        printf("READY\n");
        fflush(stdout);
    }
}

/* Communicators are made and freed without a pause. */
static void creation(void) {
    for (int i = 0; i < repeats; ++i) {
        MPI_Comm dup, half, pair, inter, merged, later;
        MPI_Request request;
        MPI_Group world, first;
        MPI_Comm_dup(MPI_COMM_WORLD, &dup);
        MPI_Comm_idup(MPI_COMM_WORLD, &later, &request);
        MPI_Comm_split(dup, rank % 2, rank, &half);
        sum_on(half, i + rank);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_range_incl(world, 1, (int[1][3]){{1, 2, 1}}, &first);
        if (rank == 1 || rank == 2) {
            MPI_Comm_create_group(MPI_COMM_WORLD, first, i % 100, &pair);
            sum_on(pair, i);
            MPI_Comm_free(&pair);
        }
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 77, &inter);
        MPI_Intercomm_merge(inter, rank % 2, &merged);
        CHECK(sum_on(merged, i) == size * i);
        sum_on(later, i);
        MPI_Comm_free(&inter);
        MPI_Comm_free(&dup);
        MPI_Comm_free(&half);
        MPI_Comm_free(&merged);
        MPI_Comm_free(&later);
        MPI_Group_free(&first);
        MPI_Group_free(&world);
    }
}

/* Rank 0 owes a collective and polls for what rank 1 does only after another one. */
static void poll_until(int how) {
    MPI_Comm others = comm_of(1, 2), pair = comm_of(0, 1);
    for (int i = 0; i < repeats; ++i) {
        int got = -1, sum = -1, flag = 0;
        MPI_Request request;
        if (rank == 0 && how == 0) {
            MPI_Irecv(&got, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
            while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        } else if (rank == 0 && how == 1) {
            while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            MPI_Recv(&got, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 0) {
            MPI_Iallreduce(&i, &sum, 1, MPI_INT, MPI_SUM, pair, &request);
            while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            CHECK(sum == 2 * i);
        }
        if (rank == 1 || rank == 2) sum_on(others, i);
        if (rank == 1 && how < 2) MPI_Send(&i, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
        if (rank == 1 && how == 2) {
            MPI_Iallreduce(&i, &sum, 1, MPI_INT, MPI_SUM, pair, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        if (rank == 0 && how < 2) CHECK(got == i);
        sum_on(MPI_COMM_WORLD, i);
    }
    if (others != MPI_COMM_NULL) MPI_Comm_free(&others);
    if (pair != MPI_COMM_NULL) MPI_Comm_free(&pair);
}
static void poll_test(void) { poll_until(0); }
static void poll_iprobe(void) { poll_until(1); }
static void poll_collective(void) { poll_until(2); }

/* Rank 0 serves whoever asks; the others meet in collectives of their own. */
static void server(void) {
    MPI_Comm workers = comm_of(1, size - 1);
    long long total = 0;
    if (rank == 0) {
        for (int left = repeats * (size - 1); left > 0; --left) {
            int value;
            MPI_Status status;
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            CHECK(status.MPI_TAG == value % 5);
            total += value;
            value = value * 2 + 1;
            MPI_Send(&value, 1, MPI_INT, status.MPI_SOURCE, 9, MPI_COMM_WORLD);
        }
    } else {
        for (int i = 0; i < repeats; ++i) {
            int value = i * 10 + rank, answer;
            MPI_Send(&value, 1, MPI_INT, 0, value % 5, MPI_COMM_WORLD);
            MPI_Recv(&answer, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(answer == value * 2 + 1);
            if (i % 3 == rank % 2) sum_on(MPI_COMM_SELF, i);
            if (i % 3 == 0) sum_on(workers, i);
        }
        MPI_Comm_free(&workers);
    }
    hash_bytes(&total, sizeof total);
}

/* Rank 1 computes while the others are inside a collective. */
static void computing(void) {
    sum_on(MPI_COMM_WORLD, 1);
    ready();
    if (rank == 1) compute();
    sum_on(MPI_COMM_WORLD, 2);
}

/* Rank 1 waits for a message that rank 0 sends after a long computation; nothing is owed to anybody. */
static void late_message(void) {
    int value = 7;
    sum_on(MPI_COMM_WORLD, 1);
    ready();
    if (rank == 0) compute();
    if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sum_on(MPI_COMM_WORLD, value);
}

/* The same, but rank 2 is inside a collective with rank 1 already. */
static void owed_message(void) {
    int value = 7;
    MPI_Comm pair = comm_of(1, 2);
    sum_on(MPI_COMM_WORLD, 1);
    ready();
    if (rank == 0) compute();
    if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (pair != MPI_COMM_NULL) {
        sum_on(pair, value);
        MPI_Comm_free(&pair);
    }
    sum_on(MPI_COMM_WORLD, value);
}

/* Adds to the number of rank 0's window, which two do wrong that both hold the lock. */
static void add_under_lock(MPI_Win win, long amount, double work) {
    long long value;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Get(&value, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, win);
    MPI_Win_flush(0, win);
    double whole = seconds;
    seconds = work;
    compute();
    seconds = whole;
    value += amount;
    MPI_Put(&value, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, win);
    MPI_Win_unlock(0, win);
}

static void with_window(void (*work)(MPI_Win win)) {
    long long* memory;
    MPI_Win win;
    MPI_Win_allocate(4096, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    *memory = 0;
    sum_on(MPI_COMM_WORLD, 1);
    work(win);
    sum_on(MPI_COMM_WORLD, 2);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    long long total = *memory;
    MPI_Win_unlock(0, win);
    if (rank == 0) hash_bytes(&total, sizeof total);
    MPI_Win_free(&win);
}

/* Everybody wants one lock, all the time. */
static void lock_loop(MPI_Win win) {
    for (int i = 0; i < repeats; ++i) {
        add_under_lock(win, i * 5 + rank, 0.0005);
        if (i % 20 == rank) sum_on(MPI_COMM_SELF, i);
    }
}
static void locks(void) { with_window(lock_loop); }

/* Rank 1 computes while it holds a lock that the others wait for. */
static void lock_once(MPI_Win win) {
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Win_flush(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    ready();
    if (rank == 1) {
        compute();
        MPI_Win_unlock(0, win);
    }
    add_under_lock(win, rank + 3, 0);
}
static void held_lock(void) { with_window(lock_once); }

/* The others are in MPI_Finalize already. */
static void late_finalize(void) {
    sum_on(MPI_COMM_WORLD, 1);
    verdict("waits");
    ready();
    if (rank == 1) compute();
}

static const struct {
    const char* name;
    void (*run)(void);
} cases[] = {{"creation", creation},
             {"poll_test", poll_test},
             {"poll_iprobe", poll_iprobe},
             {"poll_collective", poll_collective},
             {"server", server},
             {"computing", computing},
             {"late_message", late_message},
             {"owed_message", owed_message},
             {"locks", locks},
             {"held_lock", held_lock},
             {"late_finalize", late_finalize}};

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    repeats = argc > 2 ? atoi(argv[2]) : 1;
    seconds = argc > 3 ? atof(argv[3]) : 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        if (argc < 2 || strcmp(cases[i].name, argv[1]) != 0) continue;
        cases[i].run();
        if (cases[i].run != late_finalize) verdict("waits");
        MPI_Finalize();
        return 0;
    }
    fprintf(stderr, "waits: no case named %s\n", argc > 1 ? argv[1] : "(none)");
    MPI_Abort(MPI_COMM_WORLD, 2);
    return 2;
}
