// The table of the kinds of descriptors: what can be done with each (operations.h).
#include <array>

#include "split/process/descriptors/operations.h"

namespace fermata::split::process::descriptors {
namespace {

// In the order in which they are asked: what is whose duplicate before what it is, what has a file's kind
// without being one before files.
constexpr std::array kTable = {
    &kInherited,        &kPidfd, &kQueue,   &kMemfd,  &kFile,   &kRemoved, &kDirectory,
    &kRemovedDirectory, &kPipe,  &kFifo,    &kSocket, &kDevice, &kEventfd, &kTimerfd,
    &kSignalfd,         &kEpoll, &kInotify, &kLost,
};
static_assert(kTable.size() == kKindWords.size());

}  // namespace

const Operations& operations_of(const Entry& entry) {
    for (const Operations* one : kTable)
        if (one->is(entry)) return *one;
    return kLost;
}

const Operations& operations_of(const std::string& word) {
    if (auto kind = kind_of(word))
        for (const Operations* one : kTable)
            if (one->kind == *kind) return *one;
    throw Refused{"the image has a descriptor of the kind '" + word +
                  "', which this Fermata does not know: use the one that wrote it"};
}

}  // namespace fermata::split::process::descriptors
