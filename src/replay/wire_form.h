// Bytes of what a recovery's exchange hears and says, and back: they go from the front through agents, node
// daemons and root, which need not know what they mean.
#pragma once

#include <span>

#include "replay/exchange.h"

namespace fermata::replay {

Bytes wire_form(const Said& said);
Bytes wire_form(const Orders& orders);

// Nothing: they are damaged, or name ranks that a job of so many does not have.
std::optional<Said> said_from(std::span<const uint8_t> bytes, uint32_t ranks);
std::optional<Orders> orders_from(std::span<const uint8_t> bytes, uint32_t ranks);

}  // namespace fermata::replay
