// Groups of nodes that bear losses together: no two nodes of a group are in one failure domain. No I/O.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "erasure/scheme.h"

namespace fermata::erasure {

// `domains`: of each node, the name of its failure domain. Gives for each group the indices of its nodes, in
// ascending order; every node is in one group. Groups have K+M members. Nodes that are left over make a
// smaller group when that still has at least K/2 for data (so that parity takes at most twice the memory that
// was asked for), and otherwise join the others. Throws Error where a group could not bear M losses.
std::vector<std::vector<size_t>> groups_of(const std::vector<std::string>& domains, const Scheme& scheme);

}  // namespace fermata::erasure
