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

namespace {

bool is_within(const std::string& path, const std::string& folder) {
    return path.compare(0, folder.size(), folder) == 0 &&
           (path.size() == folder.size() || path[folder.size()] == '/');
}

// `visit(holder, key)` for every path of a process state.
template <class Visit>
void for_each_path(Json& state, Visit visit) {
    auto look = [&](Json& holder, const char* key) {
        if (holder.contains(key)) visit(holder, key);
    };
    look(state["settings"], "cwd");
    look(state, "tmpdir");
    for (Json& one : state["descriptors"]["descriptions"]) look(one, "path");
    for (Json& one : state["files"]) {
        look(one, "path");
        look(one, "target");
    }
}

}  // namespace

std::string PathMap::operator()(const std::string& path) const {
    for (const auto& [old, now] : moves_)
        if (is_within(path, old)) return now + path.substr(old.size());
    return path;
}

std::string PathMap::in_state(std::string_view bytes) const {
    if (empty()) return std::string(bytes);
    Json state = parse_state(bytes);
    for_each_path(state, [&](Json& holder, const char* key) {
        holder[key] = (*this)(holder.at(key).get<std::string>());
    });
    std::string out;
    Json::to_cbor(state, out);
    return out;
}

std::vector<std::string> PathMap::unused_in(std::string_view bytes) const {
    std::vector<std::string> lines;
    if (empty()) return lines;
    Json state = parse_state(bytes);
    for (const auto& [old, now] : moves_) {
        bool used = false;
        for_each_path(state, [&, &folder = old](Json& holder, const char* key) {
            used = used || is_within(holder.at(key).get<std::string>(), folder);
        });
        if (!used)
            lines.push_back(
                "--map " + old + "=" + now +
                " changes nothing that is seen of this rank: neither its working directory nor a file "
                "that is open or was written lies in " +
                old);
    }
    return lines;
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
