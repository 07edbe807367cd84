// Ranks that have copies: copies are made, a rank that dies is played by its copy, and the others go on.
#include "base/log.h"
#include "root/root.h"

namespace fermata::root {
namespace {

constexpr int kTries = 4;

Request renewal(const char* origin, bool copies) {
    Request request{origin, false, 0, -1};
    request.renewal.emplace();
    request.copies = copies;
    return request;
}

}  // namespace

// Every rank has its library: its process stays behind when it gets another one.
void Root::make_copies() {
    if (settings_.replicas.empty() || finalize_released_ || over()) return;
    requests_.push_back(renewal("copies", true));
}

// The copy has the rank's place already; all ranks need a world in which it is.
void Root::promoted(const wire::Promoted& said) {
    start_.roster().moved(said.rank, said.pid);
    const std::string line = fmt::format("rank {} on {} {}: its copy goes on in its place", said.rank,
                                         said.host, said.how);
    say(line);
    note(journal::Kind::masked, {{"rank", said.rank}, {"host", said.host}, {"line", line}});
    if (checkpoint_.in_progress()) checkpoint_.disturbed(line);
    masked_.waits = true;
    masked_.tries = 0;
}

// Before all other requests. One that fails is tried again: another rank may have died in it.
void Root::recover() {
    if (!masked_.waits || over() || finalize_released_) return;
    masked_.waits = false;
    const Request request = renewal("recovery", false);
    note(journal::Kind::request, {{"origin", request.origin}, {"stop", false}});
    const Outcome outcome = checkpoint_.take(request, store::LevelName::files, 0);
    answer_renewal(request, outcome);
    if (outcome.ok) return make_copies();
    if (masked_.waits || over() || losses_.any()) return;  // the next one sees to it
    masked_.waits = ++masked_.tries < kTries;
    if (!masked_.waits) fail_job(fmt::format("a rank's copy could not take its place: {}", outcome.line));
}

}  // namespace fermata::root
