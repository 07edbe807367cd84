// Element is the type of an element of a protected array: its number in the header, its name in images, and
// its size.
#pragma once

#include <cstdint>
#include <optional>

#include "fermata/fermata_core.h"

namespace fermata::api {

struct Element {
    fermata_type type;
    const char* name;
    uint32_t bytes;
};

inline constexpr Element kElements[] = {
    {FERMATA_BYTE, "byte", 1},
    {FERMATA_INT8, "int8", 1},
    {FERMATA_INT16, "int16", 2},
    {FERMATA_INT32, "int32", 4},
    {FERMATA_INT64, "int64", 8},
    {FERMATA_UINT8, "uint8", 1},
    {FERMATA_UINT16, "uint16", 2},
    {FERMATA_UINT32, "uint32", 4},
    {FERMATA_UINT64, "uint64", 8},
    {FERMATA_FLOAT, "float", 4},
    {FERMATA_DOUBLE, "double", 8},
    {FERMATA_COMPLEX_FLOAT, "complex float", 8},
    {FERMATA_COMPLEX_DOUBLE, "complex double", 16},
};

constexpr std::optional<Element> element_of(int type) {
    for (const Element& one : kElements)
        if (one.type == type) return one;
    return {};
}

}  // namespace fermata::api
