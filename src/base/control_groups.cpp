#include "base/control_groups.h"

#include <algorithm>
#include <sstream>

#include "base/proc_text.h"

namespace fermata {
namespace {

struct Names {
    const char *below, *limit, *used, *prefix, *dirty, *writeback;
};
constexpr Names kSecond = {"", "memory.max", "memory.current", "", "file_dirty", "file_writeback"};
constexpr Names kFirst = {"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                          "total_",  "total_dirty",           "total_writeback"};

// Gives the number of a line "key 123", 0 where there is none.
uint64_t number_of(const std::string& text, const std::string& key) {
    std::istringstream lines(text);
    std::string name;
    for (uint64_t value = 0; lines >> name >> value;)
        if (name == key) return value;
    return 0;
}

uint64_t without(uint64_t from, uint64_t what) { return from > what ? from - what : 0; }

uint64_t room_in(const std::string& directory, const Names& names, uint64_t kept) {
    const auto limit = number_at_start(read_proc(directory + names.limit)),
               used = number_at_start(read_proc(directory + names.used));
    if (!limit || !used) return UINT64_MAX;
    const std::string parts = read_proc(directory + "memory.stat");
    const auto part = [&](const std::string& name) { return number_of(parts, name); };
    // tmpfs is in neither of the two.
    const uint64_t files =
        part(std::string(names.prefix) + "inactive_file") + part(std::string(names.prefix) + "active_file");
    const uint64_t most = *limit - (kept ? *limit / kept : 0);
    return without(most, without(*used, without(files, part(names.dirty) + part(names.writeback))));
}

// Gives null for lines of /proc/self/cgroup that are not of memory; version 2 has one without controllers.
const Names* names_of(const std::string& controllers) {
    if (controllers.empty()) return &kSecond;
    return ("," + controllers + ",").find(",memory,") == std::string::npos ? nullptr : &kFirst;
}

}  // namespace

uint64_t room_in_groups(const std::string& groups, const std::string& mounted, uint64_t kept) {
    uint64_t room = UINT64_MAX;
    std::istringstream lines(groups);
    for (std::string line; std::getline(lines, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const Names* names = names_of(line.substr(first + 1, second - first - 1));
        if (!names) continue;
        for (std::string group = line.substr(second + 1);; group.resize(group.rfind('/'))) {
            if (group == "/") group.clear();
            room = std::min(room, room_in(mounted + names->below + group + "/", *names, kept));
            if (group.empty() || group[0] != '/') break;
        }
    }
    return room;
}

uint64_t room_in_groups(uint64_t kept) {
    return room_in_groups(read_proc("/proc/self/cgroup"), "/sys/fs/cgroup", kept);
}

}  // namespace fermata
