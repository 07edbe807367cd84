// Info objects: ordered dictionaries of the upper half. A real one is made for the moment a real call needs
// it.
#pragma once

#include "front/objects/group.h"

namespace fermata::front {

struct InfoPair {
    Text key, value;
};
using InfoPairs = Vec<InfoPair>;

struct InfoObject : Object {
    InfoObject() : Object(Kind::info) {}
    InfoPairs pairs;
};

inline InfoObject* find_info(uint32_t handle) noexcept {
    return static_cast<InfoObject*>(find_object(handle, Kind::info));
}
// A new handle with these pairs.
uint32_t make_info(const InfoPairs& pairs) noexcept;
const Text* info_find(const InfoPairs& pairs, const char* key) noexcept;
void info_put(InfoPairs* pairs, const char* key, const char* value) noexcept;
bool info_remove(InfoPairs* pairs, const char* key) noexcept;

// A real info (or group) for the length of one real call.
class RealInfoFor {
  public:
    // Virtual info; null or unknown gives the null info, and so does an empty one, but where the library says
    // something in it.
    explicit RealInfoFor(uint32_t handle, bool to_be_filled = false) noexcept;
    explicit RealInfoFor(const InfoPairs& pairs) noexcept;
    ~RealInfoFor();
    RealInfoFor(const RealInfoFor&) = delete;
    RealInfoFor& operator=(const RealInfoFor&) = delete;
    uint64_t word() const { return word_; }

  private:
    void fill(const InfoPairs& pairs, bool to_be_filled) noexcept;
    uint64_t word_ = 0;
};
class RealGroupFor {
  public:
    explicit RealGroupFor(uint32_t handle) noexcept;
    explicit RealGroupFor(const Members& members) noexcept;
    ~RealGroupFor();
    RealGroupFor(const RealGroupFor&) = delete;
    RealGroupFor& operator=(const RealGroupFor&) = delete;
    uint64_t word() const { return word_; }
    int status() const { return status_; }

  private:
    void fill(const Members& members) noexcept;
    uint64_t word_ = 0;
    int status_ = 0;
};

}  // namespace fermata::front
