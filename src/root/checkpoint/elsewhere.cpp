// Copies of ranks on other nodes: all ranks stand for a moment, those that get copies begin their streams and
// leave images of themselves in the memory of their nodes, and other nodes make processes of these. Nothing
// is committed: the images are of no use to anybody else.
#include <utility>

#include "base/clock.h"
#include "root/checkpoint/checkpoint.h"

namespace fermata::root {

void Checkpoint::copy_elsewhere(const Request& request, double end) {
    attempt_.copied = request.elsewhere;
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
    start_copies(request, monotonic_s() + settings_.limits.save);
    leave_phase();
    attempt_.outcome.ok = true;
    attempt_.outcome.seconds = monotonic_s() - attempt_.start;
}

void Checkpoint::save_for_copies(const Request& request, double end) {
    image::SaveOptions options;
    options.forked = true;
    wire::Save order{attempt_.epoch, "", attempt_.outcome.generation, options.to_text()};
    order.uses = shared_of_ranks();
    order.copies = request.elsewhere.runs();
    ask(order);
    written_behind(end);
}

// The images go, whatever became of the copies.
void Checkpoint::start_copies(const Request& request, double end) {
    struct Images {
        Checkpoint& of;
        ~Images() {
            of.store_.abandon(std::exchange(of.attempt_.generation, {}));
            of.keeper_.clean_up();
        }
    } images{*this};
    job_.start_copies(request.elsewhere, attempt_.outcome.generation);
    until([&] { return job_.copies_have_started(); }, end, "other nodes to make copies of ranks");
}

}  // namespace fermata::root
