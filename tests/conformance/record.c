#include "record.h"

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Also used by the generated bodies, which know the communicator. */
int rec_peers(MPI_Comm comm), rec_size(MPI_Comm comm), rec_degree(MPI_Comm comm, int in),
    rec_dims(MPI_Comm comm);

enum {
    LOG = 4 << 20 /* to begin with: programs that poll write much */,
    NAMES = 1000,
    OBJECTS = 4000,
    FUNCTIONS = 1000
};
static char* text;
static size_t used, room;
int rec_off;

static struct {
    const char *set, *name;
    unsigned long long value;
} names[NAMES];
static int named;

static struct object {
    const char *kind, *maker;
    unsigned long long handle;
    int held, used, says;
} objects[OBJECTS];
static int object_count;

static const char* name_of(const char* set, unsigned long long value);

static const char* functions[FUNCTIONS];
static int function_count;

static void say(const char* format, ...) {
    va_list list;
    if (rec_off) return;
    for (;;) {
        va_start(list, format);
        const int n = text ? vsnprintf(text + used, room - used, format, list) : LOG;
        va_end(list);
        if (n >= 0 && (size_t)n < room - used) {
            used += (size_t)n;
            return;
        }
        room = room ? 2 * room : LOG;
        text = n < 0 ? NULL : realloc(text, room);
        if (!text) {
            fprintf(stderr, "record: no room for the log\n");
            abort();
        }
    }
}

void rec_section(const char* name) { say("== %s\n", name); }
static void nulls_again(void);
static int nulls_count, nulls_before;

void rec_begin(const char* function) {
    nulls_before = nulls_count;
    static int loud = -1;
    if (loud < 0) loud = getenv("CONFORMANCE_LOUD") != NULL;
    if (loud) fprintf(stderr, "%s\n", function);
    say("%s", function + 4);
}
void rec_end(void) { say("\n"); }
size_t rec_at(void) { return used; }
void rec_rewind(size_t at) { used = at; }

void rec_called(const char* function) {
    for (int i = 0; i < function_count; ++i)
        if (functions[i] == function || strcmp(functions[i], function) == 0) return;
    if (function_count < FUNCTIONS) functions[function_count++] = function;
}

int rec_lacking(const char* function) {
    (void)function;
    say(" lacking\n");
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

void rec_class(int code) {
    int class = code;
    if (code == MPI_SUCCESS) return;
    nulls_again();
    int initialized = 0, finalized = 0;
    PMPI_Initialized(&initialized);
    PMPI_Finalized(&finalized);
    if (initialized && !finalized) PMPI_Error_class(code, &class);
    rec_number("->", "errclass", class);
}

/* REC_NULLS=PREFIX: every place is tried once, except those that PREFIX.skip names. Rank 0 writes each to
 * PREFIX.came before the call and what came of it after, so that a crash says which it was. */
static FILE* nulls_came;
static int nulls_on;
static char nulls_done[FUNCTIONS * 3][80];

void rec_nulls_from_environment(int rank) {
    const char* prefix = getenv("REC_NULLS");
    char path[1000];
    if (!prefix) return;
    nulls_on = 1;
    snprintf(path, sizeof path, "%s.skip", prefix);
    FILE* skip = fopen(path, "r");
    while (skip && fgets(nulls_done[nulls_count], sizeof *nulls_done, skip))
        nulls_done[nulls_count][strcspn(nulls_done[nulls_count], "\n")] = 0, ++nulls_count;
    if (skip) fclose(skip);
    snprintf(path, sizeof path, "%s.came", prefix);
    if (rank == 0) nulls_came = fopen(path, "a");
}

int rec_null(const char* function, const char* parameter) {
    char place[sizeof *nulls_done];
    if (!nulls_on) return 0;
    snprintf(place, sizeof place, "%s %s", function, parameter);
    for (int i = 0; i < nulls_count; ++i)
        if (strcmp(nulls_done[i], place) == 0) return 0;
    if (nulls_count == sizeof nulls_done / sizeof *nulls_done) abort();
    strcpy(nulls_done[nulls_count++], place);
    if (nulls_came) fprintf(nulls_came, "%s ", place), fflush(nulls_came);
    return 1;
}

void rec_null_came(int code) {
    int class = code;
    if (code != MPI_SUCCESS) PMPI_Error_class(code, &class);
    const char* name = code == MPI_SUCCESS ? "SUCCESS" : name_of("errclass", (unsigned long long)class);
    if (nulls_came) fprintf(nulls_came, "%s\n", name ? name : "?"), fflush(nulls_came);
    /* It was done, and is done again by the call that follows: some libraries do not survive that. */
    if (code == MPI_SUCCESS && !getenv("REC_NULLS_ALL")) _exit(33);
}

/* A call that is wrong anyway says nothing of NULL: its places wait for one that is right. */
static void nulls_again(void) {
    while (nulls_count > nulls_before) {
        --nulls_count;
        if (nulls_came) fprintf(nulls_came, "%s again\n", nulls_done[nulls_count]), fflush(nulls_came);
    }
}

int rec_in_status(int code) { return code == MPI_ERR_IN_STATUS; }

static const char* name_of(const char* set, unsigned long long value) {
    for (int i = 0; i < named; ++i)
        if (names[i].value == value && strcmp(names[i].set, set) == 0) return names[i].name;
    return NULL;
}

void rec_constant(const char* set, const char* name, unsigned long long value) {
    if (named == NAMES) abort();
    names[named].set = set, names[named].name = name, names[named++].value = value;
}

void rec_number(const char* what, const char* set, long long value) {
    const char* name = *set ? name_of(set, (unsigned long long)value) : NULL;
    if (!name && value < 0) name = name_of("undefined", (unsigned long long)value);
    if (name)
        say(" %s=%s", what, name);
    else if (value > (1LL << 40) || value < -(1LL << 40))
        say(" %s=large", what); /* an address */
    else
        say(" %s=%lld", what, value);
}

void rec_word(const char* what, const char* word) { say(" %s=%s", what, word); }
void rec_string(const char* what, const char* string) { say(" %s=\"%s\"", what, string); }
void rec_address(const char* what, const void* address) { say(" %s=%s", what, address ? "set" : "null"); }

void rec_handle(const char* what, const char* kind, unsigned long long handle) {
    const char* name = name_of(kind, handle);
    say(" %s=%s", what, name ? name : "some");
}

static void status_words(const MPI_Status* status) {
    int bytes = 0, cancelled = 0;
    PMPI_Get_count((MPI_Status*)status, MPI_BYTE, &bytes);
    PMPI_Test_cancelled((MPI_Status*)status, &cancelled);
    say("{");
    rec_number("source", "rank", status->MPI_SOURCE);
    rec_number("tag", "tag", status->MPI_TAG);
    rec_number("bytes", "", bytes);
    if (cancelled) say(" cancelled");
    say(" }");
}

void rec_status(const char* what, const void* status) {
    say(" %s", what);
    status_words(status);
}

void rec_bytes(const char* what, const void* status) {
    int bytes = 0;
    PMPI_Get_count((MPI_Status*)status, MPI_BYTE, &bytes);
    rec_number(what, "", bytes);
}

void rec_status_of(const char* what, const void* status, int code) {
    if (code != MPI_SUCCESS) {
        rec_class(((const MPI_Status*)status)->MPI_ERROR);
        if (((const MPI_Status*)status)->MPI_ERROR != MPI_SUCCESS) return;
    }
    rec_status(what, status);
}

/* ---- objects ---- */

static unsigned long long word_at(const void* handles, size_t size, long i) {
    if (size == sizeof(int)) return REC_WORD(((const int*)handles)[i]);
    return ((const unsigned long long*)handles)[i];
}

static struct object* find(const char* kind, unsigned long long handle) {
    for (int i = object_count - 1; i >= 0; --i)
        if (objects[i].handle == handle && objects[i].maker && strcmp(objects[i].kind, kind) == 0)
            return &objects[i];
    return NULL;
}

void rec_new(const char* kind, unsigned long long handle, const char* maker, int says) {
    struct object* object = NULL;
    if (name_of(kind, handle)) return; /* predefined or null */
    for (int i = 0; i < object_count && !object; ++i)
        if (!objects[i].maker) object = &objects[i];
    if (!object) {
        if (object_count == OBJECTS) abort();
        object = &objects[object_count++];
    }
    *object = (struct object){kind, maker, handle, 0, 0, says};
}

int rec_says(unsigned long long request) {
    const struct object* object = find("request", request);
    return !object || object->says;
}

unsigned long long* rec_words(const void* handles, size_t size, long n) {
    unsigned long long* words = malloc((size_t)(n + 1) * sizeof *words);
    for (long i = 0; i < n && handles; ++i) words[i] = word_at(handles, size, i);
    return words;
}

static void gone(struct object* object) {
    if (object->held) {
        say(""); /* nothing in the log: the file of objects says it */
        if (!object->used) object->used = 1;
    } else {
        object->maker = NULL;
    }
}

void rec_gone(const char* kind, unsigned long long* before, const void* handles, size_t size, long n) {
    for (long i = 0; i < n && handles; ++i) {
        struct object* object = before[i] != word_at(handles, size, i) ? find(kind, before[i]) : NULL;
        if (object)
            gone(object);
        else
            rec_used(kind, before[i]);
    }
    free(before);
}

void rec_used(const char* kind, unsigned long long handle) {
    struct object* object = find(kind, handle);
    if (object && object->held) object->used = 1;
}

void rec_held(void) {
    for (int i = 0; i < object_count; ++i)
        if (objects[i].maker) objects[i].held = 1;
}

/* ---- for the generated bodies ---- */

void* rec_widen(const void* numbers, long n) {
    if (!numbers) return NULL;
    long long* wide = malloc((size_t)(n + 1) * sizeof *wide);
    for (long i = 0; i < n; ++i) wide[i] = ((const int*)numbers)[i];
    return wide;
}

int rec_size(MPI_Comm comm) {
    int n = 0;
    PMPI_Comm_size(comm, &n);
    return n;
}
int rec_peers(MPI_Comm comm) {
    int inter = 0, n = 0;
    PMPI_Comm_test_inter(comm, &inter);
    if (inter) return PMPI_Comm_remote_size(comm, &n), n;
    return rec_size(comm);
}
int rec_dims(MPI_Comm comm) {
    int n = 0;
    PMPI_Cartdim_get(comm, &n);
    return n;
}
int rec_degree(MPI_Comm comm, int in) {
    int kind = 0, a = 0, b = 0, weighted, me;
    PMPI_Topo_test(comm, &kind);
    PMPI_Comm_rank(comm, &me);
    if (kind == MPI_CART) return 2 * rec_dims(comm);
    if (kind == MPI_GRAPH) return PMPI_Graph_neighbors_count(comm, me, &a), a;
    PMPI_Dist_graph_neighbors_count(comm, &a, &b, &weighted);
    return in ? a : b;
}

/* ---- for the programs ---- */

void rec_show(const char* what, const void* data, int elements, int size) {
    say("%s:", what);
    for (int i = 0; i < elements; ++i) {
        long long value = 0;
        switch (size) {
            case 1:
                value = ((const signed char*)data)[i];
                break;
            case 2:
                value = ((const short*)data)[i];
                break;
            case 4:
                value = ((const int*)data)[i];
                break;
            default:
                memcpy(&value, (const char*)data + (size_t)i * 8, 8);
        }
        say(" %lld", value);
    }
    say("\n");
}

static void write_file(const char* prefix, const char* what, int rank, const char* data, size_t size) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%s.%d", prefix, what, rank);
    FILE* file = fopen(path, "w");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        exit(3);
    }
}

void rec_write(const char* prefix, int rank) {
    write_file(prefix, "log", rank, text, used);
    char* lines = malloc(100 * (FUNCTIONS + OBJECTS));
    size_t n = 0;
    for (int i = 0; i < function_count; ++i) n += (size_t)sprintf(lines + n, "%s\n", functions[i]);
    write_file(prefix, "functions", rank, lines, n);
    n = 0;
    for (int i = 0; i < object_count; ++i)
        if (objects[i].maker && objects[i].held)
            n += (size_t)sprintf(lines + n, "%s %s %s\n", objects[i].kind, objects[i].maker,
                                 objects[i].used ? "used" : "kept");
    write_file(prefix, "held", rank, lines, n);
    free(lines);
}
