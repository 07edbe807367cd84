// This header defines what one_of.h declares, for the files that instantiate it explicitly.
#pragma once

#include <memory>

#include "wire/one_of.h"

namespace fermata::wire {

template <class... Types>
OneOf<Types...>::OneOf() : Variant() {}

template <class... Types>
template <class T>
requires(std::is_same_v<T, Types> || ...) OneOf<Types...>::OneOf(T value)
    : Variant(std::in_place_type<T>, std::move(value)) {}

template <class... Types>
OneOf<Types...>::OneOf(const OneOf& other) : Variant(static_cast<const Variant&>(other)) {}
template <class... Types>
OneOf<Types...>::OneOf(OneOf&& other) noexcept : Variant(static_cast<Variant&&>(other)) {}
// Assignments by what is compiled already: with as many types a visit each would be seconds.
template <class... Types>
OneOf<Types...>& OneOf<Types...>::operator=(const OneOf& other) {
    return *this = OneOf(other);
}
template <class... Types>
OneOf<Types...>& OneOf<Types...>::operator=(OneOf&& other) noexcept {
    if (this == &other) return *this;
    std::destroy_at(this);
    return *std::construct_at(this, std::move(other));
}
template <class... Types>
OneOf<Types...>::~OneOf() {}

}  // namespace fermata::wire
