// This header declares a variant of many types whose copies, moves and ends are compiled in one place
// (one_of_bodies.h): with some ninety types they are otherwise half of the work of every file that has one.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>

namespace fermata::wire {

template <class... Types>
class OneOf : public std::variant<Types...> {
  public:
    using Variant = std::variant<Types...>;
    OneOf();
    template <class T>
    requires(std::is_same_v<T, Types> || ...) OneOf(T value);
    OneOf(const OneOf& other);
    OneOf(OneOf&& other) noexcept;
    OneOf& operator=(const OneOf& other);
    OneOf& operator=(OneOf&& other) noexcept;
    ~OneOf();
};

}  // namespace fermata::wire
