// The plugin for Slurm: gives srun, sbatch and salloc the option --fermata=DIR. An srun that has it, or is in
// a job that has it, becomes `fermata run --launcher srun --continue --ckpt-dir DIR … -- PROGRAM` before it
// has asked Slurm for anything; that starts an srun of its own, without the option. Everywhere else, on the
// nodes above all, nothing is done but that the option is known.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spank/line.h"

SPANK_PLUGIN(fermata, 1)

// Exit codes of Fermata.
enum { kFailed = 1, kUsage = 2 };

static char* directory_;
static char* options_;

// Ends srun: an error that the plugin returns would let it go on where the plugin is optional.
static void __attribute__((noreturn)) give_up(int code, const char* line) {
    dprintf(STDERR_FILENO, "fermata: error: %s\n", line);
    _exit(code);
}

static int keep(char** where, const char* value) {
    if (value == NULL || *value == '\0') return -1;
    free(*where);
    *where = strdup(value);
    return *where == NULL ? -1 : 0;
}

static int take_directory(int number, const char* value, int remote) {
    (void)number, (void)remote;
    return keep(&directory_, value);
}

static int take_options(int number, const char* value, int remote) {
    (void)number, (void)remote;
    return keep(&options_, value);
}

static struct spank_option offered_[] = {
    {(char*)FERMATA_OPTION, (char*)"DIR",
     (char*)"srun steps run under Fermata: checkpoints in DIR, and a job that has some goes on from the "
            "newest (" FERMATA_OFF ": this step does not)",
     1, 0, take_directory},
    {(char*)FERMATA_OPTION_WORDS, (char*)"WORDS",
     (char*)"with --fermata: options of `fermata run`, as one word", 1, 0, take_options},
};

int slurm_spank_init(spank_t spank, int count, char* values[]) {
    (void)count, (void)values;
    const spank_context_t context = spank_context();
    if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE) return 0;
    for (size_t i = 0; i < sizeof offered_ / sizeof *offered_; ++i)
        if (spank_option_register(spank, &offered_[i]) != ESPANK_SUCCESS) return -1;
    return 0;
}

// The words of this process, ended by NULL; they are never freed.
static char** own_words(size_t* count) {
    char* bytes = NULL;
    size_t size = 0, room = 0;
    const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    for (;;) {
        if (size + 1 >= room) {
            room = room == 0 ? 4096 : 2 * room;
            bytes = realloc(bytes, room);
            if (bytes == NULL) give_up(kFailed, "no memory");
        }
        const ssize_t got = read(file, bytes + size, room - size - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) give_up(kFailed, "srun's own command line cannot be read");
        if (got == 0) break;
        size += (size_t)got;
    }
    close(file);
    bytes[size] = '\0';
    size_t words = 0;
    for (size_t i = 0; i < size; ++i) words += bytes[i] == '\0';
    char** all = calloc(words + 1, sizeof *all);
    if (all == NULL) give_up(kFailed, "no memory");
    *count = words;
    for (size_t i = 0, at = 0; i < words; ++i) {
        all[i] = bytes + at;
        at += strlen(bytes + at) + 1;
    }
    return all;
}

// Finds the program: as plugstack.conf says (fermata=PATH), in the installation that this file belongs to, or
// in PATH.
static const char* find_fermata(int count, char* values[]) {
    static char path[4096];
    for (int i = 0; i < count; ++i)
        if (strncmp(values[i], "fermata=", strlen("fermata=")) == 0) return values[i] + strlen("fermata=");
    Dl_info self;
    char file[4096];
    if (dladdr((void*)&slurm_spank_init, &self) != 0 && self.dli_fname != NULL &&
        realpath(self.dli_fname, file) != NULL) {
        // PREFIX/lib/fermata/slurm/fermata_spank.so
        for (int up = 0; up < 4; ++up) {
            char* slash = strrchr(file, '/');
            if (slash != NULL) *slash = '\0';
        }
        snprintf(path, sizeof path, "%.4000s/bin/fermata", file);
        if (access(path, X_OK) == 0) return path;
    }
    return "fermata";
}

extern char** environ;

// Takes the options from the environment, by which Slurm hands them down: Fermata's own srun has none.
static void forget_options(void) {
    static const char* const inherited[] = {"SLURM_SPANK__SLURM_SPANK_OPTION_fermata_",
                                            "_SLURM_SPANK_OPTION_fermata_"};
    for (char** one = environ; *one != NULL;) {
        char name[256];
        const size_t length = strcspn(*one, "=");
        bool ours = false;
        for (size_t i = 0; i < sizeof inherited / sizeof *inherited; ++i)
            ours = ours || strncmp(*one, inherited[i], strlen(inherited[i])) == 0;
        if (!ours || length >= sizeof name) {
            ++one;
            continue;
        }
        memcpy(name, *one, length);
        name[length] = '\0';
        unsetenv(name);
        one = environ;
    }
}

static const char* variable(const char* name) { return getenv(name); }

// Stands for `variable` before there is a job, which may have all of them.
static const char* known(const char* name) { return name; }

// sbatch and salloc say at once what every srun of the job would say.
static void check_words(void) {
    static char srun[] = "srun", program[] = "program";
    char* const words[] = {srun, program, NULL};
    char error[512];
    char* directory = fermata_directory(directory_, known, error);
    if (directory == NULL) give_up(kUsage, error);
    struct fermata_line line = fermata_make_line("fermata", directory, options_, words, 1);
    if (line.error[0] != '\0') give_up(kUsage, line.error);
    fermata_free(&line);
    free(directory);
}

int slurm_spank_init_post_opt(spank_t spank, int count, char* values[]) {
    (void)spank;
    const spank_context_t context = spank_context();
    if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR) return 0;
    if (directory_ != NULL && strcmp(directory_, FERMATA_OFF) == 0) return 0;
    if (directory_ == NULL) {
        if (options_ != NULL)
            give_up(kUsage, "--" FERMATA_OPTION_WORDS " goes with --" FERMATA_OPTION "=DIR");
        return 0;
    }
    if (context == S_CTX_ALLOCATOR) {
        check_words();
        return 0;
    }
    size_t all = 0;
    char** words = own_words(&all);
    // getopt has stopped there: srun has just read its options.
    const size_t program = optind > 0 ? (size_t)optind : all;
    if (program >= all || fermata_why_not(words, program) != NULL) return 0;
    char error[512];
    char* directory = fermata_directory(directory_, variable, error);
    if (directory == NULL) give_up(kUsage, error);
    struct fermata_line line =
        fermata_make_line(find_fermata(count, values), directory, options_, words, program);
    if (line.error[0] != '\0') give_up(kUsage, line.error);
    forget_options();
    execvp(line.words[0], line.words);
    snprintf(error, sizeof error, "--" FERMATA_OPTION ": cannot run %.300s: %s", line.words[0],
             strerror(errno));
    give_up(kFailed, error);
}
