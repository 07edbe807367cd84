// Repair mends what is damaged of a generation out of what this machine has besides: another copy of an
// image, or parity. Intact files are never written over, and a file is whole and compared before it has its
// name.
#pragma once

#include <string>
#include <vector>

#include "level/copies.h"
#include "level/parity_here.h"

namespace fermata::level {

class Repair {
  public:
    // Both have been looked at, and outlive this; the copies are looked at again when something was done.
    Repair(Copies& copies, const ParityHere& parity);

    struct Report {
        std::vector<std::string> mended;  // a line each: what, from where, and what was wrong
        std::vector<std::string> left;  // a line each: what is damaged still, and why it could not be mended
    };
    Report run();

  private:
    void mend_marker(const Shelf& shelf);
    void mend_image(size_t shelf, const store::ImageEntry& entry);
    void from_copy(const Shelf& to, const Shelf& from, const store::ImageEntry& entry,
                   const std::string& why);
    void from_parity(const Shelf& to, const store::ImageEntry& entry, const std::string& why);
    void bring(const Shelf& to, const files::Folder& into, const files::Folder& from, const std::string& name,
               const std::function<void(const std::string& unfinished)>& check);
    void check_mine(const Shelf& shelf) const;
    void note(const std::string& path, const std::string& from, const std::string& why);

    Copies& copies_;
    const ParityHere& parity_;
    Report report_;
};

}  // namespace fermata::level
