// Sizes and basic elements of datatypes, from their descriptions alone: no real library, no context.
#include "front/objects/datatype.h"

namespace fermata::front {
using namespace mpi;
namespace {

// Blocks of a struct in the order of its type map: blocklengths follow the count in `ints`.
int64_t block_length(const TypeObject& type, size_t block) { return type.ints[1 + block]; }

// A type made of one child repeated: how many.
int64_t repeats(const TypeObject& type) {
    auto sum = [&type](size_t from, size_t n) {
        int64_t total = 0;
        for (size_t i = 0; i < n; i++) total += type.ints[from + i];
        return total;
    };
    switch (type.combiner) {
        case FM_COMBINER_DUP:
        case FM_COMBINER_RESIZED:
            return 1;
        case FM_COMBINER_CONTIGUOUS:
            return type.ints[0];
        case FM_COMBINER_VECTOR:
        case FM_COMBINER_HVECTOR:
        case FM_COMBINER_INDEXED_BLOCK:
        case FM_COMBINER_HINDEXED_BLOCK:
            return type.ints[0] * type.ints[1];
        case FM_COMBINER_INDEXED:
        case FM_COMBINER_HINDEXED:
            return sum(1, static_cast<size_t>(type.ints[0]));
        case FM_COMBINER_SUBARRAY: {
            auto ndims = static_cast<size_t>(type.ints[0]);
            int64_t product = 1;
            for (size_t i = 0; i < ndims; i++) product *= type.ints[1 + ndims + i];
            return product;
        }
        default:
            return -1;  // darray: the library counts (the distribution decides)
    }
}

// Elements of a partial copy: `bytes` < size.
int64_t partial_elements(const TypeObject& type, int64_t bytes) {
    if (bytes == 0) return 0;
    if (type.types.empty()) {
        // A basic element is there or not; pairs may be there by half.
        return type.first != 0 && bytes == type.first ? 1 : -1;
    }
    if (type.combiner != FM_COMBINER_STRUCT) return type_elements_in(*type.types[0], bytes);
    int64_t elements = 0;
    for (size_t i = 0; i < type.types.size(); i++) {
        const TypeObject& child = *type.types[i];
        int64_t block = block_length(type, i) * child.size;
        if (bytes < block) {
            int64_t rest = type_elements_in(child, bytes);
            return rest < 0 ? -1 : elements + rest;
        }
        elements += block_length(type, i) * child.elements;
        bytes -= block;
        if (bytes == 0) return elements;
    }
    return elements;
}

int64_t partial_bytes(const TypeObject& type, int64_t elements) {
    if (elements == 0) return 0;
    if (type.types.empty()) return type.first;
    if (type.combiner != FM_COMBINER_STRUCT) return type_bytes_of(*type.types[0], elements);
    int64_t bytes = 0;
    for (size_t i = 0; i < type.types.size(); i++) {
        const TypeObject& child = *type.types[i];
        int64_t block = block_length(type, i) * child.elements;
        if (elements < block) return bytes + type_bytes_of(child, elements);
        bytes += block_length(type, i) * child.size;
        elements -= block;
        if (elements == 0) return bytes;
    }
    return bytes;
}

}  // namespace

int64_t type_elements_in(const TypeObject& type, int64_t bytes) noexcept {
    if (type.size == 0) return bytes == 0 ? 0 : -1;
    int64_t rest = partial_elements(type, bytes % type.size);
    return rest < 0 ? -1 : bytes / type.size * type.elements + rest;
}

int64_t type_bytes_of(const TypeObject& type, int64_t elements) noexcept {
    if (type.elements == 0) return 0;
    return elements / type.elements * type.size + partial_bytes(type, elements % type.elements);
}

void type_count(TypeObject* type) noexcept {
    if (type->types.empty()) return;
    if (type->combiner == FM_COMBINER_STRUCT) {
        type->size = type->elements = 0;
        for (size_t i = 0; i < type->types.size(); i++) {
            type->size += block_length(*type, i) * type->types[i]->size;
            type->elements += block_length(*type, i) * type->types[i]->elements;
        }
        return;
    }
    const TypeObject& child = *type->types[0];
    int64_t n = repeats(*type);
    if (n < 0) n = child.size == 0 ? 0 : type->size / child.size;
    type->size = n * child.size;
    type->elements = n * child.elements;
}

// MPI-4.0 5.1.13, MPI-4.1 for large counts: there everything is a count except what is no count by nature.
Envelope type_envelope(const TypeObject& type) noexcept {
    auto n = [](const auto& list) { return static_cast<int64_t>(list.size()); };
    if (type.combiner == FM_COMBINER_NAMED) return {0, 0, 0, 0};
    if (!type.large) return {n(type.ints), n(type.aints), 0, n(type.types)};
    int64_t counts = n(type.ints) + n(type.aints), integers = 0;
    if (type.combiner == FM_COMBINER_SUBARRAY) integers = 2;
    if (type.combiner == FM_COMBINER_DARRAY) integers = 4 + 3 * type.ints[2];
    return {integers, 0, counts - integers, n(type.types)};
}

}  // namespace fermata::front
