// Questions about datatypes and statuses, answered without the library.
#include "front/objects/api.h"
#include "front/objects/internal.h"

namespace fermata::front {
namespace {

void copy_name(const Text& name, char* to, int* length) {
    __builtin_memcpy(to, name.c_str(), name.size() + 1);
    *length = static_cast<int>(name.size());
}

// One list of the description in the widths the caller wants.
template <typename T>
void copy_out(const Vec<int64_t>& values, size_t from, size_t n, T* to) {
    for (size_t i = 0; i < n; i++) to[i] = static_cast<T>(values[from + i]);
}

// The application gets a reference of its own to each child that is not predefined, to be freed by it.
void hand_out_children(const TypeObject& type, Datatype* to) {
    for (size_t i = 0; i < type.types.size(); i++) {
        TypeObject* child = type.types[i];
        if (!child->predefined && !child->permanent) {
            ref(child);
            child->owned++;
        }
        to[i] = Datatype{child->handle};
    }
}

}  // namespace

extern "C" {

bool fm_type_is_there(Datatype datatype) {
    TypeObject* type = find(datatype);
    return type != nullptr && type->real != 0;
}

int fm_Type_size(Datatype datatype, Count* size) {
    Call call("MPI_Type_size");
    TypeObject* type = find(datatype);
    if (type == nullptr) return call.finish(FM_ERR_TYPE);
    *size = type->size;
    return FM_SUCCESS;
}

int fm_Type_get_extent(Datatype datatype, Count* lb, Count* extent) {
    Call call("MPI_Type_get_extent");
    TypeObject* type = find(datatype);
    if (type == nullptr) return call.finish(FM_ERR_TYPE);
    *lb = type->lb;
    *extent = type->extent;
    return FM_SUCCESS;
}

int fm_Type_get_true_extent(Datatype datatype, Count* true_lb, Count* true_extent) {
    Call call("MPI_Type_get_true_extent");
    TypeObject* type = find(datatype);
    if (type == nullptr) return call.finish(FM_ERR_TYPE);
    *true_lb = type->true_lb;
    *true_extent = type->true_extent;
    return FM_SUCCESS;
}

int fm_Type_extent(Datatype datatype, Aint* extent) {
    Call call("MPI_Type_extent");
    TypeObject* type = find(datatype);
    if (type == nullptr) return call.finish(FM_ERR_TYPE);
    *extent = type->extent;
    return FM_SUCCESS;
}

int fm_Type_lb(Datatype datatype, Aint* displacement) {
    Call call("MPI_Type_lb");
    TypeObject* type = find(datatype);
    if (type == nullptr) return call.finish(FM_ERR_TYPE);
    *displacement = type->lb;
    return FM_SUCCESS;
}

int fm_Type_ub(Datatype datatype, Aint* displacement) {
    Call call("MPI_Type_ub");
    TypeObject* type = find(datatype);
    if (type == nullptr) return call.finish(FM_ERR_TYPE);
    *displacement = type->lb + type->extent;
    return FM_SUCCESS;
}

int fm_Type_get_envelope(Datatype datatype, int* num_integers, int* num_addresses, int* num_datatypes,
                         int* combiner) {
    Call call("MPI_Type_get_envelope");
    TypeObject* type = find(datatype);
    // A type with values that need the large form has no small description (MPI-4.0 5.1.13).
    if (type == nullptr || type->large) return call.finish(FM_ERR_TYPE);
    Envelope envelope = type_envelope(*type);
    *num_integers = static_cast<int>(envelope.integers);
    *num_addresses = static_cast<int>(envelope.addresses);
    *num_datatypes = static_cast<int>(envelope.types);
    *combiner = type->combiner;
    return FM_SUCCESS;
}

int fm_Type_get_envelope_c(Datatype datatype, Count* num_integers, Count* num_addresses,
                           Count* num_large_counts, Count* num_datatypes, int* combiner) {
    Call call("MPI_Type_get_envelope_c");
    TypeObject* type = find(datatype);
    if (type == nullptr) return call.finish(FM_ERR_TYPE);
    Envelope envelope = type_envelope(*type);
    *num_integers = envelope.integers;
    *num_addresses = envelope.addresses;
    *num_large_counts = envelope.counts;
    *num_datatypes = envelope.types;
    *combiner = type->combiner;
    return FM_SUCCESS;
}

int fm_Type_get_contents(Datatype datatype, int max_integers, int max_addresses, int max_datatypes,
                         int* integers, Aint* addresses, Datatype* datatypes) {
    Call call("MPI_Type_get_contents");
    TypeObject* type = find(datatype);
    if (type == nullptr || type->large || type->combiner == FM_COMBINER_NAMED)
        return call.finish(FM_ERR_TYPE);
    Envelope envelope = type_envelope(*type);
    if (max_integers < envelope.integers || max_addresses < envelope.addresses ||
        max_datatypes < envelope.types)
        return call.finish(FM_ERR_ARG);
    copy_out(type->ints, 0, type->ints.size(), integers);
    copy_out(type->aints, 0, type->aints.size(), addresses);
    hand_out_children(*type, datatypes);
    return FM_SUCCESS;
}

int fm_Type_get_contents_c(Datatype datatype, Count max_integers, Count max_addresses, Count max_large_counts,
                           Count max_datatypes, int* integers, Aint* addresses, Count* large_counts,
                           Datatype* datatypes) {
    Call call("MPI_Type_get_contents_c");
    TypeObject* type = find(datatype);
    if (type == nullptr || type->combiner == FM_COMBINER_NAMED) return call.finish(FM_ERR_TYPE);
    Envelope envelope = type_envelope(*type);
    if (max_integers < envelope.integers || max_addresses < envelope.addresses ||
        max_large_counts < envelope.counts || max_datatypes < envelope.types)
        return call.finish(FM_ERR_ARG);
    if (!type->large) {
        copy_out(type->ints, 0, type->ints.size(), integers);
        copy_out(type->aints, 0, type->aints.size(), addresses);
    } else if (type->combiner == FM_COMBINER_SUBARRAY) {
        auto n = static_cast<size_t>(type->ints[0]);
        integers[0] = static_cast<int>(type->ints[0]);
        integers[1] = static_cast<int>(type->ints[1 + 3 * n]);
        copy_out(type->ints, 1, 3 * n, large_counts);
    } else if (type->combiner == FM_COMBINER_DARRAY) {
        auto n = static_cast<size_t>(type->ints[2]);
        copy_out(type->ints, 0, 3, integers);
        copy_out(type->ints, 3, n, large_counts);
        copy_out(type->ints, 3 + n, 3 * n + 1, integers + 3);
    } else {
        copy_out(type->ints, 0, type->ints.size(), large_counts);
        copy_out(type->aints, 0, type->aints.size(), large_counts + type->ints.size());
    }
    hand_out_children(*type, datatypes);
    return FM_SUCCESS;
}

int fm_Type_get_name(Datatype datatype, char* type_name, int* resultlen) {
    Call call("MPI_Type_get_name");
    TypeObject* type = find(datatype);
    if (type == nullptr) {
        // MPI-4.0 7.8 gives the null datatype a name.
        if (datatype != FM_DATATYPE_NULL) return call.finish(FM_ERR_TYPE);
        copy_name("MPI_DATATYPE_NULL", type_name, resultlen);
        return FM_SUCCESS;
    }
    copy_name(type->name, type_name, resultlen);
    return FM_SUCCESS;
}

int fm_Type_set_name(Datatype datatype, const char* type_name) {
    Call call("MPI_Type_set_name");
    TypeObject* type = find(datatype);
    if (type == nullptr) return call.finish(FM_ERR_TYPE);
    size_t length = __builtin_strlen(type_name);
    // Longer names are cut (MPI-4.0 7.8: "limited to MPI_MAX_OBJECT_NAME-1").
    type->name.assign(type_name, length < FM_MAX_OBJECT_NAME ? length : FM_MAX_OBJECT_NAME - 1);
    return FM_SUCCESS;
}

int fm_Type_match_size(int typeclass, int size, Datatype* datatype) {
    Call call("MPI_Type_match_size");
    Datatype candidate = FM_DATATYPE_NULL;
    switch (typeclass) {
        case FM_TYPECLASS_REAL:
            candidate = size == 2    ? FM_REAL2
                        : size == 4  ? FM_REAL4
                        : size == 8  ? FM_REAL8
                        : size == 16 ? FM_REAL16
                                     : FM_DATATYPE_NULL;
            break;
        case FM_TYPECLASS_INTEGER:
            candidate = size == 1    ? FM_INTEGER1
                        : size == 2  ? FM_INTEGER2
                        : size == 4  ? FM_INTEGER4
                        : size == 8  ? FM_INTEGER8
                        : size == 16 ? FM_INTEGER16
                                     : FM_DATATYPE_NULL;
            break;
        case FM_TYPECLASS_COMPLEX:
            candidate = size == 4    ? FM_COMPLEX4
                        : size == 8  ? FM_COMPLEX8
                        : size == 16 ? FM_COMPLEX16
                        : size == 32 ? FM_COMPLEX32
                                     : FM_DATATYPE_NULL;
            break;
        default:
            break;
    }
    TypeObject* type = find(candidate);
    // The library may lack the optional ones.
    if (type == nullptr || type->real == 0) return call.finish(FM_ERR_ARG);
    *datatype = candidate;
    return FM_SUCCESS;
}

int fm_Type_get_value_index(Datatype value_type, Datatype index_type, Datatype* pair_type) {
    Call call("MPI_Type_get_value_index");
    struct Pair {
        Datatype value, index, pair;
    };
    static constexpr Pair kPairs[] = {
        {FM_FLOAT, FM_INT, FM_FLOAT_INT},
        {FM_DOUBLE, FM_INT, FM_DOUBLE_INT},
        {FM_LONG, FM_INT, FM_LONG_INT},
        {FM_INT, FM_INT, FM_2INT},
        {FM_SHORT, FM_INT, FM_SHORT_INT},
        {FM_LONG_DOUBLE, FM_INT, FM_LONG_DOUBLE_INT},
        {FM_REAL, FM_REAL, FM_2REAL},
        {FM_DOUBLE_PRECISION, FM_DOUBLE_PRECISION, FM_2DOUBLE_PRECISION},
        {FM_INTEGER, FM_INTEGER, FM_2INTEGER},
    };
    if (find(value_type) == nullptr || find(index_type) == nullptr) return call.finish(FM_ERR_TYPE);
    *pair_type = FM_DATATYPE_NULL;
    for (const Pair& pair : kPairs)
        if (pair.value == value_type && pair.index == index_type) *pair_type = pair.pair;
    return FM_SUCCESS;
}

int fm_Get_count(const Status* status, Datatype datatype, Count* count) {
    Call call("MPI_Get_count");
    TypeObject* type = find(datatype);
    if (type == nullptr) return call.finish(FM_ERR_TYPE);
    if (type->size == 0)
        *count = status->count == 0 ? 0 : FM_UNDEFINED;
    else
        *count = status->count % type->size == 0 ? status->count / type->size : FM_UNDEFINED;
    return FM_SUCCESS;
}

int fm_Get_elements(const Status* status, Datatype datatype, Count* count) {
    Call call("MPI_Get_elements");
    TypeObject* type = find(datatype);
    if (type == nullptr) return call.finish(FM_ERR_TYPE);
    int64_t elements = type_elements_in(*type, status->count);
    *count = elements < 0 ? FM_UNDEFINED : elements;
    return FM_SUCCESS;
}

int fm_Status_set_elements(Status* status, Datatype datatype, Count count) {
    Call call("MPI_Status_set_elements");
    TypeObject* type = find(datatype);
    if (type == nullptr) return call.finish(FM_ERR_TYPE);
    if (count < 0) return call.finish(FM_ERR_COUNT);
    status->count = type_bytes_of(*type, count);
    return FM_SUCCESS;
}

int fm_Status_set_cancelled(Status* status, int flag) {
    status->cancelled = flag != 0;
    return FM_SUCCESS;
}
int fm_Test_cancelled(const Status* status, int* flag) {
    *flag = status->cancelled != 0;
    return FM_SUCCESS;
}
int fm_Status_get_error(const Status* status, int* err) {
    *err = status->error;
    return FM_SUCCESS;
}
int fm_Status_get_source(const Status* status, int* source) {
    *source = status->source;
    return FM_SUCCESS;
}
int fm_Status_get_tag(const Status* status, int* tag) {
    *tag = status->tag;
    return FM_SUCCESS;
}
int fm_Status_set_error(Status* status, int err) {
    status->error = err;
    return FM_SUCCESS;
}
int fm_Status_set_source(Status* status, int source) {
    status->source = source;
    return FM_SUCCESS;
}
int fm_Status_set_tag(Status* status, int tag) {
    status->tag = tag;
    return FM_SUCCESS;
}

}  // extern "C"
}  // namespace fermata::front
