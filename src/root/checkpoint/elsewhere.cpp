// Copies of ranks on other nodes: all ranks stand for a moment, those that get copies begin their streams and
// leave images of themselves in the memory of their nodes, and other nodes make processes of these. Nothing
// is committed: the images are of no use to anybody else.
#include "base/clock.h"
#include "base/error.h"
#include "root/checkpoint/checkpoint.h"

namespace fermata::root {

void Checkpoint::copy_elsewhere(const Request& request, double end) {
    attempt_.for_copies = true;
    begin(end);
    if (attempt_.level != store::LevelName::memory) {
        store_.abandon(std::exchange(attempt_.generation, {}));
        throw Abandoned{"the memory of a node has no room for images of ranks that shall have copies"};
    }
    stand_to_save(end);

    enter("suspend");
    save_for_copies(request, request.timeout > 0 ? end : monotonic_s() + settings_.limits.save);

    enter("resume");
    resume(false);
    attempt_.begun = false;  // of the ranks' side nothing is left to be taken back

    enter("send");
    job_.start_copies(request.elsewhere, attempt_.outcome.generation);
    try {
        until([&] { return job_.copies_have_started(); }, monotonic_s() + settings_.limits.save,
              "other nodes to make copies of ranks");
    } catch (...) {
        store_.abandon(std::exchange(attempt_.generation, {}));
        keeper_.clean_up();
        throw;
    }
    leave_phase();
    store_.abandon(std::exchange(attempt_.generation, {}));
    keeper_.clean_up();
    attempt_.outcome.ok = true;
    attempt_.outcome.seconds = monotonic_s() - attempt_.start;
}

// A child of each such rank writes while the job goes on.
void Checkpoint::save_for_copies(const Request& request, double end) {
    const auto& heard = tally_.answers();
    const auto all = job_.ranks();
    image::SaveOptions options;
    options.forked = true;
    wire::Save order{attempt_.epoch, "", attempt_.outcome.generation, options.to_text()};
    order.uses = shared_of_ranks();
    order.copies = request.elsewhere.runs();
    ask(order);
    const auto check = [&] {
        if (!heard.save_error.empty()) throw Abandoned{heard.save_error};
    };
    until([&] { return check(), heard.captured.ranks == all || heard.saved == all; }, end,
          "every rank to be captured");
    job_.tell(wire::Resume{attempt_.epoch});
    enter("save");
    until([&] { return check(), heard.saved == all; }, end, "images for copies to be written");
}

}  // namespace fermata::root
