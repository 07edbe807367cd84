// Second looks at results, written by hand, the same for every ABI. Included after the header of an ABI.
#pragma once

namespace fermata::abi {

// Values of predefined attributes that are constants of the ABI. `value` is the application's void**.
void after_get_attr(int keyval, void* value, const int* flag);

// Order and distribution constants among the integers of a datatype's constructor.
inline void after_get_contents(Datatype type, int64_t limit, int* v) {
    int integers = 0, addresses = 0, types = 0, combiner = 0;
    if (v == nullptr || limit <= 0) return;
    if (fm_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != FM_SUCCESS) return;
    if (integers > limit || integers < 4) return;
    if (combiner == FM_COMBINER_SUBARRAY || combiner == FM_COMBINER_DARRAY)
        v[integers - 1] = out_order(v[integers - 1]);
    if (combiner != FM_COMBINER_DARRAY) return;
    // size, rank, ndims, gsizes[ndims], distribs[ndims], dargs[ndims], psizes[ndims], order (MPI-4.0 5.1.13)
    const int n = v[2];
    if (n < 0 || 4 + 4 * static_cast<int64_t>(n) > limit) return;
    for (int i = 0; i < n; i++) {
        v[3 + n + i] = out_distrib(v[3 + n + i]);
        v[3 + 2 * n + i] = out_darg(v[3 + 2 * n + i]);
    }
}

inline int64_t sum(int n, const int* terms) {
    int64_t total = 0;
    for (int i = 0; i < n && terms != nullptr; i++) total += terms[i];
    return total;
}

}  // namespace fermata::abi

// NULL where a result belongs: as null_checks() of the generator.
#define NEEDS(place, name) \
    if ((place) == nullptr) return out_errclass(fm_raise(Kind::none, 0, FM_ERR_ARG, name))

#define ALIAS(ret, name, ...) \
    FRONT_API ret MPI_##name(__VA_ARGS__) __attribute__((weak, alias("PMPI_" #name)))
