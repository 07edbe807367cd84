// The parts of an image beside memory: their names, and the addresses from which a restart finds everything
// else. Capture and restart read this one list.
#pragma once

#include <cstdint>

namespace fermata::lower {

// Names of the image's blobs (docs/formats/image.md).
inline constexpr const char *kMemoryPart = "memory", *kProcessPart = "process", *kAnchorsPart = "anchors",
                            *kProgramPart = "program", *kMapsPart = "maps", *kCpuPart = "cpu",
                            *kMpiPart = "mpi", *kSharedPart = "shared";

// Addresses in upper memory from which everything else is found.
struct Anchors {
    uint64_t upper;    // UpperServices*
    uint64_t threads;  // ThreadTable*
    uint32_t bridge_version;
    uint32_t interface;
};

}  // namespace fermata::lower
