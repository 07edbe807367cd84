#include "journal/writer.h"

#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/invariant.h"
#include "base/log.h"
#include "journal/event.h"

namespace fermata::journal {
namespace {

int64_t now_ms() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

}  // namespace

void Writer::note(Kind kind, nlohmann::json fields) noexcept try {
    const Event event{kind, job_, now_ms(), std::move(fields)};
    for (const auto& listener : listeners_) listener(event);
    try {
        append(to_line(event));
    } catch (const Error& error) {
        file_.reset();  // the next event tries again
        if (std::exchange(said_, true)) return;
        say(fmt::format("{}: the journal misses what happens meanwhile, the job does not mind",
                        error.what()));
    }
} catch (...) {  // no memory
}

void Writer::note(Kind kind) noexcept { note(kind, nlohmann::json::object()); }

void Writer::append(const std::string& line) {
    always(line.ends_with('\n'), "half an event for the journal");
    if (!file_) begin();
    rotate();
    always(static_cast<bool>(file_), "a journal that is written and not open");
    const std::string text = (cut_off_ ? "\n" : "") + line;
    ssize_t n;
    do n = ::write(file_.get(), text.data(), text.size());
    while (n < 0 && errno == EINTR);
    if (n == static_cast<ssize_t>(text.size())) {
        cut_off_ = false;
        return;
    }
    if (n > 0) cut_off_ = true, errno = ENOSPC;
    fail_errno("cannot write {}", folder_.path_of(kName));
}

void Writer::begin() {
    if (!folder_) folder_ = files::Folder::at(directory_);
    file_ = folder_.append(kName);
    // A job that was killed, or a full disk, has left half a line.
    off_t size = ::lseek(file_.get(), 0, SEEK_END);
    char last = '\n';
    cut_off_ = size > 0 && ::pread(file_.get(), &last, 1, size - 1) == 1 && last != '\n';
}

void Writer::rotate() {
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0 || static_cast<uint64_t>(status.st_size) < kMostBytes) return;
    // Where it cannot be renamed it grows: no event is lost for that.
    if (!folder_.rename(kName, kOlder)) return;
    file_.reset();
    begin();
}

}  // namespace fermata::journal
