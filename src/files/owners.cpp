#include "files/owners.h"

#include <pwd.h>
#include <unistd.h>

#include <atomic>
#include <charconv>

#include "base/error.h"

namespace fermata::files {
namespace {

constexpr uid_t kNobodyElse = static_cast<uid_t>(-1);
std::atomic<uid_t> g_allowed{kNobodyElse};
std::atomic<bool> g_everybody{false};

}  // namespace

void allow_owner(uid_t user) noexcept { g_allowed = user; }

std::optional<uid_t> allowed_owner() noexcept {
    uid_t user = g_allowed;
    if (user == kNobodyElse) return {};
    return user;
}

void believe_everybody() noexcept { g_everybody = true; }

bool believed(uid_t owner) noexcept {
    return g_everybody || owner == ::geteuid() || owner == 0 || (owner == g_allowed && owner != kNobodyElse);
}

std::string name_of_user(uid_t user) {
    const passwd* entry = ::getpwuid(user);
    return entry ? fmt::format("{} (uid {})", entry->pw_name, user) : fmt::format("uid {}", user);
}

uid_t user_from(const std::string& text) {
    uid_t user = 0;
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), user);
    if (!text.empty() && error == std::errc{} && at == text.data() + text.size() && user != kNobodyElse)
        return user;
    if (const passwd* entry = ::getpwnam(text.c_str())) return entry->pw_uid;
    throw Error(fmt::format("there is no user '{}': give a name or a number", text), ExitCode::usage);
}

}  // namespace fermata::files
