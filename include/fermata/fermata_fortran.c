/* The C half of fermata.f90: compiled with the program, so that it knows the program's MPI (docs/api.md). */
#include <ISO_Fortran_binding.h>
#include <string.h>

#include "fermata.h"

/* MPI_Fint of the communicator; names and options end in a null. */
int fermata_f_open(fermata_handle** handle, MPI_Fint comm, const char* directory, const char* options) {
    return fermata_open(handle, MPI_Comm_f2c(comm), directory, options);
}

/* Fortran's arrays have their first index fastest: the order of dimensions is turned round. */
static void turned(int64_t* to, const int64_t* from, int n) {
    for (int i = 0; i < n; i++) to[i] = from[n - 1 - i];
}

int fermata_f_array(fermata_handle* handle, const char* name, void* data, int type, int n,
                    const int64_t* global, const int64_t* first, const int64_t* extent,
                    const int64_t* stride) {
    int64_t g[FERMATA_MOST_DIMENSIONS], o[FERMATA_MOST_DIMENSIONS], e[FERMATA_MOST_DIMENSIONS],
        s[FERMATA_MOST_DIMENSIONS];
    if (n < 1 || n > FERMATA_MOST_DIMENSIONS)
        return fermata_protect_array(handle, name, data, (fermata_type)type, n, global, first, extent,
                                     stride);
    turned(g, global, n);
    turned(o, first, n);
    for (int i = 0; i < n; i++) o[i] -= 1; /* Fortran counts from 1 */
    turned(e, extent, n);
    if (stride) turned(s, stride, n);
    return fermata_protect_array(handle, name, data, (fermata_type)type, n, g, o, e, stride ? s : NULL);
}

/* The sentence, without a null, filled up with blanks. */
void fermata_f_message(const fermata_handle* handle, char* text, int64_t length) {
    const char* sentence = fermata_message(handle);
    size_t n = strlen(sentence);
    memset(text, ' ', (size_t)length);
    memcpy(text, sentence, n < (size_t)length ? n : (size_t)length);
}

/* A fermata_type; characters, logicals and derived types are bytes. */
static int type_of(const CFI_cdesc_t* d) {
    switch (d->type) {
        case CFI_type_int8_t:
            return FERMATA_INT8;
        case CFI_type_int16_t:
            return FERMATA_INT16;
        case CFI_type_int32_t:
            return FERMATA_INT32;
        case CFI_type_int64_t:
            return FERMATA_INT64;
        case CFI_type_float:
            return FERMATA_FLOAT;
        case CFI_type_double:
            return FERMATA_DOUBLE;
        case CFI_type_float_Complex:
            return FERMATA_COMPLEX_FLOAT;
        case CFI_type_double_Complex:
            return FERMATA_COMPLEX_DOUBLE;
        default:
            return FERMATA_BYTE;
    }
}

/* A scalar is an array of one element. Bytes come with the first extent multiplied by the element's length.
 */
int fermata_f_describe(const CFI_cdesc_t* d, int* n, int64_t* extent, void** address, int* type) {
    *n = d->rank > 0 ? d->rank : 1;
    *address = d->base_addr;
    *type = type_of(d);
    extent[0] = 1;
    for (int i = 0; i < d->rank && i < FERMATA_MOST_DIMENSIONS; i++) extent[i] = (int64_t)d->dim[i].extent;
    if (*type == FERMATA_BYTE) extent[0] *= (int64_t)d->elem_len;
    return d->rank > FERMATA_MOST_DIMENSIONS || (d->rank > 0 && !CFI_is_contiguous(d));
}
