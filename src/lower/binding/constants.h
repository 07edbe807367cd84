// Standard-ABI values <-> the library's, by class; tables in the generated constants.cpp. No hot path uses
// these tables: linear search over a handful of pairs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fermata::lower {

struct Pair {
    int std;
    int lib;
};
struct Pairs {
    const Pair* begin;
    size_t size;
};
struct Predefined {
    uint32_t std;
    uint64_t word;
};

extern const Pairs errclass_values, thread_level_values, order_values, distrib_values, combiner_values,
    typeclass_values, compare_result_values, topo_type_values, split_type_values, lock_type_values,
    whence_values, keyval_values, winval_values, amode_bits, assert_bits, t_verbosity_values, t_bind_values,
    t_scope_values, t_class_values;
extern const Predefined predefined_handles[];
extern const size_t predefined_count;

// A value that no library knows: it answers with its own error.
inline constexpr int kUnknownValue = -31999;

inline int to_lib(const Pairs& pairs, int value, int otherwise = kUnknownValue) {
    for (size_t i = 0; i < pairs.size; ++i)
        if (pairs.begin[i].std == value) return pairs.begin[i].lib;
    return otherwise;
}
// The library's number of a split type: it goes by the library's version, not by the mpi.h at hand.
int lib_split_type(int value);

inline int to_std(const Pairs& pairs, int value, int otherwise) {
    for (size_t i = 0; i < pairs.size; ++i)
        if (pairs.begin[i].lib == value) return pairs.begin[i].std;
    return otherwise;
}
inline int to_lib_bits(const Pairs& pairs, int value) {
    int result = 0;
    if (value != 0)
        for (size_t i = 0; i < pairs.size; ++i)
            if ((value & pairs.begin[i].std) != 0) result |= pairs.begin[i].lib;
    return result;
}
inline int to_std_bits(const Pairs& pairs, int value) {
    int result = 0;
    for (size_t i = 0; i < pairs.size; ++i)
        if ((value & pairs.begin[i].lib) != 0) result |= pairs.begin[i].std;
    return result;
}

}  // namespace fermata::lower
