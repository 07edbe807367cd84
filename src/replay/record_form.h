// Bytes of a record of the stream, and back: they go from a leader to the copy that follows it.
#pragma once

#include <span>

#include "replay/record.h"

namespace fermata::replay {

Bytes wire_form(const Record& record);
// Nothing: they are damaged, or name ranks that a job of so many does not have.
std::optional<Record> record_from(std::span<const uint8_t> bytes, uint32_t ranks);

}  // namespace fermata::replay
