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

void link_type(TypeObject* type) {
    SpinGuard guard(types.lock);
    type->previous = types.newest;
    (types.newest != nullptr ? types.newest->next : types.oldest) = type;
    types.newest = type;
}

void read_layout(TypeObject* type) {
    RealDatatype real{type->real};
    LOWER(Type_size)(real, &type->size);
    LOWER(Type_get_extent)(real, &type->lb, &type->extent);
    LOWER(Type_get_true_extent)(real, &type->true_lb, &type->true_extent);
}

}  // namespace

TypeObject* first_type() noexcept { return types.oldest; }

TypeObject* type_like(int combiner, const Vec<int64_t>& ints) noexcept {
    SpinGuard guard(types.lock);
    for (TypeObject* type = types.oldest; type != nullptr; type = type->next)
        if (type->combiner == combiner && type->ints == ints) return type;
    return nullptr;
}

void type_destroy(TypeObject* type) noexcept {
    for (TypeObject* child : type->types) type_unref(child);
    fm_delete(type);
}

int type_create(TypeObject* type) noexcept {
    if (int rc = type_make_real(type)) {
        type_destroy(type);
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
    return FM_SUCCESS;
}

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
    type_destroy(type);
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

}  // namespace fermata::front
