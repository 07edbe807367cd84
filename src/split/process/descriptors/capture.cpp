// Open descriptors of the application, into the state.
//
// Descriptors that share an open file description (dup, fork) share it again: offset and flags are the
// description's. 0, 1 and 2, and duplicates of them, become the new launcher's. Files are opened again by
// name; what they hold then is put_back.cpp's; removed files, memfds, pipes, event and timer descriptors
// carry their content. A descriptor that cannot be held (a connection to a stranger, a device) is replaced by
// something that reads as "the other side has gone", with a warning.
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

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

// Numbers above the line that the lower half was never seen to have: of a program that has raised its limit
// by the raw system call and asked for just these.
void warn_of_those_above(int limit, Lines& warnings) {
    rlimit soft = {};
    raw::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, raw::word(&soft));
    if (soft.rlim_cur <= static_cast<rlim_t>(limit)) return;
    const split::OwnedDescriptors lower = split::lower_descriptors();
    for (int fd : open_descriptors(1 << 30)) {
        const int at = fd - limit;
        if (at < 0 || at >= lower.count || (lower.words[at / 64] >> at % 64 & 1) != 0) continue;
        warnings.push_back("descriptor " + std::to_string(fd) +
                           " lies where the MPI library has its own, above the limit that getrlimit tells (" +
                           std::to_string(limit) + "): not saved; after a restart it is closed");
    }
}

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

}  // namespace

std::set<std::pair<dev_t, ino_t>> written_of(const std::vector<Entry>& entries) {
    std::set<std::pair<dev_t, ino_t>> files;
    for (const Entry& entry : entries)
        if (is_writable(entry.flags)) files.emplace(entry.status.st_dev, entry.status.st_ino);
    return files;
}

namespace {

using Candidates = std::vector<size_t>;  // descriptions of one inode, in kcmp's order

// Where among them that of `fd` is or belongs. kcmp orders them, and there may be tens of thousands.
std::pair<Candidates::iterator, bool> place_among(Candidates& candidates, const Capture& capture, int fd) {
    const int pid = raw::getpid();
    auto first = candidates.begin(), last = candidates.end();
    while (first != last) {
        auto middle = first + (last - first) / 2;
        const int other = capture.all[*middle].entry->fd;
        const long order = raw::call(SYS_kcmp, pid, pid, KCMP_FILE, fd, other);
        if (order == 0) return {middle, true};
        if (order < 0 || order > 2) {
            first = std::find_if(candidates.begin(), candidates.end(), [&](size_t one) {
                return same_description(capture.all[one].entry->fd, fd);
            });
            return {first, first != candidates.end()};
        }
        if (order == 1)
            last = middle;
        else
            first = middle + 1;
    }
    return {first, false};
}

// Only descriptors of one inode can share a description. All anonymous inodes are one, so kcmp decides.
void find_descriptions(Capture& capture) {
    std::map<std::pair<dev_t, ino_t>, Candidates> by_inode;
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
        auto [at, known] = place_among(candidates, capture, entry.fd);
        if (known) {
            entry.description = *at;
            continue;
        }
        entry.description = capture.all.size();
        candidates.insert(at, entry.description);
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

Json capture_descriptors(const Limits& limits, Lines& warnings) {
    using namespace descriptors;
    Capture capture{warnings, entries_below(limits.descriptors), {}};
    warn_of_those_above(limits.descriptors, warnings);
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
