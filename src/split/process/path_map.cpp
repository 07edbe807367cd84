#include "split/process/path_map.h"

#include <algorithm>
#include <cstring>

#include "split/noted_files.h"
#include "split/process/parts.h"

namespace fermata::split::process {

PathMap PathMap::from_text(const std::string& text) {
    PathMap map;
    for (size_t at = 0; at < text.size();) {
        size_t end = std::min(text.find(':', at), text.size());
        std::string move = text.substr(at, end - at);
        if (size_t equals = move.find('='); equals != std::string::npos)
            map.moves_.emplace_back(move.substr(0, equals), move.substr(equals + 1));
        at = end + 1;
    }
    return map;
}

std::string PathMap::operator()(const std::string& path) const {
    for (const auto& [old, now] : moves_)
        if (path.compare(0, old.size(), old) == 0 && (path.size() == old.size() || path[old.size()] == '/'))
            return now + path.substr(old.size());
    return path;
}

std::string PathMap::in_state(std::string_view bytes) const {
    if (empty()) return std::string(bytes);
    Json state = parse_state(bytes);
    auto move = [&](Json& holder, const char* key) {
        if (holder.contains(key)) holder[key] = (*this)(holder.at(key).get<std::string>());
    };
    move(state["settings"], "cwd");
    move(state, "tmpdir");
    for (Json& one : state["descriptors"]["descriptions"]) move(one, "path");
    for (Json& one : state["files"]) {
        move(one, "path");
        move(one, "target");
    }
    std::string out;
    Json::to_cbor(state, out);
    return out;
}

std::string PathMap::in_shared(std::string_view bytes) const {
    if (empty()) return std::string(bytes);
    Json objects = parse_state(bytes);
    for (Json& one : objects)
        if (one.contains("name")) one["name"] = (*this)(one.at("name").get<std::string>());
    std::string out;
    Json::to_cbor(objects, out);
    return out;
}

void PathMap::in_noted(NotedFiles* files) const {
    if (empty() || files == nullptr) return;
    std::memset(const_cast<uint32_t*>(files->slot), 0, sizeof files->slot);
    for (uint32_t i = 0; i < files->count; ++i) {
        NotedFile& one = files->file[i];
        std::string path = files->text + one.path, now = (*this)(path);
        if (now != path && files->used + now.size() + 1 <= NotedFiles::kText) {
            std::memcpy(files->text + files->used, now.c_str(), now.size() + 1);
            one.path = files->used;
            one.hash = noted_hash(now.c_str());
            files->used += static_cast<uint32_t>(now.size()) + 1;
        }
        uint32_t slot = static_cast<uint32_t>(one.hash) % NotedFiles::kSlots;
        while (files->slot[slot] != 0) slot = (slot + 1) % NotedFiles::kSlots;
        files->slot[slot] = i + 1;
    }
}

}  // namespace fermata::split::process
