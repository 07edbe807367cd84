// MPI_T: the control and performance variables of the library below.
//
// A program knows a variable by its index, which may not change, and by handles. Both are the front's: an
// entry of a catalogue has the variable's name, and at a restart the library that is below then is asked for
// that name. A variable that the new library lacks stays in the catalogue and answers MPI_T_ERR_INVALID_INDEX
// or _HANDLE; one that only the new library has comes at the end. Values that the program wrote are written
// again; performance variables begin anew.
#pragma once

#include "front/objects/object.h"

namespace fermata::front {

enum class Which : uint8_t { control, performance, category };

struct Entry {
    Text name;             // empty: one that the library counts but does not show
    int32_t of_class = 0;  // of performance variables, whose names are unique within a class only
    int32_t real = -1;     // its index below; -1: not there
    Text written;          // control variables bound to nothing: the last value
};

struct Catalogue {
    Which which;
    Vec<Entry> list;
    int32_t known = 0;  // indices below that have been looked at
};

// Handles of the program are the addresses of these.
struct Enumeration {
    Which which;
    int32_t index;  // the variable it belongs to
    uint64_t real;
};
struct ControlHandle {
    int32_t index, bind, count;
    uint32_t object;
    uint32_t element;  // bytes; 1: text
    uint64_t real;
};
struct PerformanceHandle {
    int32_t index, bind;
    uint32_t object;
    bool continuous, readonly, started;
    uint64_t real;
};
struct ToolsSession {
    uint64_t real;
    Vec<PerformanceHandle*> handles;
};

// After the objects are there again. Variables that cannot be had are left out; never fails.
void tools_rebuild() noexcept;

}  // namespace fermata::front
