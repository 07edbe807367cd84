// POSIX message queues: their messages are with what ranks share.
#include "split/process/descriptors/restore.h"
#include "split/shared/objects.h"
#include "split/shared/registry.h"

namespace fermata::split::process::descriptors {
namespace {

bool is(const Entry& entry) { return entry.is(S_IFREG) && shared::is_queue(entry.fd); }

Json capture(Capture&, const Entry& entry) {
    return {{"path", without_deleted(entry.link)},
            {"object", shared::to_text(shared::key_of(shared::Kind::queue, entry.status))}};
}

Fd make(Restore&, const Description& one) {
    int fd = shared::descriptor_of(one.saved.at("object").get<std::string>());
    return fd < 0 ? Restore::placeholder() : open_again(fd, one.flags);
}

}  // namespace

const Operations kQueue = {.kind = Kind::queue, .is = is, .capture = capture, .make = make};

}  // namespace fermata::split::process::descriptors
