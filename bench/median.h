#ifndef FERMATA_BENCH_MEDIAN_H
#define FERMATA_BENCH_MEDIAN_H
#include <stdlib.h>

static int by_value(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}
/* Sorts them. */
static double median(double* times, int count) {
    qsort(times, (size_t)count, sizeof *times, by_value);
    return times[count / 2];
}
#endif
