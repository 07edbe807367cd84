// number_from() and text_from() read what launchers put into environment variables, each launcher under names
// of its own. value_in() reads an environment that another process shall have.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace fermata {

// The first of these variables that is set, as a number.
inline int number_from(std::initializer_list<const char*> names, int otherwise) {
    for (const char* name : names)
        if (const char* value = std::getenv(name)) return std::atoi(value);
    return otherwise;
}

// The first of these variables that is set to something.
inline std::string text_from(std::initializer_list<const char*> names, const char* otherwise) {
    for (const char* name : names)
        if (const char* value = std::getenv(name); value && *value) return value;
    return otherwise;
}

// The variable's value in a list of NAME=VALUE, where the last one counts; "" = it is empty, or not there.
inline std::string value_in(const std::vector<std::string>& environment, std::string_view name) {
    for (auto word = environment.rbegin(); word != environment.rend(); ++word)
        if (word->size() > name.size() && word->starts_with(name) && (*word)[name.size()] == '=')
            return word->substr(name.size() + 1);
    return {};
}

}  // namespace fermata
