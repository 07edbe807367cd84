#include "split/shared/extents.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "split/pages/residency.h"

namespace fermata::split::shared {

using nlohmann::json;

json read_extents(int fd, const std::vector<Range>& parts, const std::string& what) {
    json extents = json::array();
    for (const Range& part : parts)
        for (auto at = static_cast<off_t>(part.begin()), last = static_cast<off_t>(part.end()); at < last;) {
            off_t begin = ::lseek(fd, at, SEEK_DATA);
            if (begin < 0 && errno != ENXIO) begin = at;
            if (begin < 0 || begin >= last) break;
            off_t end = ::lseek(fd, begin, SEEK_HOLE);
            if (end < 0 || end > last) end = last;
            std::vector<uint8_t> bytes(static_cast<size_t>(end - begin));
            for (size_t got = 0; got < bytes.size();) {
                ssize_t size =
                    ::pread(fd, bytes.data() + got, bytes.size() - got, begin + static_cast<off_t>(got));
                if (size < 0 && errno == EINTR) continue;
                if (size <= 0)
                    fail("{}: byte {} of {} cannot be read ({}): checkpoint it again when nobody changes it",
                         what, begin + static_cast<off_t>(got), last,
                         size < 0 ? std::strerror(errno) : "it became shorter");
                got += static_cast<size_t>(size);
            }
            extents.push_back({begin, json::binary(std::move(bytes))});
            at = end;
        }
    return extents;
}

void write_extents(int fd, const json& extents, const std::string& what) {
    for (const json& extent : extents) {
        const auto& bytes = extent.at(1).get_binary();
        for (size_t done = 0; done < bytes.size();) {
            ssize_t size = ::pwrite(fd, bytes.data() + done, bytes.size() - done,
                                    extent.at(0).get<off_t>() + static_cast<off_t>(done));
            if (size < 0 && errno == EINTR) continue;
            if (size <= 0)
                fail("{} cannot be written: byte {} of {}: {}", what, done, bytes.size(),
                     size < 0 ? std::strerror(errno) : "no room");
            done += static_cast<size_t>(size);
        }
    }
}

json copy_extents(const void* at, uint64_t size) {
    json extents = json::array();
    auto begin = reinterpret_cast<uint64_t>(at);
    for (const Range& run : nonzero({begin, begin + page_up(size)})) {
        const auto* bytes = static_cast<const uint8_t*>(run.pointer());
        extents.push_back({run.begin() - begin, json::binary({bytes, bytes + run.size()})});
    }
    return extents;
}

void put_extents(void* at, uint64_t size, const json& extents) {
    for (const json& extent : extents) {
        auto offset = extent.at(0).get<uint64_t>();
        const auto& bytes = extent.at(1).get_binary();
        if (offset > page_up(size) || bytes.size() > page_up(size) - offset)
            fail("the image's list of shared objects has content outside of a segment: damaged checkpoint");
        std::memcpy(static_cast<char*>(at) + offset, bytes.data(), bytes.size());
    }
}

}  // namespace fermata::split::shared
