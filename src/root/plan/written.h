// Written counts how much of each rank's output and error has come to the root, so that a copy on another
// node can be told what it need not write again. No I/O.
#pragma once

#include <cstdint>
#include <map>

namespace fermata::root {

class Written {
  public:
    struct Bytes {
        uint64_t output = 0, error = 0;
        bool operator==(const Bytes&) const = default;
    };

    // A piece has come.
    void add(int32_t rank, bool error, uint64_t bytes);
    // The rank had written so much when its copy was made; counted as here.
    void copied(int32_t rank, Bytes then) { all_[rank].at_copy = then; }
    // The copy has the rank's place: so much has come since it was made. From now on is counted from there.
    Bytes moved(int32_t rank);

  private:
    struct One {
        Bytes come, at_copy;
    };
    std::map<int32_t, One> all_;
};

}  // namespace fermata::root
