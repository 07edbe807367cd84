#include "spank/line.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Text that grows.
struct text {
    char* bytes;
    size_t size, room;
};

static void* enough(void* memory) {
    if (memory == NULL) abort();
    return memory;
}

static void put(struct text* text, const char* bytes, size_t size) {
    if (text->size + size + 1 > text->room) {
        text->room = 2 * (text->size + size + 1);
        text->bytes = enough(realloc(text->bytes, text->room));
    }
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    text->bytes[text->size] = '\0';
}

static void put_char(struct text* text, char c) { put(text, &c, 1); }

static void fail(char error[512], const char* format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(error, 512, format, list);
    va_end(list);
}

// Takes the text, which may be empty.
static void add(struct fermata_line* line, struct text* text) {
    put(text, "", 0);
    line->words = enough(realloc(line->words, (line->count + 2) * sizeof *line->words));
    line->words[line->count++] = text->bytes;
    line->words[line->count] = NULL;
    *text = (struct text){0};
}

static void add_word(struct fermata_line* line, const char* word) {
    struct text text = {0};
    put(&text, word, strlen(word));
    add(line, &text);
}

void fermata_free(struct fermata_line* line) {
    for (size_t i = 0; i < line->count; ++i) free(line->words[i]);
    free(line->words);
    line->words = NULL;
    line->count = 0;
}

// Is `word` this option, or with "=" and a value behind it?
static bool is_option(const char* word, const char* option) {
    const size_t length = strlen(option);
    return strncmp(word, option, length) == 0 && (word[length] == '\0' || word[length] == '=');
}

static const char* base_name(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

const char* fermata_why_not(char* const* words, size_t program) {
    // Started by srun when an mpiexec runs in an allocation (Open MPI, MPICH).
    static const char* const daemons[] = {"orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy",
                                          "pmi_proxy"};
    for (size_t i = 1; i < program; ++i) {
        if (is_option(words[i], "--pty") || is_option(words[i], "--interactive")) return "a shell";
        if (is_option(words[i], "--test-only")) return "nothing is run";
    }
    const char* name = base_name(words[program]);
    for (size_t i = 0; i < sizeof daemons / sizeof *daemons; ++i)
        if (strcmp(name, daemons[i]) == 0) return "a daemon of an mpiexec";
    return NULL;
}

static const char* first_of(const char* (*variable)(const char*), const char* one, const char* other) {
    const char* value = variable(one);
    return value == NULL && other != NULL ? variable(other) : value;
}

char* fermata_directory(const char* pattern, const char* (*variable)(const char*), char error[512]) {
    struct text text = {0};
    error[0] = '\0';
    for (const char* at = pattern; *at; ++at) {
        if (*at != '%') {
            put_char(&text, *at);
            continue;
        }
        const char* value = NULL;
        switch (*++at) {
            case '%':
                value = "%";
                break;
            case 'j':
                value = variable("SLURM_JOB_ID");
                break;
            case 'A':
                value = first_of(variable, "SLURM_ARRAY_JOB_ID", "SLURM_JOB_ID");
                break;
            case 'a':
                value = variable("SLURM_ARRAY_TASK_ID");
                break;
            case 'x':
                value = variable("SLURM_JOB_NAME");
                break;
            default:
                fail(error, "--" FERMATA_OPTION "=%s: there are %%j, %%A, %%a, %%x and %%%%", pattern);
        }
        if (value == NULL && error[0] == '\0')
            fail(error,
                 "--" FERMATA_OPTION "=%s: Slurm has said nothing for %%%c: that is known inside of a job%s",
                 pattern, *at, *at == 'a' ? " array" : "");
        if (error[0] != '\0') {
            free(text.bytes);
            return NULL;
        }
        put(&text, value, strlen(value));
    }
    put(&text, "", 0);
    return text.bytes;
}

// Words of `options`, as launch::split_words() has them.
static void add_options(struct fermata_line* line, const char* options) {
    struct text word = {0};
    bool open = false;
    char quote = 0;
    for (const char* at = options; *at; ++at) {
        if (quote != 0) {
            if (*at == quote)
                quote = 0;
            else if (*at == '\\' && quote == '"' && at[1] != '\0')
                put_char(&word, *++at);
            else
                put_char(&word, *at);
        } else if (*at == '\'' || *at == '"') {
            quote = *at;
            open = true;
        } else if (strchr(" \t\n", *at) != NULL) {
            if (open) add(line, &word);
            open = false;
        } else {
            if (*at == '\\' && at[1] != '\0') ++at;
            put_char(&word, *at);
            open = true;
        }
    }
    if (quote != 0) fail(line->error, "--" FERMATA_OPTION_WORDS " has an unclosed %c: %s", quote, options);
    if (open && quote == 0)
        add(line, &word);
    else
        free(word.bytes);
}

// Puts a word so that Fermata finds it whole when it splits the text.
static void put_quoted(struct text* text, const char* word) {
    put_char(text, '\'');
    for (; *word; ++word)
        if (*word == '\'')
            put(text, "'\\''", 4);
        else
            put_char(text, *word);
    put_char(text, '\'');
}

// getopt takes any beginning that no other option has.
static bool is_of_plugin(const char* word) {
    const size_t length = strcspn(word, "=");
    return length > 2 && length <= strlen("--" FERMATA_OPTION_WORDS) &&
           strncmp(word, "--" FERMATA_OPTION_WORDS, length) == 0;
}

// srun's own options, as one word, without those of the plugin.
static void add_srun_options(struct fermata_line* line, char* const* words, size_t program) {
    struct text text = {0};
    put(&text, "--srun-args=", strlen("--srun-args="));
    const size_t empty = text.size;
    for (size_t i = 1; i < program; ++i) {
        if (is_of_plugin(words[i])) {
            if (strchr(words[i], '=') == NULL) ++i;
            continue;
        }
        if (strcmp(words[i], "--") == 0) continue;
        if (text.size > empty) put_char(&text, ' ');
        put_quoted(&text, words[i]);
    }
    if (text.size > empty)
        add(line, &text);
    else
        free(text.bytes);
}

// Adds what scripts of `fermata batch` say, too, unless the user's options between `first` and `end` do.
static void add_defaults(struct fermata_line* line, size_t first, size_t end) {
    bool said = false;
    for (size_t i = first; i < end; ++i)
        said = said || is_option(line->words[i], "--interval") || is_option(line->words[i], "--levels") ||
               is_option(line->words[i], "--own-state");
    if (!said) {
        add_word(line, "--interval");
        add_word(line, "auto");
    }
}

struct fermata_line fermata_make_line(const char* fermata, const char* directory, const char* options,
                                      char* const* words, size_t program) {
    struct fermata_line line = {0};
    for (size_t i = program; words[i] != NULL; ++i)
        if (strcmp(words[i], ":") == 0)
            fail(line.error,
                 "--" FERMATA_OPTION
                 ": several programs in one step, with ':' between them: start them by `fermata run`, "
                 "without this option");
    add_word(&line, fermata);
    const char* const fixed[] = {"run", "--launcher", "srun", "--continue", "--max-restarts", "10"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; ++i) add_word(&line, fixed[i]);
    const size_t first = line.count;
    if (options != NULL) add_options(&line, options);
    for (size_t i = first; i < line.count; ++i)
        if (is_option(line.words[i], "--launcher") || strcmp(line.words[i], "--") == 0)
            fail(line.error,
                 "--" FERMATA_OPTION_WORDS
                 " takes no %s: srun has been given the program, and starts the ranks",
                 line.words[i]);
    add_defaults(&line, first, line.count);
    add_word(&line, "--ckpt-dir");
    add_word(&line, directory);
    add_srun_options(&line, words, program);
    add_word(&line, "--");
    for (size_t i = program; words[i] != NULL; ++i) add_word(&line, words[i]);
    return line;
}
