// VelocBlob is what a rank saves in a checkpoint of VeloC's interface, as bytes: regions by number, files by
// name. It is the object "veloc" of a program's own state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fermata::api {

struct VelocBlob {
    std::map<int32_t, std::string> regions;
    std::map<std::string, std::string> files;

    bool empty() const { return regions.empty() && files.empty(); }
    size_t size() const;  // of the bytes
    void pack(char* to) const;
    // Bytes of somebody else's: throws Error (ExitCode::damaged) for anything that pack() would not write.
    static VelocBlob unpacked(const char* bytes, size_t size);
};

}  // namespace fermata::api
