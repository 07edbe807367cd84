// Second looks at results, written by hand, the same for every ABI. Included after the header of an ABI.
#pragma once

namespace fermata::abi {

// Values of predefined attributes that are constants of the ABI. `value` is the application's void**.
void after_get_attr(int keyval, void* value, const int* flag);

// Order and distribution constants among the integers of a datatype's constructor.
void after_get_contents_words(Datatype type, int64_t limit, int* integers);
inline void after_get_contents(Datatype type, int64_t limit, int* integers) {
    if (integers != nullptr && limit > 0) after_get_contents_words(type, limit, integers);
}

inline int64_t sum(int n, const int* terms) {
    int64_t total = 0;
    for (int i = 0; i < n && terms != nullptr; i++) total += terms[i];
    return total;
}

}  // namespace fermata::abi
