// Datatypes: constructors, their real counterparts, and their life.
#include "front/objects/datatype.h"

#include "front/objects/api.h"
#include "front/objects/internal.h"

namespace fermata::front {
namespace {

struct Types {
    SpinLock lock;
    TypeObject* oldest;
    TypeObject* newest;
    // Real handle -> virtual type, chained; grows with the live types.
    TypeObject** buckets;
    size_t bucket_count;
    size_t noted;
};
constinit Types types{};

size_t bucket_of(uint64_t real, size_t count) { return (real * 0x9e3779b97f4a7c15u >> 20) & (count - 1); }

// Under the lock.
void grow_buckets() {
    size_t count = types.bucket_count == 0 ? 512 : types.bucket_count * 2;
    auto** buckets = static_cast<TypeObject**>(fm_calloc(count * sizeof(TypeObject*)));
    for (size_t i = 0; i < types.bucket_count; i++)
        for (TypeObject* type = types.buckets[i]; type != nullptr;) {
            TypeObject* following = type->next_real;
            TypeObject** bucket = &buckets[bucket_of(type->real, count)];
            type->next_real = *bucket;
            *bucket = type;
            type = following;
        }
    fm_free(types.buckets);
    types.buckets = buckets;
    types.bucket_count = count;
}

void link_type(TypeObject* type) {
    SpinGuard guard(types.lock);
    type->previous = types.newest;
    (types.newest != nullptr ? types.newest->next : types.oldest) = type;
    types.newest = type;
}

void unlink_type(TypeObject* type) {
    SpinGuard guard(types.lock);
    (type->previous != nullptr ? type->previous->next : types.oldest) = type->next;
    (type->next != nullptr ? type->next->previous : types.newest) = type->previous;
}

// A real handle in an array argument of the small constructors.
struct Narrow {
    explicit Narrow(const Vec<int64_t>& wide, size_t from, size_t n) {
        values.reserve(n);
        for (size_t i = 0; i < n; i++) values.push_back(static_cast<int>(wide[from + i]));
    }
    const int* data() const { return values.data(); }
    Vec<int> values;
};

bool fits(const Vec<int64_t>& values) {
    for (int64_t value : values)
        if (value != static_cast<int>(value)) return false;
    return true;
}

// The constructor call that a description stands for, on the lower half that is there now.
int construct(const TypeObject& t, RealDatatype* made) {
    auto child = [&t](size_t i) { return static_cast<RealDatatype>(t.types[i]->real); };
    auto n = t.ints.empty() ? size_t{0} : static_cast<size_t>(t.ints[0]);
    const int64_t* ints = t.ints.data();
    auto count = static_cast<int>(n);
    switch (t.combiner) {
        case FM_COMBINER_DUP:
            return LOWER(Type_dup)(child(0), made);
        case FM_COMBINER_CONTIGUOUS:
            return LOWER(Type_contiguous)(ints[0], child(0), made);
        case FM_COMBINER_VECTOR:
            return LOWER(Type_vector)(ints[0], ints[1], ints[2], child(0), made);
        case FM_COMBINER_HVECTOR:
            return LOWER(Type_create_hvector)(ints[0], ints[1], t.aints[0], child(0), made);
        case FM_COMBINER_RESIZED:
            return LOWER(Type_create_resized)(child(0), t.aints[0], t.aints[1], made);
        case FM_COMBINER_INDEXED:
            if (t.large) return LOWER(Type_indexed_c)(ints[0], ints + 1, ints + 1 + n, child(0), made);
            return LOWER(Type_indexed)(count, Narrow(t.ints, 1, n).data(), Narrow(t.ints, 1 + n, n).data(),
                                       child(0), made);
        case FM_COMBINER_HINDEXED:
            if (t.large)
                return LOWER(Type_create_hindexed_c)(ints[0], ints + 1, t.aints.data(), child(0), made);
            return LOWER(Type_create_hindexed)(count, Narrow(t.ints, 1, n).data(), t.aints.data(), child(0),
                                               made);
        case FM_COMBINER_INDEXED_BLOCK:
            if (t.large)
                return LOWER(Type_create_indexed_block_c)(ints[0], ints[1], ints + 2, child(0), made);
            return LOWER(Type_create_indexed_block)(count, static_cast<int>(ints[1]),
                                                    Narrow(t.ints, 2, n).data(), child(0), made);
        case FM_COMBINER_HINDEXED_BLOCK:
            return LOWER(Type_create_hindexed_block)(ints[0], ints[1], t.aints.data(), child(0), made);
        case FM_COMBINER_STRUCT: {
            Vec<RealDatatype> children;
            for (size_t i = 0; i < n; i++) children.push_back(child(i));
            if (t.large)
                return LOWER(Type_create_struct_c)(ints[0], ints + 1, t.aints.data(), children.data(), made);
            return LOWER(Type_create_struct)(count, Narrow(t.ints, 1, n).data(), t.aints.data(),
                                             children.data(), made);
        }
        case FM_COMBINER_SUBARRAY: {
            auto order = static_cast<int>(ints[1 + 3 * n]);
            if (t.large)
                return LOWER(Type_create_subarray_c)(count, ints + 1, ints + 1 + n, ints + 1 + 2 * n, order,
                                                     child(0), made);
            Narrow all(t.ints, 1, 3 * n);
            return LOWER(Type_create_subarray)(count, all.data(), all.data() + n, all.data() + 2 * n, order,
                                               child(0), made);
        }
        case FM_COMBINER_DARRAY: {
            auto size = static_cast<int>(ints[0]), rank = static_cast<int>(ints[1]),
                 dims = static_cast<int>(ints[2]);
            auto d = static_cast<size_t>(dims);
            auto order = static_cast<int>(ints[3 + 4 * d]);
            Narrow rest(t.ints, 3 + d, 3 * d);
            if (t.large)
                return LOWER(Type_create_darray_c)(size, rank, dims, ints + 3, rest.data(), rest.data() + d,
                                                   rest.data() + 2 * d, order, child(0), made);
            Narrow sizes(t.ints, 3, d);
            return LOWER(Type_create_darray)(size, rank, dims, sizes.data(), rest.data(), rest.data() + d,
                                             rest.data() + 2 * d, order, child(0), made);
        }
        case FM_COMBINER_F90_REAL:
            return LOWER(Type_create_f90_real)(static_cast<int>(ints[0]), static_cast<int>(ints[1]), made);
        case FM_COMBINER_F90_COMPLEX:
            return LOWER(Type_create_f90_complex)(static_cast<int>(ints[0]), static_cast<int>(ints[1]), made);
        case FM_COMBINER_F90_INTEGER:
            return LOWER(Type_create_f90_integer)(static_cast<int>(ints[0]), made);
        default:
            return FM_ERR_INTERN;
    }
}

void read_layout(TypeObject* type) {
    RealDatatype real{type->real};
    LOWER(Type_size)(real, &type->size);
    LOWER(Type_get_extent)(real, &type->lb, &type->extent);
    LOWER(Type_get_true_extent)(real, &type->true_lb, &type->true_extent);
}

void destroy(TypeObject* type) {
    for (TypeObject* child : type->types) type_unref(child);
    fm_delete(type);
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

// Makes the real type, learns its layout, gives it a handle. Destroys the description on failure.
int create(TypeObject* type, Datatype* newtype) {
    if (int rc = type_make_real(type)) {
        destroy(type);
        return rc;
    }
    read_layout(type);
    if (type->types.empty()) {
        type->elements = type->size != 0 ? 1 : 0;  // f90
    } else {
        int64_t size = type->size;
        type_count(type);
        type->size = size;
    }
    give_handle(type);
    link_type(type);
    type_note_real(type);
    *newtype = Datatype{type->handle};
    return FM_SUCCESS;
}

int create_from(TypeObject* type, Datatype oldtype, Datatype* newtype) {
    if (!add_child(type, oldtype)) {
        destroy(type);
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
            destroy(type);
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
    {
        SpinGuard guard(types.lock);
        for (TypeObject* type = types.oldest; type != nullptr; type = type->next)
            if (type->combiner == combiner && type->ints == ints) {
                *newtype = Datatype{type->handle};
                return FM_SUCCESS;
            }
    }
    TypeObject* type = describe(combiner, static_cast<Vec<int64_t>&&>(ints), {});
    type->permanent = true;
    type->committed = true;
    return create(type, newtype);
}

}  // namespace

TypeObject* first_type() noexcept { return types.oldest; }

void type_note_real(TypeObject* type) noexcept {
    if (type->real == 0) return;
    SpinGuard guard(types.lock);
    if (types.noted >= types.bucket_count) grow_buckets();
    TypeObject** bucket = &types.buckets[bucket_of(type->real, types.bucket_count)];
    type->next_real = *bucket;
    *bucket = type;
    types.noted++;
}

void type_forget_real(TypeObject* type) noexcept {
    if (type->real == 0) return;
    SpinGuard guard(types.lock);
    for (TypeObject** at = &types.buckets[bucket_of(type->real, types.bucket_count)]; *at != nullptr;
         at = &(*at)->next_real)
        if (*at == type) {
            *at = type->next_real;
            types.noted--;
            return;
        }
}

void types_forget_all_real() noexcept {
    SpinGuard guard(types.lock);
    for (size_t i = 0; i < types.bucket_count; i++) types.buckets[i] = nullptr;
    types.noted = 0;
}

TypeObject* find_type_of_real(uint64_t real) noexcept {
    SpinGuard guard(types.lock);
    if (types.bucket_count == 0) return nullptr;
    for (TypeObject* type = types.buckets[bucket_of(real, types.bucket_count)]; type != nullptr;
         type = type->next_real)
        if (type->real == real) return type;
    return nullptr;
}

void type_unref(TypeObject* type) noexcept {
    if (type->predefined || type->permanent || !drop(type)) return;
    unlink_type(type);
    type_forget_real(type);
    take_handle(type);
    RealDatatype real{type->real};
    if (type->real != 0) LOWER(Type_free)(&real);
    destroy(type);
}

int type_make_real(TypeObject* type) noexcept {
    RealDatatype made{};
    if (int rc = construct(*type, &made)) return rc;
    type->real = static_cast<uint64_t>(made);
    bool again = type->extent != 0 || type->lb != 0;
    if (again) {
        // At restart: another library may pad a struct differently. The application has seen the first one's
        // extent and laid out its arrays by it.
        int64_t lb = 0, extent = 0;
        LOWER(Type_get_extent)(made, &lb, &extent);
        if (lb != type->lb || extent != type->extent) {
            RealDatatype resized{};
            if (int rc = LOWER(Type_create_resized)(made, type->lb, type->extent, &resized)) return rc;
            LOWER(Type_free)(&made);
            type->real = static_cast<uint64_t>(resized);
        }
    }
    if (type->committed && !type->permanent) {
        RealDatatype real{type->real};
        if (int rc = LOWER(Type_commit)(&real)) return rc;
        type->real = static_cast<uint64_t>(real);
    }
    return FM_SUCCESS;
}

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
