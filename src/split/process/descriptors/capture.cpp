// Open descriptors of the application, into the state.
//
// Descriptors that share an open file description (dup, fork) share it again: offset and flags are the
// description's. 0, 1 and 2, and duplicates of them, become the new launcher's. Files are opened again by
// name; what they hold then is put_back.cpp's; removed files, memfds, pipes, event and timer descriptors
// carry their content. What cannot be held (a connection to a stranger, a device) is replaced by something
// that reads as "the other side has gone", with a warning.
#include <fcntl.h>
#include <linux/kcmp.h>

#include <map>

#include "split/fds/descriptors.h"
#include "split/process/descriptors/inherited.h"
#include "split/process/descriptors/locks.h"
#include "split/process/descriptors/operations.h"
#include "split/process/descriptors/owner.h"
#include "split/process/descriptors/saved.h"
#include "split/threads/raw.h"

namespace fermata::split::process {
namespace descriptors {
namespace {

std::vector<Entry> entries_below(int limit) {
    std::vector<Entry> entries;
    for (int fd : open_descriptors(limit)) {
        if (is_kept_inherited(fd)) continue;
        if (split::launcher_channel(fd)) continue;  // not the program's: neither saved nor missed
        Entry entry = look_at(fd);
        // libibverbs gets these by ioctl, so they have low numbers; a program with its own is refused
        // (device.cpp).
        if (entry.is_anonymous("[infinibandevent]")) continue;
        if (entry.fd >= 0) entries.push_back(std::move(entry));
    }
    return entries;
}

// Only descriptors of one inode can share a description. All anonymous inodes are one, so kcmp decides.
void find_descriptions(Capture& capture) {
    std::map<std::pair<dev_t, ino_t>, std::vector<size_t>> by_inode;
    // The launcher's: one description for each of its numbers, also where all are one terminal.
    std::map<int, size_t> given;
    for (Entry& entry : capture.entries) {
        if (int number = given_by_launcher(entry); number >= 0) {
            auto [place, fresh] = given.emplace(number, capture.all.size());
            entry.description = place->second;
            if (fresh) capture.all.push_back({&entry, &kInherited, {}});
            continue;
        }
        auto& candidates = by_inode[{entry.status.st_dev, entry.status.st_ino}];
        bool known = false;
        for (size_t candidate : candidates) {
            if (!same_description(capture.all[candidate].entry->fd, entry.fd)) continue;
            entry.description = candidate;
            known = true;
            break;
        }
        if (known) continue;
        entry.description = capture.all.size();
        candidates.push_back(entry.description);
        capture.all.push_back({&entry, &operations_of(entry), {}});
    }
}

void describe(Capture& capture, Described& one) {
    const Entry& entry = *one.entry;
    one.saved = one.operations->capture(capture, entry);
    one.saved["kind"] = word_of(one.operations->kind);
    one.saved["flags"] = entry.flags;
    if (std::string position = field(entry.info, "pos"); !position.empty())
        one.saved["position"] = std::strtoll(position.c_str(), nullptr, 10);
    one.saved["locks"] = capture_locks(entry.info);
    capture_owner(entry, one.saved, capture.warnings);
}

void relate(Capture& capture) {
    std::vector<const Operations*> done;
    for (const Described& one : capture.all) {
        if (one.operations->relate == nullptr ||
            std::find(done.begin(), done.end(), one.operations) != done.end())
            continue;
        one.operations->relate(capture);
        done.push_back(one.operations);
    }
}

}  // namespace
}  // namespace descriptors

bool same_description(int a, int b) {
    int pid = raw::getpid();
    long answer = raw::call(SYS_kcmp, pid, pid, KCMP_FILE, a, b);
    if (answer >= 0) return answer == 0;
    // No kcmp (CONFIG_KCMP off, seccomp): the same inode, and an offset that moves in both.
    struct stat first, second;
    if (fstat(a, &first) != 0 || fstat(b, &second) != 0) return false;
    if (first.st_dev != second.st_dev || first.st_ino != second.st_ino ||
        fcntl(a, F_GETFL) != fcntl(b, F_GETFL))
        return false;
    off_t at = lseek(a, 0, SEEK_CUR);
    if (at < 0) return true;  // no offset to tell by: the inode has to do
    off_t before = lseek(b, 0, SEEK_CUR);
    lseek(a, at + 1, SEEK_SET);
    bool moved = before == at && lseek(b, 0, SEEK_CUR) == at + 1;
    lseek(a, at, SEEK_SET);
    return moved;
}

Json capture_descriptors(const Limits& limits, Lines& warnings) {
    using namespace descriptors;
    Capture capture{warnings, entries_below(limits.descriptors), {}};
    find_descriptions(capture);
    for (Described& one : capture.all) describe(capture, one);
    relate(capture);
    Json list = Json::array(), numbers = Json::array();
    for (Described& one : capture.all) list.push_back(std::move(one.saved));
    for (const Entry& entry : capture.entries)
        numbers.push_back(Number{entry.fd, entry.description, entry.close_on_exec});
    return {{"descriptions", list},
            {"descriptors", numbers},
            {"contents", capture.contents},
            {"pipes", capture.pipes}};
}

}  // namespace fermata::split::process
