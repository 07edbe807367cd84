// State is what a rank has protected: names, and where their memory is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/element.h"
#include "api/grid.h"

namespace fermata::api {

enum class Kind { global, local, array, object };
const char* name_of(Kind kind);

// Facts of an object that all ranks must have said alike.
struct Shape {
    Kind kind = Kind::global;
    Element element{FERMATA_BYTE, "byte", 1};
    Index shape;  // array: of the whole; global, local: the number of elements; object: empty
    bool operator==(const Shape& other) const {
        return kind == other.kind && element.type == other.element.type &&
               (kind == Kind::local || shape == other.shape);
    }
};

struct Part {
    Grid grid;
    void* data = nullptr;
};

struct Hooks {
    void* object = nullptr;
    fermata_size_hook size = nullptr;
    fermata_pack_hook pack = nullptr;
    fermata_unpack_hook unpack = nullptr;
};

struct Entry : Shape {
    std::vector<Part> parts;  // one, but of arrays
    Hooks hooks;              // of an object
    int64_t bytes_of(const Part& part) const { return part.grid.elements() * element.bytes; }
};

// Every call throws Fault (FERMATA_ARGUMENT) and changes nothing when it cannot be right.
class State {
  public:
    void protect(Kind kind, const char* name, void* data, int type, int64_t count);
    void protect_array(const char* name, void* data, int type, int dimensions, const int64_t* global,
                       const int64_t* offset, const int64_t* extent, const int64_t* stride);
    void add_part(const char* name, void* data, const int64_t* offset, const int64_t* extent,
                  const int64_t* stride);
    void protect_object(const char* name, const Hooks& hooks);
    void forget(const char* name);

    const std::map<std::string, Entry>& entries() const { return entries_; }

  private:
    std::map<std::string, Entry> entries_;
};

}  // namespace fermata::api
