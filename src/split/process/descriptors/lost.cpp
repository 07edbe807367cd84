// Whatever is none of the other kinds: it reads as end of file after a restart.
#include "base/error.h"
#include "split/process/descriptors/restore.h"

namespace fermata::split::process::descriptors {
namespace {

bool is(const Entry&) { return true; }

Json capture(Capture& capture, const Entry& entry) {
    // Memory or writes of the program would be wrong without a word.
    for (std::string_view whole : {"[userfaultfd]", "[io_uring]"})
        if (entry.is_anonymous(whole))
            fail("{} is {}: what it does to memory and files cannot be saved; close it before a checkpoint",
                 entry.who(), whole);
    capture.warnings.push_back(entry.who() + " (" + entry.link +
                               ") cannot be saved: after a restart it reads as end of file");
    return Json::object();
}

Fd make(Restore&, const Description&) { return Restore::placeholder(); }

}  // namespace

const Operations kLost = {.kind = Kind::lost, .is = is, .capture = capture, .make = make};

}  // namespace fermata::split::process::descriptors
