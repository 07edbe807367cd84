// The constructors of datatypes: each describes what was asked for and has it made.
#include "front/objects/api.h"
#include "front/objects/datatype.h"
#include "front/objects/internal.h"

namespace fermata::front {
namespace {

bool fits(const Vec<int64_t>& values) {
    for (int64_t value : values)
        if (value != static_cast<int>(value)) return false;
    return true;
}

TypeObject* describe(int combiner, Vec<int64_t>&& ints, Vec<int64_t>&& aints) {
    auto* type = fm_new<TypeObject>();
    type->combiner = combiner;
    type->ints = static_cast<Vec<int64_t>&&>(ints);
    type->aints = static_cast<Vec<int64_t>&&>(aints);
    return type;
}

bool add_child(TypeObject* type, Datatype handle) {
    TypeObject* child = find(handle);
    if (child == nullptr) return false;
    type_ref(child);
    type->types.push_back(child);
    return true;
}

int create(TypeObject* type, Datatype* newtype) {
    int rc = type_create(type);
    if (rc == FM_SUCCESS) *newtype = Datatype{type->handle};
    return rc;
}

int create_from(TypeObject* type, Datatype oldtype, Datatype* newtype) {
    if (!add_child(type, oldtype)) {
        type_destroy(type);
        return FM_ERR_TYPE;
    }
    return create(type, newtype);
}

template <typename... Part>
Vec<int64_t> joined(const Part&... parts) {
    Vec<int64_t> all;
    (all.insert(all.end(), parts.begin(), parts.end()), ...);
    return all;
}
Vec<int64_t> one(int64_t value) { return Vec<int64_t>(1, value); }
template <typename T>
Vec<int64_t> many(int64_t n, const T* values) {
    Vec<int64_t> list;
    if (n > 0 && values != nullptr) list.assign(values, values + n);
    return list;
}

template <typename T>
int create_indexed(int64_t n, const T* lengths, const T* displacements, Datatype oldtype, Datatype* newtype) {
    if (n < 0) return FM_ERR_COUNT;
    TypeObject* type =
        describe(FM_COMBINER_INDEXED, joined(one(n), many(n, lengths), many(n, displacements)), {});
    type->large = !fits(type->ints);
    return create_from(type, oldtype, newtype);
}
template <typename T>
int create_hindexed(int64_t n, const T* lengths, const int64_t* displacements, Datatype oldtype,
                    Datatype* newtype) {
    if (n < 0) return FM_ERR_COUNT;
    TypeObject* type =
        describe(FM_COMBINER_HINDEXED, joined(one(n), many(n, lengths)), many(n, displacements));
    type->large = !fits(type->ints);
    return create_from(type, oldtype, newtype);
}
template <typename T>
int create_indexed_block(int64_t n, int64_t length, const T* displacements, Datatype oldtype,
                         Datatype* newtype) {
    if (n < 0) return FM_ERR_COUNT;
    TypeObject* type =
        describe(FM_COMBINER_INDEXED_BLOCK, joined(one(n), one(length), many(n, displacements)), {});
    type->large = !fits(type->ints);
    return create_from(type, oldtype, newtype);
}
template <typename T>
int create_struct(int64_t n, const T* lengths, const int64_t* displacements, const Datatype* children,
                  Datatype* newtype) {
    if (n < 0) return FM_ERR_COUNT;
    TypeObject* type = describe(FM_COMBINER_STRUCT, joined(one(n), many(n, lengths)), many(n, displacements));
    type->large = !fits(type->ints);
    for (int64_t i = 0; i < n; i++)
        if (!add_child(type, children[i])) {
            type_destroy(type);
            return FM_ERR_TYPE;
        }
    return create(type, newtype);
}
template <typename T>
int create_subarray(int ndims, const T* sizes, const T* subsizes, const T* starts, int order,
                    Datatype oldtype, Datatype* newtype) {
    if (ndims < 1) return FM_ERR_ARG;
    TypeObject* type = describe(
        FM_COMBINER_SUBARRAY,
        joined(one(ndims), many(ndims, sizes), many(ndims, subsizes), many(ndims, starts), one(order)), {});
    type->large = !fits(type->ints);
    return create_from(type, oldtype, newtype);
}
template <typename T>
int create_darray(int size, int rank, int ndims, const T* gsizes, const int* distribs, const int* dargs,
                  const int* psizes, int order, Datatype oldtype, Datatype* newtype) {
    if (ndims < 1) return FM_ERR_ARG;
    TypeObject* type =
        describe(FM_COMBINER_DARRAY,
                 joined(one(size), one(rank), one(ndims), many(ndims, gsizes), many(ndims, distribs),
                        many(ndims, dargs), many(ndims, psizes), one(order)),
                 {});
    type->large = !fits(type->ints);
    return create_from(type, oldtype, newtype);
}

// MPI-4.0 19.1.9: asking twice for the same precision gives the same handle, and it is never freed.
int create_f90(int combiner, Vec<int64_t>&& ints, Datatype* newtype) {
    if (const TypeObject* type = type_like(combiner, ints)) {
        *newtype = Datatype{type->handle};
        return FM_SUCCESS;
    }
    TypeObject* type = describe(combiner, static_cast<Vec<int64_t>&&>(ints), {});
    type->permanent = true;
    type->committed = true;
    return create(type, newtype);
}

}  // namespace

extern "C" {

int fm_Type_contiguous(Count count, Datatype oldtype, Datatype* newtype) {
    Call call("MPI_Type_contiguous");
    if (count < 0) return call.finish(FM_ERR_COUNT);
    TypeObject* type = describe(FM_COMBINER_CONTIGUOUS, one(count), {});
    type->large = !fits(type->ints);
    return call.finish(create_from(type, oldtype, newtype));
}

int fm_Type_vector(Count count, Count blocklength, Count stride, Datatype oldtype, Datatype* newtype) {
    Call call("MPI_Type_vector");
    if (count < 0) return call.finish(FM_ERR_COUNT);
    TypeObject* type = describe(FM_COMBINER_VECTOR, joined(one(count), one(blocklength), one(stride)), {});
    type->large = !fits(type->ints);
    return call.finish(create_from(type, oldtype, newtype));
}

int fm_Type_create_hvector(Count count, Count blocklength, Count stride, Datatype oldtype,
                           Datatype* newtype) {
    Call call("MPI_Type_create_hvector");
    if (count < 0) return call.finish(FM_ERR_COUNT);
    TypeObject* type = describe(FM_COMBINER_HVECTOR, joined(one(count), one(blocklength)), one(stride));
    type->large = !fits(type->ints);
    return call.finish(create_from(type, oldtype, newtype));
}

int fm_Type_indexed(int count, const int* blocklengths, const int* displacements, Datatype oldtype,
                    Datatype* newtype) {
    Call call("MPI_Type_indexed");
    return call.finish(create_indexed(count, blocklengths, displacements, oldtype, newtype));
}
int fm_Type_indexed_c(Count count, const Count* blocklengths, const Count* displacements, Datatype oldtype,
                      Datatype* newtype) {
    Call call("MPI_Type_indexed_c");
    return call.finish(create_indexed(count, blocklengths, displacements, oldtype, newtype));
}

int fm_Type_create_hindexed(int count, const int* blocklengths, const Aint* displacements, Datatype oldtype,
                            Datatype* newtype) {
    Call call("MPI_Type_create_hindexed");
    return call.finish(create_hindexed(count, blocklengths, displacements, oldtype, newtype));
}
int fm_Type_create_hindexed_c(Count count, const Count* blocklengths, const Count* displacements,
                              Datatype oldtype, Datatype* newtype) {
    Call call("MPI_Type_create_hindexed_c");
    return call.finish(create_hindexed(count, blocklengths, displacements, oldtype, newtype));
}

int fm_Type_create_indexed_block(int count, int blocklength, const int* displacements, Datatype oldtype,
                                 Datatype* newtype) {
    Call call("MPI_Type_create_indexed_block");
    return call.finish(create_indexed_block(count, blocklength, displacements, oldtype, newtype));
}
int fm_Type_create_indexed_block_c(Count count, Count blocklength, const Count* displacements,
                                   Datatype oldtype, Datatype* newtype) {
    Call call("MPI_Type_create_indexed_block_c");
    return call.finish(create_indexed_block(count, blocklength, displacements, oldtype, newtype));
}

int fm_Type_create_hindexed_block(Count count, Count blocklength, const Count* displacements,
                                  Datatype oldtype, Datatype* newtype) {
    Call call("MPI_Type_create_hindexed_block");
    if (count < 0) return call.finish(FM_ERR_COUNT);
    TypeObject* type = describe(FM_COMBINER_HINDEXED_BLOCK, joined(one(count), one(blocklength)),
                                many(count, displacements));
    type->large = !fits(type->ints);
    return call.finish(create_from(type, oldtype, newtype));
}

int fm_Type_create_struct(int count, const int* blocklengths, const Aint* displacements,
                          const Datatype* types_, Datatype* newtype) {
    Call call("MPI_Type_create_struct");
    return call.finish(create_struct(count, blocklengths, displacements, types_, newtype));
}
int fm_Type_create_struct_c(Count count, const Count* blocklengths, const Count* displacements,
                            const Datatype* types_, Datatype* newtype) {
    Call call("MPI_Type_create_struct_c");
    return call.finish(create_struct(count, blocklengths, displacements, types_, newtype));
}

int fm_Type_create_subarray(int ndims, const int* sizes, const int* subsizes, const int* starts, int order,
                            Datatype oldtype, Datatype* newtype) {
    Call call("MPI_Type_create_subarray");
    return call.finish(create_subarray(ndims, sizes, subsizes, starts, order, oldtype, newtype));
}
int fm_Type_create_subarray_c(int ndims, const Count* sizes, const Count* subsizes, const Count* starts,
                              int order, Datatype oldtype, Datatype* newtype) {
    Call call("MPI_Type_create_subarray_c");
    return call.finish(create_subarray(ndims, sizes, subsizes, starts, order, oldtype, newtype));
}

int fm_Type_create_darray(int size, int rank, int ndims, const int* gsizes, const int* distribs,
                          const int* dargs, const int* psizes, int order, Datatype oldtype,
                          Datatype* newtype) {
    Call call("MPI_Type_create_darray");
    return call.finish(
        create_darray(size, rank, ndims, gsizes, distribs, dargs, psizes, order, oldtype, newtype));
}
int fm_Type_create_darray_c(int size, int rank, int ndims, const Count* gsizes, const int* distribs,
                            const int* dargs, const int* psizes, int order, Datatype oldtype,
                            Datatype* newtype) {
    Call call("MPI_Type_create_darray_c");
    return call.finish(
        create_darray(size, rank, ndims, gsizes, distribs, dargs, psizes, order, oldtype, newtype));
}

int fm_Type_create_resized(Datatype oldtype, Count lb, Count extent, Datatype* newtype) {
    Call call("MPI_Type_create_resized");
    return call.finish(
        create_from(describe(FM_COMBINER_RESIZED, {}, joined(one(lb), one(extent))), oldtype, newtype));
}

int fm_Type_dup(Datatype oldtype, Datatype* newtype) {
    Call call("MPI_Type_dup");
    TypeObject* old = find(oldtype);
    if (old == nullptr) return call.finish(FM_ERR_TYPE);
    TypeObject* type = describe(FM_COMBINER_DUP, {}, {});
    type->committed = old->committed;
    if (int rc = create_from(type, oldtype, newtype)) return call.finish(rc);
    int rc = attributes_copy({Owner::type, old->handle}, old->attributes, &type->attributes);
    if (rc != FM_SUCCESS) {
        type_unref(type);
        *newtype = FM_DATATYPE_NULL;
    }
    return call.finish(rc);
}

int fm_Type_create_f90_real(int p, int r, Datatype* newtype) {
    Call call("MPI_Type_create_f90_real");
    return call.finish(create_f90(FM_COMBINER_F90_REAL, joined(one(p), one(r)), newtype));
}
int fm_Type_create_f90_complex(int p, int r, Datatype* newtype) {
    Call call("MPI_Type_create_f90_complex");
    return call.finish(create_f90(FM_COMBINER_F90_COMPLEX, joined(one(p), one(r)), newtype));
}
int fm_Type_create_f90_integer(int r, Datatype* newtype) {
    Call call("MPI_Type_create_f90_integer");
    return call.finish(create_f90(FM_COMBINER_F90_INTEGER, one(r), newtype));
}

int fm_Type_commit(Datatype* datatype) {
    Call call("MPI_Type_commit");
    TypeObject* type = find(*datatype);
    if (type == nullptr) return call.finish(FM_ERR_TYPE);
    if (type->committed) return FM_SUCCESS;
    RealDatatype real{type->real};
    int rc = LOWER(Type_commit)(&real);
    if (rc == FM_SUCCESS) type->committed = true;
    return call.finish(rc);
}

int fm_Type_free(Datatype* datatype) {
    Call call("MPI_Type_free");
    TypeObject* type = find(*datatype);
    if (type == nullptr || type->predefined || type->permanent || type->owned == 0)
        return call.finish(FM_ERR_TYPE);
    if (type->owned == 1)
        if (int rc = attributes_delete_all({Owner::type, type->handle}, &type->attributes))
            return call.finish(rc);
    type->owned--;
    type_unref(type);
    *datatype = FM_DATATYPE_NULL;
    return FM_SUCCESS;
}

}  // extern "C"
}  // namespace fermata::front
