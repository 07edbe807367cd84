/* Runs a scenario of the collective clock (tests/programs/scenarios/NAME): small programs in which the order
 * of collectives and messages between ranks is the difficulty.
 *
 *   scenario FILE REPEATS [SEED]
 *
 * A file has lines
 *   comm NAME RANK RANK…        ranks count from 1
 *   P<RANK>: step; step | step; step | step
 * Steps before `|` run once, those after it REPEATS times, those after a second `|` once at the end; without
 * `|` all are repeated. Two lines of one rank are two threads. Steps: `coll C` (Allreduce), `bcast C ROOT`,
 * `icoll C` (Iallreduce), `waitc C` (the oldest one of C), `send RANK`, `recv RANK`. SEED spreads short
 * pauses over the steps. Every value that arrives goes into a hash. SCENARIO_HOLD="1 4": ranks 1 and 4 wait
 * before their first step, outside MPI, until the file HOLD_FILE exists. */
#include <ctype.h>
#include <pthread.h>

#include "hold.h"

enum { MAX_COMMS = 8, MAX_THREADS = 4, MAX_STEPS = 64, MAX_RANKS = 16 };
enum kind { COLL, BCAST, ICOLL, WAITC, SEND, RECV };
struct step {
    enum kind kind;
    int comm, peer;
};
struct script {
    struct step steps[MAX_STEPS];
    int count, loop_from, loop_to, index; /* steps [loop_from, loop_to) repeat */
};

static struct {
    char name;
    int ranks[MAX_RANKS], count;
} comms[MAX_COMMS];
static int comm_count, rank, size, repeats, seed;
static MPI_Comm handles[MAX_COMMS];
static struct script scripts[MAX_THREADS];
static int script_count;
static unsigned long long results[MAX_THREADS];

static int comm_of(char name) {
    for (int i = 0; i < comm_count; ++i)
        if (comms[i].name == name) return i;
    fprintf(stderr, "scenario: no communicator %c\n", name);
    exit(2);
}

static void parse_steps(char* text, struct script* script) {
    int bars = 0;
    script->loop_from = 0;
    script->loop_to = MAX_STEPS;
    for (char* part = text; part && *part;) {
        size_t length = strcspn(part, ";|");
        char separator = part[length], word[16] = "", name = 0;
        int peer = 0;
        char* next = separator ? part + length + 1 : NULL;
        part[length] = 0;
        if (sscanf(part, " %15s", word) == 1) {
            struct step step = {COLL, -1, -1};
            if (strcmp(word, "send") == 0 || strcmp(word, "recv") == 0) {
                sscanf(part, " %*s %d", &peer);
                step.kind = word[0] == 's' ? SEND : RECV;
                step.peer = peer - 1;
            } else {
                sscanf(part, " %*s %c %d", &name, &peer);
                step.comm = comm_of(name);
                step.peer = peer - 1;
                step.kind = word[0] == 'c' ? COLL : word[0] == 'b' ? BCAST : word[0] == 'i' ? ICOLL : WAITC;
            }
            script->steps[script->count++] = step;
        }
        if (separator == '|') *(bars++ == 0 ? &script->loop_from : &script->loop_to) = script->count;
        part = next;
    }
    if (script->loop_to > script->count) script->loop_to = script->count;
}

static void parse(const char* path) {
    char line[512], *colon;
    FILE* file = fopen(path, "r");
    if (!file) {
        perror(path);
        exit(2);
    }
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n#")] = 0;
        if (strncmp(line, "comm ", 5) == 0) {
            char* at = line + 5;
            comms[comm_count].name = *at++;
            for (char* word = strtok(at, " "); word; word = strtok(NULL, " "))
                comms[comm_count].ranks[comms[comm_count].count++] = atoi(word) - 1;
            ++comm_count;
        } else if (line[0] == 'P' && (colon = strchr(line, ':'))) {
            if (atoi(line + 1) - 1 == rank) {
                scripts[script_count].index = script_count;
                parse_steps(colon + 1, &scripts[script_count++]);
            }
        }
    }
    fclose(file);
}

static void* run(void* argument) {
    struct script* script = argument;
    unsigned long long hash = 1469598103934665603ULL + (unsigned)rank;
    unsigned random = (unsigned)(seed * 7919 + rank * 31 + script->index);
    /* requests of non-blocking collectives, oldest first; their buffers stay put until then */
    static int in[MAX_THREADS][MAX_COMMS][64], out[MAX_THREADS][MAX_COMMS][64];
    MPI_Request open[MAX_COMMS][64];
    int first[MAX_COMMS] = {0}, last[MAX_COMMS] = {0}, t = script->index, counter = 0;
    for (int r = 0; r < repeats; ++r)
        for (int s = r == 0 ? 0 : script->loop_from; s < (r + 1 == repeats ? script->count : script->loop_to);
             ++s) {
            struct step step = script->steps[s];
            int value = ++counter * 17 + rank, got = 0, c = step.comm;
            random = random * 1103515245 + 12345;
            if (seed && (random >> 16) % 8 == 0) usleep((random >> 20) % 300);
            switch (step.kind) {
                case COLL:
                    MPI_Allreduce(&value, &got, 1, MPI_INT, MPI_SUM, handles[c]);
                    break;
                case BCAST: {
                    int root = 0;
                    while (comms[c].ranks[root] != step.peer) ++root;
                    got = value;
                    MPI_Bcast(&got, 1, MPI_INT, root, handles[c]);
                    break;
                }
                case ICOLL: {
                    int slot = last[c]++ % 64;
                    in[t][c][slot] = value;
                    MPI_Iallreduce(&in[t][c][slot], &out[t][c][slot], 1, MPI_INT, MPI_SUM, handles[c],
                                   &open[c][slot]);
                    break;
                }
                case WAITC: {
                    int slot = first[c]++ % 64;
                    MPI_Wait(&open[c][slot], MPI_STATUS_IGNORE);
                    got = out[t][c][slot];
                    break;
                }
                case SEND:
                    MPI_Send(&value, 1, MPI_INT, step.peer, 5, MPI_COMM_WORLD);
                    break;
                case RECV:
                    MPI_Recv(&got, 1, MPI_INT, step.peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    break;
            }
            for (size_t i = 0; i < sizeof got; ++i)
                hash = (hash ^ ((unsigned char*)&got)[i]) * 1099511628211ULL;
        }
    results[t] = hash;
    return NULL;
}

int main(int argc, char** argv) {
    int level;
    if (argc < 3) return fprintf(stderr, "usage: scenario FILE REPEATS [SEED]\n"), 2;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    repeats = atoi(argv[2]);
    seed = argc > 3 ? atoi(argv[3]) : 0;
    parse(argv[1]);
    MPI_Group world;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int i = 0; i < comm_count; ++i) {
        MPI_Group group;
        MPI_Group_incl(world, comms[i].count, comms[i].ranks, &group);
        MPI_Comm_create(MPI_COMM_WORLD, group, &handles[i]);
        MPI_Group_free(&group);
    }
    MPI_Group_free(&world);
    if (rank == 0) {
        printf("started\n");
        fflush(stdout);
    }
    const char* held = getenv("SCENARIO_HOLD");
    for (char* word = held ? strtok(strdup(held), " ") : NULL; word; word = strtok(NULL, " "))
        if (atoi(word) - 1 == rank) hold_here(0);
    if (script_count == 1) {
        run(&scripts[0]);
    } else if (script_count > 1) {
        pthread_t ids[MAX_THREADS];
        CHECK(level == MPI_THREAD_MULTIPLE);
        for (int t = 0; t < script_count; ++t) pthread_create(&ids[t], NULL, run, &scripts[t]);
        for (int t = 0; t < script_count; ++t) pthread_join(ids[t], NULL);
    }
    hash_bytes(results, sizeof results);
    verdict("scenario");
    for (int i = 0; i < comm_count; ++i)
        if (handles[i] != MPI_COMM_NULL) MPI_Comm_free(&handles[i]);
    MPI_Finalize();
    return 0;
}
