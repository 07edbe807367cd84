// Checkpoints that are the program's own work: the root hands the wish to the program (libfermata hears it)
// and waits for its word, while everything else goes on.
#include <unistd.h>

#include "base/log.h"
#include "root/root.h"
#include "wire/auth.h"

namespace fermata::root {
namespace {

uint64_t new_number() { return std::stoull(wire::random_id(8), nullptr, 16) | 1; }

}  // namespace

void Root::ask_program(const Request& request) {
    const bool unasked = request.origin == "interval" || request.origin == "measure";
    if (unasked && !own_state_.used()) return schedule_.plan(tree::now_ms());
    std::string why;
    if (signals_seen_.suspended)
        why = fmt::format("the job is suspended (SIGTSTP): kill -CONT {} lets it go on", ::getpid());
    else if (finalize_released_)
        why = "every rank has called MPI_Finalize: the program saves nothing any more";
    if (!why.empty()) {
        Outcome outcome;
        outcome.code = ExitCode::refused;
        outcome.line = why;
        return program_answered({request, outcome});
    }
    const int64_t now = tree::now_ms();
    const double patience = request.timeout > 0 ? request.timeout : settings_.limits.checkpoint;
    own_state_.wish(request, new_number(), now, now + static_cast<int64_t>(patience * 1000));
    follow_program();
}

void Root::follow_program() {
    const int64_t now = tree::now_ms();
    if (auto word = own_state_.take_word(now)) tree_.broadcast(*word);
    for (const OwnState::Answer& answer : own_state_.take_answers(now)) program_answered(answer);
    if (own_state_.ends_by() == 0 || now < own_state_.ends_by() || over() || finalize_released_) return;
    say("the program has saved its own state, and has not ended by itself (fermata_should_exit()): it is "
        "ended");
    stopped_ = true;
}

void Root::program_answered(const OwnState::Answer& answered) {
    const auto& [request, outcome] = answered;
    if (outcome.ok) schedule_.measured(outcome.measured);
    answer(request, outcome);
    if (!outcome.ok) done_with(request, outcome);
    if (!finalize_released_) schedule_.plan(tree::now_ms());
}

// The program was asked to end, and has ended well: that is no end of its work, or nobody knows whether it
// is.
bool Root::stopped_by_program() const {
    return own_state_.asked_to_end() && launcher_end_ == 0 && signals_seen_.to_end == 0;
}

}  // namespace fermata::root
