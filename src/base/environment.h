// number_from() reads numbers that launchers put into environment variables, each launcher under names of its
// own.
#pragma once

#include <cstdlib>
#include <initializer_list>

namespace fermata {

// The first of these variables that is set, as a number.
inline int number_from(std::initializer_list<const char*> names, int otherwise) {
    for (const char* name : names)
        if (const char* value = std::getenv(name)) return std::atoi(value);
    return otherwise;
}

}  // namespace fermata
