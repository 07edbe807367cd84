/* The cases of the conformance program; each is a correct MPI program for 2 or more ranks that leaves nothing
 * behind. */
#ifndef CASES_H
#define CASES_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder.h"

enum { ONCE, STYLES }; /* once, or once for each style of calling (recorder.py) */

#define CASES(CASE)                      \
    CASE(environment, ONCE)              \
    CASE(bad_ends, STYLES)               \
    CASE(too_long, ONCE)                 \
    CASE(held_objects, STYLES)           \
    CASE(exchanges, ONCE)                \
    CASE(one_of_many, STYLES)            \
    CASE(started_again, STYLES)          \
    CASE(sends, STYLES)                  \
    CASE(probes, STYLES)                 \
    CASE(requests, STYLES)               \
    CASE(many_requests, ONCE)            \
    CASE(persistent_p2p, STYLES)         \
    CASE(buffered, STYLES)               \
    CASE(generalized, ONCE)              \
    CASE(partitioned, ONCE)              \
    CASE(collectives, STYLES)            \
    CASE(vectors, STYLES)                \
    CASE(not_significant, STYLES)        \
    CASE(reductions, STYLES)             \
    CASE(own_operations, STYLES)         \
    CASE(inter_collectives, STYLES)      \
    CASE(nonblocking, STYLES)            \
    CASE(persistent_collectives, STYLES) \
    CASE(neighbours, STYLES)             \
    CASE(communicators, STYLES)          \
    CASE(groups, ONCE)                   \
    CASE(topologies, ONCE)               \
    CASE(type_makers, STYLES)            \
    CASE(type_queries, STYLES)           \
    CASE(packing, STYLES)                \
    CASE(statuses, STYLES)               \
    CASE(attributes, ONCE)               \
    CASE(names, ONCE)                    \
    CASE(errors, ONCE)                   \
    CASE(infos, ONCE)                    \
    CASE(windows, STYLES)                \
    CASE(passive_windows, STYLES)        \
    CASE(shared_windows, STYLES)         \
    CASE(dynamic_windows, ONCE)          \
    CASE(files, STYLES)                  \
    CASE(file_pointers, STYLES)          \
    CASE(file_properties, ONCE)          \
    CASE(files_at_once, ONCE)            \
    CASE(file_requests, ONCE)            \
    CASE(file_sequential, ONCE)          \
    CASE(sessions, ONCE)                 \
    CASE(dynamic, ONCE)                  \
    CASE(events, ONCE)                   \
    CASE(tools, ONCE)                    \
    CASE(removed, ONCE)                  \
    CASE(conversions, ONCE)

#define DECLARE(name, styles) void case_##name(void);
CASES(DECLARE)
#undef DECLARE

extern int rank, size, left, right, peer; /* peer: the other one of a pair */
extern const char* scratch;               /* a directory of this run */
#define WORLD MPI_COMM_WORLD
#endif
