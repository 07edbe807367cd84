// Which ranks shall have a copy: what `--replicas` says, once it is known how many ranks there are.
#pragma once

#include <string>

#include "tree/ranks.h"

namespace fermata::root {

// `words`: "all", a number of ranks ("2"), a part of them ("50%"), or their list ("0,4-7"). Numbers and parts
// are spread over the ranks. Throws Error for anything else, and for ranks that the job does not have.
tree::Ranks replicated(const std::string& words, uint32_t ranks);

// The same of words that may also change what there is: with a + or - in front, "+0,4-7" or "-2".
tree::Ranks replicated(const std::string& words, uint32_t ranks, const tree::Ranks& now);

// Words that say these ranks, whatever the job's size.
std::string words_of(const tree::Ranks& ranks);

}  // namespace fermata::root
