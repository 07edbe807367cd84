/* The log of MPI calls (tools/fmgen/recorder.py writes into it): one line per call, in memory, so that it is
 * part of an image; written to files at the end. Objects alive are followed, to say what a checkpoint held.
 */
#ifndef RECORD_H
#define RECORD_H
#include <stddef.h>

#define REC_WORD(handle) ((unsigned long long)(size_t)(handle))

void rec_begin(const char* function);
void rec_called(const char* function); /* what was really called */
int rec_lacking(const char* function); /* the library has it not: an error class of its own */
void rec_class(int code);
int rec_in_status(int code);
void rec_end(void);

void rec_number(const char* what, const char* names, long long value);
void rec_word(const char* what, const char* word);
void rec_string(const char* what, const char* text);
void rec_address(const char* what, const void* address);
void rec_handle(const char* what, const char* kind, unsigned long long handle);
void rec_status(const char* what, const void* status);
void rec_bytes(const char* what, const void* status);
void rec_status_of(const char* what, const void* status, int code);
int rec_says(unsigned long long request); /* has its status a meaning? */
void rec_constant(const char* names, const char* name, unsigned long long value);
void rec_constants(void);

/* What a library says to NULL where it has to read or write something: nulls.py. */
void rec_nulls_from_environment(int rank);
int rec_null(const char* function, const char* parameter);
void rec_null_came(int code);
#define REC_NULL(function, parameter, call)                     \
    do {                                                        \
        if (rec_null(function, parameter)) rec_null_came(call); \
    } while (0)

/* Objects: by whom they were made, whether they are still there. */
void rec_new(const char* kind, unsigned long long handle, const char* maker, int says);
void rec_used(const char* kind, unsigned long long handle);
unsigned long long* rec_words(const void* handles, size_t size, long n);
void rec_gone(const char* kind, unsigned long long* before, const void* handles, size_t size, long n);
void rec_held(void);

/* Arrays for the large-count siblings: made for good, a non-blocking call may need them for long. */
void* rec_widen(const void* numbers, long n);

/* For the programs. */
void rec_section(const char* name);
void rec_show(const char* what, const void* data, int elements,
              int element_size); /* integers of 1, 2, 4, 8 bytes */
size_t rec_at(void);
void rec_rewind(size_t at);
void rec_write(const char* prefix, int rank);
extern int rec_off; /* calls are made, not written */

#define SHOW(array) rec_show(#array, array, (int)(sizeof(array) / sizeof *(array)), (int)sizeof *(array))
#define SHOW1(value) rec_show(#value, &(value), 1, (int)sizeof(value))
/* Repeats a call until `flag` is true; only the last one stays in the log. */
#define UNTIL(flag, call)                 \
    do {                                  \
        const size_t rec_here = rec_at(); \
        do {                              \
            rec_rewind(rec_here);         \
            call;                         \
        } while (!(flag));                \
    } while (0)
#endif
