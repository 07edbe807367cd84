#include "lower/pending_image.h"

#include "base/error.h"

namespace fermata::lower {

PendingImage::PendingImage(const image::Place& place, const image::Identity& identity,
                           const image::WriteOptions& how, split::process::Copies copies)
    : place_(place),
      shared_(how.layout.together()),
      writer_(shared_ ? image::Writer::in_shared(place_, identity, how)
                      : image::Writer(place_, identity, how)),
      copies_(std::move(copies)) {}

PendingImage::~PendingImage() {
    child_.kill();
    if (!complete_ && !shared_) place_.folder.remove_file(place_.name);
}

bool PendingImage::done() {
    if (child_.descriptor() < 0) return true;
    std::string why;
    if (!child_.ended(why)) return false;
    if (!why.empty()) fail("{}: {}", why, place_.path());
    return true;
}

void PendingImage::watch_memory() const {
    if (memory_is_short())
        fail("memory runs short while a copy of this rank is kept for {}; given up", place_.path());
}

image::Summary PendingImage::conclude() {
    copies_.sync();
    image::Summary summary = writer_.conclude();
    complete_ = true;
    return summary;
}

}  // namespace fermata::lower
