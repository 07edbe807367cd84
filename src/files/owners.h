// This header says whose files this process believes: those of its own user, of root, and of one more user
// whom the person who started the process has named (`--allow-owner`). An image is a program, so whoever
// wrote the image decides what runs here.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace fermata::files {

// For the life of this process. Ranks get it from the root (FERMATA_ALLOW_OWNER).
void allow_owner(uid_t user) noexcept;
std::optional<uid_t> allowed_owner() noexcept;
// For commands that only read and say whose it is.
void believe_everybody() noexcept;
bool believed(uid_t owner) noexcept;

// "alice (uid 1000)", for messages.
std::string name_of_user(uid_t user);
// A name or a number; throws Error (usage) when there is no such user.
uid_t user_from(const std::string& text);

}  // namespace fermata::files
