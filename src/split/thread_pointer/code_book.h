// A CodeBook keeps the accesses of libraries in a directory of the user's, by build-id: a library is decoded
// once on a node, and not at every start of a rank.
//
// An entry of the book is used only where decoding would give the same. The file is the one that was decoded,
// by all that its status tells; the decoder is the same; nobody has changed the code in memory since it was
// mapped. Anything else is decoded.
#pragma once

#include <optional>
#include <string>

#include "files/folder.h"
#include "split/thread_pointer/accesses.h"
#include "split/thread_pointer/known_code.h"
#include "split/thread_pointer/mapped_object.h"

namespace fermata::split::thread_pointer {

class CodeBook {
  public:
    // The directory `.code` in this one, which has to be the user's own and closed to others. Where there is
    // none, or "", everything is decoded.
    explicit CodeBook(const std::string& directory) noexcept;

    Accesses accesses_of(const MappedObject& object) const;

  private:
    std::optional<Accesses> known(const MappedObject& object, const CodeHead& head) const noexcept;
    void note(const MappedObject& object, const CodeHead& head, const Accesses& accesses) const noexcept;

    files::Folder folder_;
};

}  // namespace fermata::split::thread_pointer
