#include "launch/session_name.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace fermata::launch {
namespace {

// The order in which PRRTE asks.
std::string place_of_sessions() {
    for (const char* name : {"PRTE_MCA_prte_tmpdir_base", "TMPDIR", "TEMP", "TMP"})
        if (const char* place = std::getenv(name); place && *place) return place;
    return "/tmp";
}

}  // namespace

bool session_name_is_taken(pid_t pid) noexcept {
    try {
        const std::string newer = fmt::format("ompi.{}", pid);  // 5.0.9 to 5.0.11
        const std::string end =
            fmt::format(".{}.{}", pid, ::geteuid());  // prterun.HOST, in whatever spelling
        for (const auto& entry : std::filesystem::directory_iterator(place_of_sessions()))
            if (const std::string name = entry.path().filename().string();
                name == newer || (name.starts_with("prte") && name.ends_with(end)))
                return true;
    } catch (const std::exception&) {
        // The launcher says itself what it cannot do there.
    }
    return false;
}

}  // namespace fermata::launch
