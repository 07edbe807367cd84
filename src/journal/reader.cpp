#include "journal/reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/invariant.h"

namespace fermata::journal {
namespace {

// A writer rotates at kMostBytes; of a file that is longer all the same, its end is read.
constexpr uint64_t kMostRead = 4 * kMostBytes;

// From `at` to the end, at most so many bytes.
std::string bytes_from(int fd, uint64_t at, uint64_t most) {
    always(fd >= 0, "a journal that is read and not open");
    std::string text;
    while (text.size() < most) {
        char buffer[65536];
        ssize_t n = ::pread(fd, buffer, std::min<uint64_t>(sizeof buffer, most - text.size()),
                            static_cast<off_t>(at + text.size()));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        text.append(buffer, static_cast<size_t>(n));
    }
    return text;
}

}  // namespace

Contents parse(const std::string& text) {
    Contents contents;
    size_t at = 0;
    for (size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
        if (end == at) continue;
        if (auto event = end - at <= kMostLine ? parse_line(text.substr(at, end - at)) : std::nullopt)
            contents.events.push_back(std::move(*event));
        else
            ++contents.not_ours;
    }
    return contents;
}

Contents read(const files::Folder& directory) {
    Contents all;
    for (const char* name : {kOlder, kName}) {
        if (!directory.has(name)) continue;
        Fd file = directory.read(name);
        struct stat status {};
        if (::fstat(file.get(), &status) != 0) fail_errno("cannot stat {}", directory.path_of(name));
        auto size = static_cast<uint64_t>(status.st_size);
        Contents one = parse(bytes_from(file.get(), size > kMostRead ? size - kMostRead : 0, kMostRead));
        all.events.insert(all.events.end(), std::make_move_iterator(one.events.begin()),
                          std::make_move_iterator(one.events.end()));
        all.not_ours += one.not_ours;
    }
    return all;
}

bool Follower::attach() {
    auto folder = files::Folder::find_at(directory_);
    if (!folder) return false;
    auto named = folder->look(kName);
    if (!named) return false;
    struct stat mine {};
    if (file_ && ::fstat(file_.get(), &mine) == 0 && mine.st_ino == named->st_ino &&
        mine.st_dev == named->st_dev)
        return true;
    // Rotated: what was left in the old one has been read by now.
    file_ = folder->read(kName);
    at_ = 0;
    begun_.clear();
    return true;
}

std::vector<Event> Follower::more(size_t most) {
    std::vector<Event> events;
    auto read_on = [&] {
        std::string text = bytes_from(file_.get(), at_, kMostRead);
        at_ += text.size();
        begun_ += text;
        size_t whole = begun_.rfind('\n');
        if (whole == std::string::npos) {
            if (begun_.size() > kMostLine) begun_.clear();
            return;
        }
        Contents contents = parse(begun_.substr(0, whole + 1));
        begun_.erase(0, whole + 1);
        events.insert(events.end(), std::make_move_iterator(contents.events.begin()),
                      std::make_move_iterator(contents.events.end()));
    };
    if (file_) read_on();
    if (attach()) read_on();
    if (std::exchange(first_, false) && events.size() > most)
        events.erase(events.begin(), events.end() - static_cast<ptrdiff_t>(most));
    return events;
}

}  // namespace fermata::journal
