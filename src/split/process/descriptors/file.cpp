// Regular files: with a name they are opened again by it; removed ones and memfds carry their content.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "split/process/descriptors/contents.h"
#include "split/process/descriptors/restore.h"
#include "split/process/file_copy.h"
#include "split/process/read_files.h"

namespace fermata::split::process::descriptors {
namespace {

constexpr std::string_view kMemfdName = "/memfd:";

bool has_path(const Entry& entry) {
    return entry.is(S_IFREG) && entry.link.starts_with("/") && !of_another_process(entry.link);
}

bool is_own_proc(const Entry& entry) { return entry.is(S_IFREG) && !own_proc_file(entry.link).path.empty(); }

// ---- with a name

bool is_file(const Entry& entry) {
    if (is_own_proc(entry)) return true;
    struct stat there;
    return has_path(entry) && stat(entry.link.c_str(), &there) == 0 && there.st_dev == entry.status.st_dev &&
           there.st_ino == entry.status.st_ino;
}

Json capture_file(Capture& capture, const Entry& entry) {
    if (OwnProcFile own = own_proc_file(entry.link); !own.path.empty())
        return {{"path", own.path}, {"thread", own.tid}, {"size", 0}, {"uid", entry.status.st_uid}};
    Json saved = {{"path", entry.link},
                  {"size", static_cast<int64_t>(entry.status.st_size)},
                  {"mode", entry.status.st_mode & 07777},
                  {"uid", entry.status.st_uid}};
    // A file that the program writes by another descriptor is put back, or named, as such files are.
    if (!is_readable(entry.flags) || is_of_the_system(entry.link, entry.status) ||
        capture.written.count({entry.status.st_dev, entry.status.st_ino}) != 0)
        return saved;
    // Never the name of a copy that put_back.cpp puts back.
    Json noted = describe_read(entry.fd, entry.status, lseek(entry.fd, 0, SEEK_CUR),
                               name_of_copy("read\n" + entry.link, entry.status));
    if (!noted.is_null())
        saved["read"] = std::move(noted);
    else
        capture.warnings.push_back(
            entry.who() + ": " + entry.link +
            " cannot be read for a comparison: whether it has changed is not seen at a "
            "restart");
    return saved;
}

// Opens what the file holds now, or what it held then. Throws Refused.
Fd with_content(Restore& restore, const Description& one, const std::string& path, files::Opened opened) {
    const Json& noted = one.saved.at("read");
    const Content content = opened ? compare_read(noted, opened.fd.get()) : Content::changed;
    const std::string what = fmt::format("file {} ({}), which the program reads,", path, one.who);
    if (content == Content::grown)
        restore.warnings.push_back(what +
                                   " has grown since the checkpoint: the program will read what is new");
    if (content == Content::alike)
        restore.warnings.push_back(
            what +
            " has another time than at the checkpoint; it is large: its beginning, its "
            "end and what the program has read last are the same, the rest was not "
            "compared");
    if (content != Content::changed) return std::move(opened.fd);
    const std::string now =
        opened ? "holds something else than at the checkpoint" : "cannot be opened (" + opened.why + ")";
    if (opened && !restore.reading.must_be_same) {
        restore.warnings.push_back(what + " " + now + ": the program reads that (--files off)");
        return std::move(opened.fd);
    }
    if (Fd kept = open_kept(restore.reading, noted, path)) {
        restore.warnings.push_back(what + " " + now + ": the program goes on with what was kept of it");
        return open_again(kept.get(), one.flags);
    }
    throw Refused{what + " " + now + ", and was not kept: put it back and restart again" +
                  (opened ? ", or go on with what it holds now by --files off" : "")};
}

Fd make_file(Restore& restore, const Description& one) {
    std::string path = proc_path_here(one.saved.at("path"), one.saved.value("thread", 0));
    files::Opened opened =
        open_as_owner(path, reopen_flags(one.flags), one.saved.value("mode", mode_t{0600}));
    if (one.saved.contains("read") && (opened || opened.error == ENOENT)) {
        if (opened) check_owner(opened.fd.get(), one, path);
        return with_content(restore, one, path, std::move(opened));
    }
    if (!opened)
        throw Refused{"file " + path + ", open at the checkpoint as " + one.who +
                      ", cannot be opened: " + opened.why + ": put it back and restart again"};
    check_owner(opened.fd.get(), one, path);
    struct stat now;
    auto size = one.saved.at("size").get<int64_t>();
    if (fstat(opened.fd.get(), &now) == 0 && now.st_size < size)
        restore.warnings.push_back(
            fmt::format("file {} ({}) has {} bytes, at the checkpoint it had {}: the program may read other "
                        "data than before",
                        path, one.who, now.st_size, size));
    return std::move(opened.fd);
}

// ---- without one

bool is_removed(const Entry& entry) { return has_path(entry); }

Json capture_removed(Capture& capture, const Entry& entry) {
    std::string path = without_deleted(entry.link);
    if (entry.status.st_nlink != 0)
        capture.warnings.push_back(
            entry.who() + ": " + path +
            " was renamed or replaced while open: it comes back as a file without a name");
    return {{"path", path},
            {"size", static_cast<int64_t>(entry.status.st_size)},
            {"mode", entry.status.st_mode & 07777},
            {"uid", entry.status.st_uid},
            {"content", capture_content(capture, entry, path)}};
}

bool is_memfd(const Entry& entry) { return entry.is(S_IFREG) && entry.link.starts_with(kMemfdName); }

Json capture_memfd(Capture& capture, const Entry& entry) {
    std::string name = without_deleted(entry.link.substr(kMemfdName.size()));
    return {{"path", name},
            {"size", static_cast<int64_t>(entry.status.st_size)},
            {"uid", entry.status.st_uid},
            {"content", capture_content(capture, entry, name)}};
}

Fd make_content(Restore& restore, const Description& one) { return restore.contents.open(restore, one); }

}  // namespace

const Operations kFile = {
    .kind = Kind::file, .is = is_file, .capture = capture_file, .make = make_file, .has_offset = true};
const Operations kRemoved = {.kind = Kind::removed,
                             .is = is_removed,
                             .capture = capture_removed,
                             .make = make_content,
                             .has_offset = true};
const Operations kMemfd = {
    .kind = Kind::memfd, .is = is_memfd, .capture = capture_memfd, .make = make_content, .has_offset = true};

}  // namespace fermata::split::process::descriptors
