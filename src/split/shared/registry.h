// The objects of an image in a fresh process.
//
// Ranks that had an object meet: the lowest of them makes it (or takes the one that is still there, when it
// is this user's), the others open it by the maker's /proc/PID/fd, so that nobody else can get between. All
// go through their objects in the same order.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rank.h"
#include "split/pages/table.h"

namespace fermata::split::shared {

// The other ranks of the job.
struct Peers {
    Rank rank{0};
    std::string node;
    std::function<void(Rank to, const std::string& text)> send;
    std::function<std::string(Rank from)> receive;
};

// Before memory is mapped. Throws fermata::Error: one line with the object and its ranks.
void make_objects(std::string_view described, Peers peers, std::vector<std::string>& warnings);
// All content is there: waits until every rank that shares with this one has said so.
void meet_over_content();
// Nothing of the image needs them any more.
void forget_objects();

// For memory: is it there, then a descriptor of it (not the caller's to close), -1 = no descriptor but a
// System V segment, -2 = unknown.
int descriptor_of(uint64_t object, bool writable);
// Maps this part of a segment over what is there. 0 or -errno.
long map_segment(const MapEntry& map);
// For descriptors (memory, queues): by the text of a key; -1 = unknown.
int descriptor_of(const std::string& key);
// The two ends of a pipe; {-1, -1} = unknown.
std::pair<int, int> pipe_of(const std::string& key);

}  // namespace fermata::split::shared
