#include "launch/session_name.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/environment.h"
#include "base/error.h"
#include "base/proc_text.h"

namespace fermata::launch {
namespace {

// In the order in which PRRTE asks (seen with Open MPI 5.0.11).
std::string place_of_sessions() {
    return text_from({"PRTE_MCA_prte_tmpdir_base", "TMPDIR", "TEMP", "TMP"}, "/tmp");
}

// Returns the number in "ompi.PID" (5.0.9 to 5.0.11) or "prterun.HOST.PID.UID"; nothing for other names.
std::optional<uint64_t> number_in(std::string_view name, std::string_view end) {
    constexpr std::string_view kNewer = "ompi.";
    if (name.starts_with(kNewer)) return number_at_start(std::string(name.substr(kNewer.size())));
    if (!name.starts_with("prte") || !name.ends_with(end)) return {};
    name.remove_suffix(end.size());
    return number_at_start(std::string(name.substr(name.rfind('.') + 1)));
}

}  // namespace

std::set<pid_t> numbers_with_a_session() noexcept {
    std::set<pid_t> numbers;
    try {
        const std::string end = fmt::format(".{}", ::geteuid());
        for (const auto& entry : std::filesystem::directory_iterator(place_of_sessions()))
            if (const auto number = number_in(entry.path().filename().string(), end))
                numbers.insert(static_cast<pid_t>(*number));
    } catch (const std::exception&) {
        // The launcher says itself what it cannot do there.
    }
    return numbers;
}

}  // namespace fermata::launch
