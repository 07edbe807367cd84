// Times of ranks, as the journal has them.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/rank.h"
#include "tree/block_times.h"

namespace fermata::root {

// The fields of an event `ranks`; null: not every rank of the job has said its times, or some that are none.
nlohmann::json times_for_journal(const tree::BlockTimes& times, uint32_t ranks,
                                 const std::function<std::string(Rank)>& host_of);

}  // namespace fermata::root
