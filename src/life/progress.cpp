#include "life/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include "base/text.h"

namespace fermata::life {

bool progress_wanted(bool verbose) { return verbose && ::isatty(2); }

// A phase is told when it is over: what is shown is the one that has begun.
std::string Progress::line_of(const journal::Event& event) {
    if (event.kind == journal::Kind::request) return "checkpoint: asked for …";
    if (event.kind != journal::Kind::phase) return {};
    const std::string waits = journal::text_in(event, "waits");
    return fmt::format("checkpoint {}: {} done in {:.2f} s{} …",
                       visible(journal::text_in(event, "generation")),
                       visible(journal::text_in(event, "phase")), journal::number_in(event, "seconds"),
                       waits.empty() ? "" : ", " + visible(waits.substr(0, waits.find('\n'))));
}

void Progress::show(const journal::Event& event) {
    const std::string line = line_of(event);
    if (line.empty() && !there_) return;
    there_ = !line.empty();
    const std::string text = "\r\033[K" + (line.empty() ? "" : "fermata: " + line);
    [[maybe_unused]] ssize_t n = ::write(2, text.data(), text.size());
}

}  // namespace fermata::life
