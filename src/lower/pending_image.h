// One image file of this rank while it is being written, by this process or by a forked child.
#pragma once

#include <string>

#include "image/image.h"
#include "lower/forked_writer.h"
#include "split/process/state.h"

namespace fermata::lower {

// The file of an image that is not complete yet. conclude() says that it is complete; without that the
// destructor ends the child and removes the file (but not a file of several: the root removes it).
class PendingImage {
  public:
    // `place`: of a new file, or of the one that holds this image among others, as the options' layout says.
    PendingImage(const image::Place& place, const image::Identity& identity, const image::WriteOptions& how,
                 split::process::Copies copies);
    PendingImage(const PendingImage&) = delete;
    PendingImage& operator=(const PendingImage&) = delete;
    ~PendingImage();

    image::Writer& writer() { return writer_; }
    // The file holds several images, and the root says where in it this one begins.
    bool shared() const { return shared_; }
    ForkedWriter& child() { return child_; }

    // Has everybody stopped writing? Throws when the child has died.
    bool done();
    // poll() finds it readable when done() may have changed; -1: no child writes.
    int descriptor() const { return child_.descriptor(); }
    // Throws when the node runs out of memory while a child keeps a copy of this rank.
    void watch_memory() const;
    // After done(): brings the image, and copies of the program's files, to storage. Throws what went wrong
    // while the image was written, also in the child.
    image::Summary conclude();

  private:
    image::Place place_;
    bool shared_;
    image::Writer writer_;
    ForkedWriter child_;
    split::process::Copies copies_;
    bool complete_ = false;
};

}  // namespace fermata::lower
