// Ranks that have copies: copies are made, a rank that dies is played by its copy, and the others go on.
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "root/root.h"

namespace fermata::root {
namespace {

constexpr int kTries = 4;
constexpr int64_t kLaterMs = 1000;  // who has taken a rank's place catches up first

Request renewal(const char* origin, bool copies) {
    Request request{origin, false, 0, -1};
    request.renewal.emplace();
    request.copies = copies;
    return request;
}

}  // namespace

// A rank's process stays behind when it gets another library: a renewal makes all copies that are wanted.
void Root::make_copies(int64_t in_ms) {
    if (!settings_.replicas.empty()) masked_.copies_due = tree::now_ms() + in_ms;
}

void Root::copies_are_due() {
    if (masked_.copies_due == 0 || tree::now_ms() < masked_.copies_due || finalize_released_ || over())
        return;
    masked_.copies_due = 0;
    const Outcome outcome = checkpoint_.take(renewal("copies", true), store::LevelName::files, 0);
    note(journal::Kind::renewal,
         {{"ok", outcome.ok}, {"line", outcome.line}, {"seconds", outcome.seconds}, {"origin", "copies"}});
    for (const std::string& line : outcome.warnings) say(line);
    if (outcome.ok || masked_.waits || over()) return;
    spdlog::info("copies: {}", outcome.line);
    make_copies(kLaterMs);
}

// The copy has the rank's place already; all ranks need a world in which it is.
void Root::promoted(const wire::Promoted& said) {
    start_.roster().moved(said.rank, said.pid);
    const std::string line =
        fmt::format("rank {} on {} {}: its copy goes on in its place", said.rank, said.host, said.how);
    say(line);
    note(journal::Kind::masked, {{"rank", said.rank}, {"host", said.host}, {"line", line}});
    if (checkpoint_.in_progress()) checkpoint_.disturbed(line);
    masked_.waits = true;
    masked_.tries = 0;
}

// Before all other requests. One that fails is tried again: another rank may have died in it.
void Root::recover() {
    copies_are_due();
    if (!masked_.waits || over() || finalize_released_) return;
    masked_.waits = false;
    const Request request = renewal("recovery", false);
    note(journal::Kind::request, {{"origin", request.origin}, {"stop", false}});
    const Outcome outcome = checkpoint_.take(request, store::LevelName::files, 0);
    answer_renewal(request, outcome);
    if (outcome.ok) return make_copies(kLaterMs);
    if (masked_.waits || over() || losses_.any()) return;  // the next one sees to it
    masked_.waits = ++masked_.tries < kTries;
    if (!masked_.waits) fail_job(fmt::format("a rank's copy could not take its place: {}", outcome.line));
}

}  // namespace fermata::root
