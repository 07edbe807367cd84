#include "split/shared/describe.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/fd.h"
#include "base/ranges.h"
#include "files/place.h"
#include "split/shared/extents.h"
#include "split/shared/queues.h"
#include "split/shared/segments.h"
#include "split/shared/system_v.h"

namespace fermata::split::shared {
namespace {

using nlohmann::json;

json ranges_of(const std::vector<Range>& ranges) {
    json list = json::array();
    for (const Range& range : ranges) list.push_back({range.begin(), range.end()});
    return list;
}

// Begins with what the roster knows; without one every object is this rank's own.
json begin_of(const Key& key) {
    json one = {{"key", to_text(key)}, {"kind", static_cast<uint32_t>(key.kind)}, {"ranks", json::array()}};
    const Object* object = roster() ? roster()->find(key) : nullptr;
    if (!object) return one;
    for (Rank rank : object->ranks) one["ranks"].push_back(rank.number());
    one["size"] = object->size;
    one["covered"] = ranges_of(object->covered);
    return one;
}

constexpr uint64_t kMostContent = 1 << 30;

bool saved_here(const Key& key) { return !roster() || roster()->first(key); }

// A file on tmpfs by its name; what no mapping covers is saved by the lowest rank.
void add_named(const std::string& path, const Key& key, json& one, std::vector<std::string>& warnings) {
    struct stat file;
    one["named"] = ::stat(path.c_str(), &file) == 0;
    if (!one["named"].get<bool>()) return;
    one["name"] = path;
    one["mode"] = file.st_mode & 07777;
    one["uid"] = file.st_uid;
    one["device"] = key.device;
    one["inode"] = key.inode;
    bool tmpfs = on_tmpfs(path);
    one["tmpfs"] = tmpfs;
    if (!tmpfs) return;
    one["size"] = static_cast<uint64_t>(file.st_size);
    if (!saved_here(key)) return;
    const Object* object = roster() ? roster()->find(key) : nullptr;
    auto size = static_cast<uint64_t>(file.st_size);
    std::vector<Range> rest{{0, size}};
    if (object) rest = difference(rest, object->covered);
    std::erase_if(rest, [](const Range& part) { return part.empty(); });
    if (rest.empty()) return;
    files::Place place(path, O_NOFOLLOW);
    bool itself =
        place.is(S_IFREG) && place.status().st_dev == file.st_dev && place.status().st_ino == file.st_ino;
    Fd fd = itself ? place.open(O_RDONLY) : Fd();
    one["unsaved"] = !fd || static_cast<uint64_t>(file.st_blocks) * 512 > kMostContent;
    if (one["unsaved"].get<bool>())
        warnings.push_back(fmt::format("{}: what is not mapped of it is not saved ({})", path,
                                       fd ? "more than 1 GiB" : "it cannot be read"));
    else
        one["content"] = read_extents(fd.get(), rest, path);
}

// A segment that no rank has attached.
void add_content(const Key& key, json& one, std::vector<std::string>& warnings) {
    int id = static_cast<int>(key.inode);
    if (one.at("size").get<uint64_t>() > kMostContent) {
        warnings.push_back(fmt::format(
            "System V segment {} is attached by no rank and larger than 1 GiB: its content is not saved",
            id));
        return;
    }
    Segment segment = attach_segment(id);
    one["content"] = copy_extents(segment.at, one.at("size").get<uint64_t>());
    detach_segment(segment);
}

void add_mapped(const MapEntry& map, const Key& key, json& one, std::vector<std::string>& warnings) {
    one["object"] = map.object;
    one["name"] = map.name;
    if (key.kind == Kind::segment) one.update(describe_segment(static_cast<int>(key.inode), warnings));
    one["size"] = std::max(one.value("size", uint64_t{0}), map.object_size);
    one["named"] = false;
    if (map.kind == MapKind::shared_kept) add_named(map.name, key, one, warnings);
}

// Warns of what others see of a file that is mapped for writing, and is not put back.
void warn_of_files(const MemoryTable& table, std::vector<std::string>& warnings) {
    std::set<std::string> told;
    for (const MapEntry& map : table.maps) {
        if (map.kind != MapKind::shared_file || !map.writable_file || !told.insert(map.name).second) continue;
        warnings.push_back(fmt::format(
            "{} is mapped for writing and not in the generation (larger than 1 GiB, or on a file system of "
            "several nodes): a restart finds in it what was written last",
            map.name));
    }
}

}  // namespace

std::string describe(const MemoryTable& table, const std::map<uint64_t, Key>& objects, int limit,
                     std::vector<std::string>& warnings) {
    std::map<Key, json> all;
    warn_of_files(table, warnings);
    for (const MapEntry& map : table.maps) {
        auto key = objects.find(map.object);
        if (key == objects.end() || all.contains(key->second)) continue;
        if (map.kind != MapKind::shared_memory && map.kind != MapKind::shared_kept) continue;
        json one = begin_of(key->second);
        add_mapped(map, key->second, one, warnings);
        all.emplace(key->second, std::move(one));
    }
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
        int fd = std::atoi(entry.path().filename().c_str());
        struct stat file;
        if (fd >= limit || ::fstat(fd, &file) != 0) continue;
        Key fifo = key_of(Kind::fifo, file);
        if (S_ISFIFO(file.st_mode) && roster() && roster()->with_others(fifo)) {
            all[fifo] = begin_of(fifo);  // opened by its name, but by all on one node
            all[fifo]["name"] = "named pipe " + std::filesystem::read_symlink(entry.path(), ignored).string();
        }
        Key memory = key_of(Kind::memory, file);
        std::string link = std::filesystem::read_symlink(entry.path(), ignored).string();
        if (S_ISREG(file.st_mode) && !all.contains(memory) && link.starts_with("/dev/shm/") &&
            on_tmpfs(link) && roster() && roster()->find(memory)) {
            json one = begin_of(memory);
            add_named(link, memory, one, warnings);
            if (one["named"].get<bool>()) all.emplace(memory, std::move(one));
        }
        if (!is_queue(fd)) continue;
        Key key = key_of(Kind::queue, file);
        if (all.contains(key)) continue;
        json one = begin_of(key);
        one.update(describe_queue(fd, !roster() || roster()->first(key), warnings));
        all.emplace(key, std::move(one));
    }
    if (roster())
        for (const auto& [key, object] : roster()->objects()) {
            if (key.kind == Kind::segment && !all.contains(key)) {
                json one = begin_of(key);
                one.update(describe_segment(static_cast<int>(key.inode), warnings));
                if (object.covered.empty() && saved_here(key)) add_content(key, one, warnings);
                all.emplace(key, std::move(one));
            }
            if (key.kind != Kind::semaphores && key.kind != Kind::messages) continue;
            json one = begin_of(key);
            one.update(describe_system_v(key, roster()->first(key), warnings));
            all.emplace(key, std::move(one));
        }
    if (roster())
        for (const auto& [key, object] : roster()->objects()) {
            if (key.kind == Kind::event && object.ranks.size() > 1)
                warnings.push_back(fmt::format(
                    "an eventfd is shared by {} ranks, {} the first of them: after a restart each "
                    "has one of its own",
                    object.ranks.size(), object.ranks.front().number()));
            bool met = key.kind == Kind::memory || key.kind == Kind::pipe;
            if (!met || object.ranks.size() < 2 || all.contains(key)) continue;
            json one = begin_of(key);
            one["named"] = false;
            one["name"] = key.kind == Kind::pipe ? "a pipe" : "a removed file";
            all.emplace(key, std::move(one));
        }
    json list = json::array();
    for (auto& [key, one] : all) list.push_back(std::move(one));
    std::string bytes;
    json::to_cbor(list, bytes);
    return bytes;
}

}  // namespace fermata::split::shared
