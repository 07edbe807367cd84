// This header puts together what ranks of a node say when they come: neighbours that say the same are one
// group.
#pragma once

#include <vector>

#include "wire/message.h"

namespace fermata::tree {

wire::Joined joined(std::vector<wire::Hello> hellos);

}  // namespace fermata::tree
