// Where the functions of a mapped object begin and end, by its unwind tables (.eh_frame_hdr, .eh_frame;
// System V ABI for x86-64, section 4.2.4; LSB Core, "Exception Frames").
#pragma once

#include <vector>

#include "split/thread_pointer/mapped_object.h"

namespace fermata::split::thread_pointer {

// In address order. Empty when there is no table, or one of a form that no linker for x86-64 writes.
std::vector<Range> functions_of(const MappedObject& object);

}  // namespace fermata::split::thread_pointer
