#include "split/process/descriptors/pipes.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "split/process/descriptors/restore.h"
#include "split/process/descriptors/shared_object.h"
#include "split/shared/registry.h"
#include "split/threads/raw.h"

namespace fermata::split::process::descriptors {
namespace {

// ---- capture

constexpr std::string_view kUnnamed = "pipe:[";

bool is_pipe(const Entry& entry) { return entry.is(S_IFIFO) && entry.link.starts_with(kUnnamed); }
bool is_fifo(const Entry& entry) { return entry.is(S_IFIFO); }

// Bytes that wait in a pipe, without taking them out. `fd` is a read end.
std::vector<uint8_t> pipe_content(const Entry& entry) {
    int waiting = 0;
    if (ioctl(entry.fd, FIONREAD, &waiting) != 0)
        fail("{}: how much waits in this pipe cannot be told: {}", entry.who(), error_text(errno));
    std::vector<uint8_t> bytes(static_cast<size_t>(waiting));
    if (bytes.empty()) return bytes;
    int copy[2];
    if (pipe2(copy, O_CLOEXEC | O_NONBLOCK) != 0)
        fail("{}: no pipe to copy the {} bytes that wait in it: {}", entry.who(), waiting, error_text(errno));
    Fd from(copy[0]), to(copy[1]);
    if (int capacity = fcntl(entry.fd, F_GETPIPE_SZ); capacity > 0) fcntl(to.get(), F_SETPIPE_SZ, capacity);
    ssize_t copied = tee(entry.fd, to.get(), bytes.size(), SPLICE_F_NONBLOCK);
    size_t got = 0;
    for (ssize_t part; copied > 0 && got < static_cast<size_t>(copied); got += static_cast<size_t>(part)) {
        part = read(from.get(), bytes.data() + got, bytes.size() - got);
        if (part <= 0) break;
    }
    if (got != bytes.size())
        fail(
            "{}: only {} of the {} bytes that wait in this pipe can be saved (fs.pipe-user-pages-soft?): "
            "checkpoint again when less waits",
            entry.who(), got, waiting);
    return bytes;
}

Json capture_end(Capture& capture, const Entry& entry, bool named) {
    std::string id = std::to_string(entry.status.st_ino);
    Json& pipe = capture.pipes[id];
    if (pipe.is_null())
        pipe = {{"capacity", fcntl(entry.fd, F_GETPIPE_SZ)},
                {"read", false},
                {"write", false},
                {"fd", entry.fd},
                {"named", named}};
    // In two ranks: what waits in it is saved by the lowest that could read it.
    shared::Key key = shared::key_of(named ? shared::Kind::fifo : shared::Kind::pipe, entry.status);
    const shared::Object* object = shared_object(key);
    if (object && !named) pipe["object"] = shared::to_text(key);
    if (is_readable(entry.flags)) {
        pipe["read"] = true;
        bool ours = !object || object->reader == shared::roster()->rank();
        if (ours && !pipe.contains("content")) pipe["content"] = Json::binary(pipe_content(entry));
    }
    if (is_writable(entry.flags)) pipe["write"] = true;
    return {{"pipe", id}};
}

Json capture_pipe(Capture& capture, const Entry& entry) { return capture_end(capture, entry, false); }

Json capture_fifo(Capture& capture, const Entry& entry) {
    Json one = capture_end(capture, entry, true);
    one["path"] = entry.link;
    one["uid"] = entry.status.st_uid;
    return one;
}

void warn_of_other_ends(Capture& capture) {
    for (auto& [id, pipe] : capture.pipes.items())
        if (!pipe["named"].get<bool>() && !pipe.contains("object") &&
            !(pipe["read"].get<bool>() && pipe["write"].get<bool>()))
            capture.warnings.push_back(
                "descriptor " + std::to_string(pipe["fd"].get<int>()) +
                " is a pipe to another process: after a restart its other end is closed");
}

// ---- restore

// `fd` writes without waiting: what does not fit now never will.
void fill(int fd, const Json& saved, const Description& one) {
    if (!saved.contains("content")) return;
    const auto& bytes = saved.at("content").get_binary();
    for (size_t done = 0; done < bytes.size();) {
        ssize_t part = write(fd, bytes.data() + done, bytes.size() - done);
        if (part <= 0)
            throw Refused{
                one.who + ": only " + std::to_string(done) + " of the " + std::to_string(bytes.size()) +
                " bytes that waited in the pipe could be put back (fs.pipe-user-pages-soft?): restart "
                "again with a higher limit"};
        done += static_cast<size_t>(part);
    }
}

Fd make_end(Restore& restore, const Description& one) { return restore.pipes.open_end(restore, one); }
Fd make_named(Restore& restore, const Description& one) { return restore.pipes.open_named(restore, one); }

}  // namespace

Pipes::Ends& Pipes::ends_of(Restore& restore, const Description& one) {
    auto id = one.saved.at("pipe").get<std::string>();
    if (auto known = made_.find(id); known != made_.end()) return known->second;
    const Json& saved = saved_.at(id);
    int ends[2] = {-1, -1};
    if (saved.contains("object")) {
        auto [from, to] = shared::pipe_of(saved.at("object").get<std::string>());
        if (from >= 0) {
            ends[0] = static_cast<int>(raw::call(SYS_dup, from));
            ends[1] = static_cast<int>(raw::call(SYS_dup, to));
        }
    }
    if (ends[0] < 0 && pipe2(ends, O_CLOEXEC) != 0)
        throw Refused{"no pipe could be made: " + error_text(errno)};
    Fd from(ends[0]), to(ends[1]);
    // These descriptions are ours alone: each of the program's is opened from them.
    fcntl(to.get(), F_SETFL, O_NONBLOCK);
    if (int capacity = saved.at("capacity"); capacity > 0) fcntl(to.get(), F_SETPIPE_SZ, capacity);
    fill(to.get(), saved, one);
    return made_[id] = {restore.up(std::move(from)), restore.up(std::move(to))};
}

Fd Pipes::open_end(Restore& restore, const Description& one) {
    Ends& ends = ends_of(restore, one);
    // A description of its own, so that O_NONBLOCK is.
    return open_again((one.flags & O_ACCMODE) != O_WRONLY ? ends.read.get() : ends.write.get(), one.flags);
}

Fd Pipes::open_named(Restore& restore, const Description& one) {
    auto path = one.saved.at("path").get<std::string>();
    files::Place place(path);
    Fd both;
    // Read and write: opening one side alone would wait for the other.
    if (place.is(S_IFIFO)) both = place.open(O_RDWR | O_NONBLOCK);
    if (!both)
        throw Refused{"named pipe " + path + " (" + one.who + ") cannot be opened: " +
                      files::refused(place, S_IFIFO, errno).why + ": put it back (mkfifo) and restart again"};
    check_owner(both.get(), one, path);
    if (is_readable(one.flags) && filled_.insert(path).second)
        fill(both.get(), saved_.at(one.saved.at("pipe").get<std::string>()), one);
    Fd fd = place.open(reopen_flags(one.flags));
    named_.push_back(restore.up(std::move(both)));
    return fd;
}

void Pipes::drop() {
    made_.clear();
    named_.clear();
}

const Operations kPipe = {.kind = Kind::pipe,
                          .is = is_pipe,
                          .capture = capture_pipe,
                          .relate = warn_of_other_ends,
                          .make = make_end};
const Operations kFifo = {
    .kind = Kind::fifo, .is = is_fifo, .capture = capture_fifo, .make = make_named, .sets_flags = true};

}  // namespace fermata::split::process::descriptors
