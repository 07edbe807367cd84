// This file compiles the copies, moves and ends of messages, once for all files (one_of.h).
#include "wire/message.h"

#include "wire/one_of_bodies.h"

namespace fermata::wire {

template Message::OneOf();
template Message::OneOf(const OneOf&);
template Message::OneOf(OneOf&&) noexcept;
template Message& Message::operator=(const OneOf&);
template Message& Message::operator=(OneOf&&) noexcept;
template Message::~OneOf();

}  // namespace fermata::wire
