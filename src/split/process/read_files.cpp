#include "split/process/read_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "files/kept.h"
#include "split/process/file_copy.h"

namespace fermata::split::process {
namespace {

constexpr int64_t kSample = 64 << 10;
constexpr size_t kMostKnown = 10000;  // some 1 MiB; a program that reads more files has them summed anew

// Sums up a large file: its first bytes, those before the program's place, and its last ones; empty when they
// cannot be read.
Json samples_of(int fd, int64_t size, int64_t position) {
    Json samples = Json::array();
    for (int64_t at :
         {int64_t{0}, std::clamp<int64_t>(position - kSample, 0, size - kSample), size - kSample}) {
        samples.push_back(sum_of(fd, at, kSample));
        if (samples.back() == "") return Json::array();
    }
    return samples;
}

// The name stands for path, inode, size and times: as long as these are old, the content need not be read
// again.
std::string sum_of_settled(int fd, int64_t size, const std::string& name) {
    static std::map<std::string, std::string> known;
    if (known.size() > kMostKnown) known.clear();
    std::string& sum = known[name];
    if (sum.empty()) sum = sum_of(fd, 0, size);
    return sum;
}

}  // namespace

bool is_of_the_kernel(const std::string& path) {
    return path.starts_with("/proc/") || path.starts_with("/dev/") || path.starts_with("/sys/");
}

bool is_of_the_system(const std::string& path, const struct stat& status) {
    if (is_of_the_kernel(path)) return true;
    if (status.st_uid != 0) return false;
    return path.starts_with("/run/") || path.starts_with("/var/lib/") || path.starts_with("/var/cache/");
}

Json describe_read(int fd, const struct stat& status, int64_t position, const std::string& name) {
    const int64_t size = status.st_size;
    Json noted = describe_status(status);
    if (size <= kLargestRead) {
        noted["sum"] = noted.at("settled").get<bool>() ? sum_of_settled(fd, size, name) : sum_of(fd, 0, size);
        if (noted.at("sum") == "") return {};
        noted["name"] = name;
    } else {
        noted["position"] = position;
        noted["samples"] = samples_of(fd, size, position);
        if (noted.at("samples").empty()) return {};
    }
    return noted;
}

Content compare_read(const Json& noted, int fd) {
    struct stat now;
    if (fstat(fd, &now) != 0) return Content::changed;
    if (is_untouched(noted, now)) return Content::same;
    const auto size = noted.at("size").get<int64_t>();
    if (now.st_size < size) return Content::changed;
    const bool grown = now.st_size > size;
    if (noted.contains("sum")) {
        if (sum_of(fd, 0, size) != noted.at("sum").get<std::string>()) return Content::changed;
        return grown ? Content::grown : Content::same;
    }
    if (samples_of(fd, size, noted.at("position")) != noted.at("samples")) return Content::changed;
    if (grown) return Content::grown;
    return same_time(noted.at("modified"), now.st_mtim) ? Content::same : Content::alike;
}

Fd open_kept(const Reading& reading, const Json& noted, const std::string& path) {
    const std::string name = noted.value("name", "");
    if (!reading.generation || !files::is_kept_name(name)) return {};
    try {
        auto folder = reading.generation.find(files::kKeptFolder);
        if (!folder || !folder->has(name)) return {};
        folder->check_owner(folder->path());
        const Fd kept = folder->read(name);
        Fd content(memfd_create(path.substr(path.rfind('/') + 1, 200).c_str(), MFD_CLOEXEC));
        std::string sum;
        if (!content || !copy_file(kept.get(), 0, noted.at("size"), content.get(), &sum) ||
            sum != noted.at("sum").get<std::string>())
            return {};
        fchmod(content.get(), noted.at("mode").get<mode_t>() | S_IRUSR);
        return content;
    } catch (const Error&) {
        return {};
    }
}

}  // namespace fermata::split::process
