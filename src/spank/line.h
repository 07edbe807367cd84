// The command line that stands in the place of srun's: `srun --fermata=DIR -n 4 ./solver` becomes `fermata
// run --launcher srun … -- ./solver`. Knows nothing of Slurm, so that it can be tested without.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Options of Slurm's commands.
#define FERMATA_OPTION "fermata"
#define FERMATA_OPTION_WORDS "fermata-options"
// DIR of a step that is to run as if there were no plugin.
#define FERMATA_OFF "off"

struct fermata_line {
    char** words;  // the last one is followed by NULL
    size_t count;
    char error[512];  // empty, or why there is none, as one line without an end
};

// Returns the reason to leave srun to itself though it has the option, or NULL. `words`: srun's, `program`:
// the index of the first one that is none of its options.
const char* fermata_why_not(char* const* words, size_t program);

// Returns "ckpt-%j" with the job's number: %j, %A, %a, %x as in sbatch's --output, %% for one such sign; the
// caller frees it. NULL, and a line in `error`, where Slurm's variable for it is not there.
char* fermata_directory(const char* pattern, const char* (*variable)(const char*), char error[512]);

// Puts the line together. `fermata`: the program; `directory`: of the checkpoints; `options`: those for
// `fermata run`, as a shell splits them, or NULL.
struct fermata_line fermata_make_line(const char* fermata, const char* directory, const char* options,
                                      char* const* words, size_t program);
void fermata_free(struct fermata_line* line);

#ifdef __cplusplus
}
#endif
