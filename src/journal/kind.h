// Kind says what an Event of a job's journal tells; for those who note one, without JSON.
#pragma once

#include <optional>
#include <string>

namespace fermata::journal {

enum class Kind {
    start,
    running,
    request,
    phase,
    checkpoint,
    copy,
    renewal,
    masked,
    replica,
    injected,
    loss,
    end,
    restart,
    given_up,
    log,
    ranks
};
const char* name_of(Kind kind);
std::optional<Kind> kind_of(const std::string& word);

}  // namespace fermata::journal
