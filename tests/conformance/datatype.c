#include "cases.h"

/* What the type says of itself, and what it picks of 64 numbers. */
static void look(MPI_Datatype* type) {
    int bytes, data[64], back[64];
    MPI_Aint lb, extent;
    MPI_Count count, wide_lb, wide_extent;
    MPI_Status status;
    MPI_Type_commit(type);
    MPI_Type_size(*type, &bytes);
    MPI_Type_size_x(*type, &count);
    MPI_Type_get_extent(*type, &lb, &extent);
    MPI_Type_get_extent_x(*type, &wide_lb, &wide_extent);
    MPI_Type_get_true_extent(*type, &lb, &extent);
    MPI_Type_get_true_extent_x(*type, &wide_lb, &wide_extent);
    for (int i = 0; i < 64; ++i) data[i] = i, back[i] = -1;
    PMPI_Sendrecv(data + 4, 1, *type, rank, 2, back, 64, MPI_INT, rank, 2, WORLD, &status);
    SHOW(back);
    for (int i = 0; i < 64; ++i) back[i] = -1;
    PMPI_Sendrecv(data, bytes, MPI_BYTE, rank, 2, back + 4, 1, *type, rank, 2, WORLD, &status);
    SHOW(back);
    int integers = 0, addresses = 0, types = 0, combiner;
    MPI_Type_get_envelope(*type, &integers, &addresses, &types, &combiner);
    int i[20];
    MPI_Aint a[20];
    MPI_Datatype t[20];
    if (integers > 20 || addresses > 20 || types > 20) return;
    MPI_Type_get_contents(*type, integers, addresses, types, i, a, t);
    for (int j = 0; j < types; ++j) {
        int n, m, k;
        PMPI_Type_get_envelope(t[j], &n, &m, &k, &combiner);
        if (combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_INTEGER) PMPI_Type_free(&t[j]);
    }
    MPI_Type_free(type);
}

void case_type_makers(void) {
    MPI_Datatype type, inner;
    int lengths[3] = {1, 2, 1}, places[3] = {0, 3, 7}, sizes[2] = {4, 5}, subsizes[2] = {2, 3},
        starts[2] = {1, 1};
    MPI_Aint far[3] = {0, 16, 40};
    MPI_Datatype kinds[3] = {MPI_INT, MPI_INT, MPI_FLOAT};
    MPI_Type_contiguous(3, MPI_INT, &type), look(&type);
    MPI_Type_vector(3, 2, 4, MPI_INT, &type), look(&type);
    MPI_Type_create_hvector(2, 1, 20, MPI_INT, &type), look(&type);
    MPI_Type_indexed(3, lengths, places, MPI_INT, &type), look(&type);
    MPI_Type_create_hindexed(3, lengths, far, MPI_INT, &type), look(&type);
    MPI_Type_create_indexed_block(3, 2, places, MPI_INT, &type), look(&type);
    MPI_Type_create_hindexed_block(3, 1, far, MPI_INT, &type), look(&type);
    MPI_Type_create_struct(3, lengths, far, kinds, &type), look(&type);
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type), look(&type);
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_INT, &type), look(&type);
    int gsizes[2] = {6, 4}, distribs[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
    int dargs[2] = {1, MPI_DISTRIBUTE_DFLT_DARG}, psizes[2] = {size, 1};
    MPI_Type_create_darray(size, rank, 2, gsizes, distribs, dargs, psizes, MPI_ORDER_C, MPI_INT, &type),
        look(&type);
    MPI_Type_create_resized(MPI_INT, -4, 12, &type), look(&type);
    MPI_Type_vector(2, 1, 2, MPI_INT, &inner);
    MPI_Type_dup(inner, &type), look(&type);
    MPI_Type_contiguous(2, inner, &type), look(&type);
    MPI_Type_free(&inner);
    MPI_Type_contiguous(-1, MPI_INT, &type);
    MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type);
    type = MPI_DATATYPE_NULL;
    MPI_Type_free(&type);
    type = MPI_INT;
    MPI_Type_free(&type);
    MPI_Type_commit(&type);
}

void case_type_queries(void) {
    MPI_Datatype type;
    int n = 0, integers, addresses, types, combiner;
    MPI_Aint address, base;
    int array[4];
    MPI_Type_create_f90_integer(8, &type), MPI_Type_size(type, &n);
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    MPI_Type_create_f90_real(12, 200, &type), MPI_Type_size(type, &n);
    MPI_Type_create_f90_complex(6, 30, &type), MPI_Type_size(type, &n);
    MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type), MPI_Type_size(type, &n);
    MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, &type), MPI_Type_size(type, &n);
    MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 16, &type), MPI_Type_size(type, &n);
    MPI_Type_match_size(MPI_TYPECLASS_REAL, 5, &type);
    MPI_Type_get_envelope(MPI_INT, &integers, &addresses, &types, &combiner);
    MPI_Get_address(array, &base);
    MPI_Get_address(array + 3, &address);
    MPI_Aint difference = MPI_Aint_diff(address, base), sum = MPI_Aint_add(base, 12) - address;
    SHOW1(difference), SHOW1(sum);
    MPI_Get_address(MPI_IN_PLACE, &address); /* no buffer here */
    int in_place = address == (MPI_Aint)MPI_IN_PLACE;
    SHOW1(in_place);
    if (rec_mode == REC_PLAIN) {
        MPI_Count i, a, large, t;
        int integer[20];
        MPI_Aint places[20];
        MPI_Count counts[20];
        MPI_Datatype inner[20];
        PMPI_Type_vector(3, 1, 2, MPI_INT, &type);
        if (MPI_Type_get_envelope_c(type, &i, &a, &large, &t, &combiner) == MPI_SUCCESS)
            MPI_Type_get_contents_c(type, i, a, large, t, integer, places, counts, inner);
        PMPI_Type_free(&type);
        MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &type);
    }
    MPI_Type_get_extent(MPI_DATATYPE_NULL, &base, &address);
}

void case_packing(void) {
    char space[400];
    int data[6] = {1, 2, 3, 4, 5, rank}, back[6] = {0}, at = 0, bytes;
    double x[2] = {0.5, -3}, y[2] = {0};
    MPI_Aint place = 0, room;
    MPI_Datatype vector;
    MPI_Type_vector(3, 1, 2, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    rec_off = 1; /* how much room a library asks for is its own */
    MPI_Pack_size(6, MPI_INT, WORLD, &bytes);
    rec_off = 0;
    MPI_Pack(data, 6, MPI_INT, space, sizeof space, &at, WORLD);
    MPI_Pack(x, 2, MPI_DOUBLE, space, sizeof space, &at, WORLD);
    MPI_Pack(data, 1, vector, space, sizeof space, &at, WORLD);
    SHOW1(at);
    at = 0;
    MPI_Unpack(space, sizeof space, &at, back, 6, MPI_INT, WORLD);
    MPI_Unpack(space, sizeof space, &at, y, 2, MPI_DOUBLE, WORLD);
    SHOW(back), SHOW(y);
    memset(back, 0, sizeof back);
    MPI_Unpack(space, sizeof space, &at, back, 1, vector, WORLD);
    SHOW(back);
    MPI_Pack_external_size("external32", 6, MPI_INT, &room);
    MPI_Pack_external("external32", data, 6, MPI_INT, space, sizeof space, &place);
    MPI_Pack_external("external32", x, 2, MPI_DOUBLE, space, sizeof space, &place);
    rec_show("external32", space, (int)place, 1);
    place = 0;
    memset(back, 0, sizeof back);
    MPI_Unpack_external("external32", space, sizeof space, &place, back, 6, MPI_INT);
    SHOW(back);
    at = 0;
    MPI_Pack(data, 6, MPI_INT, space, 3, &at, WORLD); /* too little room */
    MPI_Type_free(&vector);
}

void case_statuses(void) {
    MPI_Status status;
    int n, out[4] = {1, 2, 3, 4}, in[8];
    MPI_Count count;
    MPI_Datatype pair;
    MPI_Type_contiguous(3, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    PMPI_Sendrecv(out, 4, MPI_INT, rank, 1, in, 2, pair, rank, 1, WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &n);
    MPI_Get_count(&status, pair, &n); /* not a whole number */
    MPI_Get_elements(&status, pair, &n);
    MPI_Get_elements_x(&status, pair, &count);
    MPI_Get_count(&status, MPI_DOUBLE, &n);
    MPI_Status_set_elements(&status, MPI_INT, 5);
    MPI_Get_count(&status, MPI_INT, &n);
    MPI_Status_set_elements_x(&status, pair, 7);
    MPI_Get_elements_x(&status, pair, &count);
    MPI_Status_set_cancelled(&status, 1);
    MPI_Test_cancelled(&status, &n);
    MPI_Type_free(&pair);
    if (rec_mode == REC_PLAIN) {
        MPI_Status_set_source(&status, 3), MPI_Status_set_tag(&status, 4),
            MPI_Status_set_error(&status, MPI_ERR_RANK);
        MPI_Status_get_source(&status, &n), MPI_Status_get_tag(&status, &n),
            MPI_Status_get_error(&status, &n);
    }
}
