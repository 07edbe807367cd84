#include "split/process/descriptors/contents.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/ranges.h"
#include "split/process/descriptors/restore.h"
#include "split/process/descriptors/shared_object.h"
#include "split/shared/extents.h"
#include "split/shared/registry.h"
#include "split/threads/raw.h"

namespace fermata::split::process::descriptors {
namespace {

constexpr int kAddSeals = 1033, kGetSeals = 1034;  // F_ADD_SEALS, F_GET_SEALS

std::string name_of(const Description& one) {
    return "the removed file " + one.saved.at("path").get<std::string>() + " (" + one.who + ")";
}

// Where a file without a name can be made that is like the one that was.
Fd make_file(const Description& one, const Json& content) {
    auto path = one.saved.at("path").get<std::string>();
    // Content that is mapped as shared memory, or that other ranks have, is there already.
    if (content.contains("object"))
        if (int fd = shared::descriptor_of(content.at("object").get<std::string>()); fd >= 0)
            return Fd(static_cast<int>(raw::call(SYS_dup, fd)));
    if (one.operations.kind == Kind::memfd)
        return Fd(memfd_create(path.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    size_t slash = path.rfind('/');
    std::string directory = slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
    for (const std::string& place : {directory, std::string("/tmp")})
        if (Fd fd(open(place.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)); fd) return fd;
    return Fd(memfd_create("removed", MFD_CLOEXEC));
}

void fill(int fd, const Json& content, const std::string& name) {
    constexpr const char* kAdvice = ": make room on its file system and restart again";
    try {
        shared::write_extents(fd, content.at("extents"), "the content of " + name);
    } catch (const Error& error) {
        throw Refused{error.what() + std::string(kAdvice)};
    }
    if (ftruncate(fd, content.at("size").get<off_t>()) != 0)
        throw Refused{name + " cannot be made as long as it was: " + error_text(errno) + kAdvice};
}

// Once for all ranks.
void settle(int fd, const Json& content, const Description& one, Lines& warnings) {
    fchmod(fd, content.at("mode").get<mode_t>());
    if (content.contains("modified")) {
        timespec times[2] = {{0, UTIME_OMIT}, content.at("modified").get<Time>().value};
        futimens(fd, times);
    }
    int seals = content.value("seals", 0);
    if (one.operations.kind == Kind::memfd && seals > 0 && fcntl(fd, kAddSeals, seals) != 0)
        warnings.push_back(fmt::format("the seals of {} ({}) cannot be set again: {}",
                                       one.saved.at("path").get<std::string>(), one.who, error_text(errno)));
}

}  // namespace

std::string capture_content(Capture& capture, const Entry& entry, const std::string& path) {
    std::string id = std::to_string(entry.status.st_dev) + ":" + std::to_string(entry.status.st_ino);
    if (capture.contents.contains(id)) return id;
    Json& content = capture.contents[id];
    auto size = static_cast<uint64_t>(entry.status.st_size);
    content = {{"size", static_cast<int64_t>(size)},
               {"mode", entry.status.st_mode & 07777},
               {"modified", Time{entry.status.st_mtim}},
               {"extents", Json::array()}};
    shared::Key key = shared::key_of(shared::Kind::memory, entry.status);
    const shared::Object* object = shared_object(key);
    if (object) {
        content["object"] = shared::to_text(key);
        content["settles"] = object->opener == shared::roster()->rank();
    }
    content["seals"] = std::max(0, fcntl(entry.fd, kGetSeals));
    // Mapped parts are in the image's memory, and parts that lower ranks have are in theirs.
    std::vector<Range> rest{{0, size}};
    if (object) rest = difference(difference(rest, object->lower), object->mapped);
    // Opened anew: the descriptor may be write-only, and its offset is not ours to move.
    Fd fd = open_again(entry.fd, O_RDONLY);
    if (fd) {
        content["extents"] = shared::read_extents(fd.get(), rest, entry.who() + ", the removed file " + path);
        return id;
    }
    int error = errno;
    if (object) rest = difference(rest, object->covered);  // others save it
    uint64_t missing = 0;
    for (const Range& part : rest) missing += part.size();
    if (missing != 0)
        capture.warnings.push_back(
            fmt::format("{}: {} bytes of the removed file {} cannot be read ({}): they "
                        "are zero after a restart",
                        entry.who(), missing, path, error_text(error)));
    return id;
}

// The inode is made once; each description opens it with its own flags.
Fd Contents::open(Restore& restore, const Description& one) {
    auto id = one.saved.at("content").get<std::string>();
    auto known = made_.find(id);
    if (known == made_.end()) {
        const Json& content = saved_.at(id);
        Fd fd = make_file(one, content);
        if (!fd)
            throw Refused{"no place for " + name_of(one) +
                          ": make its directory or /tmp writable and restart again"};
        fill(fd.get(), content, name_of(one));
        if (content.value("settles", true)) settle(fd.get(), content, one, restore.warnings);
        known = made_.emplace(id, restore.up(std::move(fd))).first;
    }
    Fd fd = open_again(known->second.get(), one.flags);
    return fd ? std::move(fd) : Fd(static_cast<int>(raw::call(SYS_dup, known->second.get())));
}

}  // namespace fermata::split::process::descriptors
