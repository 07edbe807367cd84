// The instructions of an object that reach memory through FS, as x86-64 code does for its thread-locals and
// for the thread control block.
#pragma once

#include <string>
#include <vector>

#include "split/thread_pointer/mapped_object.h"

namespace fermata::split::thread_pointer {

inline constexpr uint8_t kFs = 0x64;  // the prefix

struct Accesses {
    std::vector<uint64_t> prefixes;  // address of each one's FS prefix (one byte, 0x64)
    std::string doubt;               // why not all of them are known for certain; "" = they are
};

// All but reads of the stack protector's canary (fs:0x28): a function compares two reads of its own, and any
// thread control block serves for that.
//
// Code is decoded function by function, from where the unwind tables say that it begins. An apparent access
// outside of all functions, a function that does not decode, or an FS prefix on anything but a plain memory
// operand raises doubt.
Accesses find_accesses(const MappedObject& object);

}  // namespace fermata::split::thread_pointer
