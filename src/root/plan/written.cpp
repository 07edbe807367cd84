#include "root/plan/written.h"

namespace fermata::root {
namespace {

// A daemon hands up what was written before the copy was made before it says that it is.
uint64_t since(uint64_t then, uint64_t now) { return now > then ? now - then : 0; }

}  // namespace

void Written::add(int32_t rank, bool error, uint64_t bytes) {
    Bytes& come = all_[rank].come;
    (error ? come.error : come.output) += bytes;
}

Written::Bytes Written::moved(int32_t rank) {
    One& one = all_[rank];
    one.come = {since(one.at_copy.output, one.come.output), since(one.at_copy.error, one.come.error)};
    one.at_copy = {};
    return one.come;
}

}  // namespace fermata::root
