#include "noded/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/log.h"

namespace fermata::noded {
namespace {

std::string place() {
    const char* named = std::getenv("TMPDIR");
    return named != nullptr && named[0] == '/' ? named : "/var/tmp";
}

}  // namespace

void Spool::append(std::string_view bytes) {
    newest_ += bytes;
    if (newest_.size() > in_memory_ && !no_file_) file_newest();
}

void Spool::file_newest() {
    try {
        if (!file_) file_ = open_file(place(), O_TMPFILE | O_RDWR | O_CLOEXEC);
        pwrite_all(file_.get(), newest_.data(), newest_.size(), filed_, "a file in " + place());
        filed_ += newest_.size();
        newest_ = {};
    } catch (const Error& error) {
        no_file_ = true;
        spdlog::warn("output of ranks with copies is kept in memory: {}", error.what());
    }
}

std::string Spool::read(uint64_t at, size_t size) const {
    const uint64_t filed = filed_ - begin_;
    std::string bytes;
    if (at < filed) {
        bytes.resize(std::min<uint64_t>(size, filed - at));
        for (size_t done = 0; done < bytes.size();) {
            const ssize_t n = ::pread(file_.get(), bytes.data() + done, bytes.size() - done,
                                      static_cast<off_t>(begin_ + at + done));
            if (n <= 0) fail("what ranks have written cannot be read again from a file in {}", place());
            done += static_cast<size_t>(n);
        }
        return bytes;
    }
    return at - filed < newest_.size() ? newest_.substr(at - filed, size) : bytes;
}

void Spool::drop_oldest(uint64_t bytes) {
    const uint64_t of_file = std::min(bytes, filed_ - begin_);
    begin_ += of_file;
    if (file_ && begin_ == filed_) {
        file_ = Fd();
        begin_ = filed_ = 0;
    }
    newest_.erase(0, bytes - of_file);
}

}  // namespace fermata::noded
