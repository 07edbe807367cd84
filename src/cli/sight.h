// This header says what of a checkpoint directory can be seen from here, and whose it is.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "store/store.h"

namespace fermata::cli {

store::Store open_store(const StoreOptions& options);
void print_pretty(const nlohmann::json& j);

// "alice (uid 1000)" when it is not the caller's own, else "".
std::string other_owner(const store::GenerationInfo& info);
// The same as a part of a line.
std::string of_other(const store::GenerationInfo& info);

// Where this image can be read from here: of a generation that nodes keep only what this machine has of
// it.
bool find_image(store::GenerationInfo& info, const store::ImageEntry& entry);
// Lists nodes of this machine that have local copies of a generation that was not written to local
// directories.
std::vector<std::string> local_copies_of(const store::GenerationInfo& info);
// "", or which of its images are not to be seen from here.
std::string not_seen(store::GenerationInfo& info);

}  // namespace fermata::cli
