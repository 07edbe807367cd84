// VeloC's C++ interface on libfermata (veloc.h): a client whose regions may be objects with functions that
// write and read them. C++17.
#ifndef FERMATA_VELOC_HPP
#define FERMATA_VELOC_HPP

#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "fermata/fermata.h"
#include "veloc/core.h"

namespace veloc {

class client_t {
  public:
    using serializer_t = std::function<void(std::ostream&)>;
    using deserializer_t = std::function<bool(std::istream&)>;
    using observer_t = std::function<void(const std::string& name, int version)>;

    explicit client_t(fermata_veloc* client) : client_(client) {}
    ~client_t() { fermata_veloc_close(client_); }
    client_t(const client_t&) = delete;
    client_t& operator=(const client_t&) = delete;

    bool mem_protect(int id, void* data, size_t count, size_t size, const std::string& group = "default") {
        objects_[group].erase(id);
        return good(fermata_veloc_protect(client_, id, data, count, size, c_name(group)));
    }
    bool mem_protect(int id, const serializer_t& write, const deserializer_t& read,
                     const std::string& group = "default") {
        fermata_veloc_unprotect(client_, id, c_name(group));
        objects_[group][id] = {write, read};
        return true;
    }
    bool mem_unprotect(int id, const std::string& group = "default") {
        return objects_[group].erase(id) > 0 ? true : good(fermata_veloc_unprotect(client_, id, c_name(group)));
    }
    void mem_clear(const std::string& group = "default") {
        objects_[group].clear();
        fermata_veloc_clear(client_, c_name(group));
    }
    bool register_observer(int type, const observer_t& observer) {
        return type == VELOC_OBSERVE_CKPT_END && (observer_ = observer, true);
    }

    std::string route_file(const std::string& original) {
        char routed[VELOC_MAX_NAME];
        return good(fermata_veloc_route_file(client_, original.c_str(), routed)) ? routed : "";
    }
    bool cleanup(const std::string& name) { return good(fermata_veloc_cleanup(client_, name.c_str())); }

    bool checkpoint(const std::string& name, int version) {
        return checkpoint_wait() && checkpoint_begin(name, version) &&
               checkpoint_end(checkpoint_mem(VELOC_CKPT_ALL, {}));
    }
    bool checkpoint_begin(const std::string& name, int version) {
        name_ = name;
        version_ = version;
        return good(fermata_veloc_checkpoint_begin(client_, name.c_str(), version));
    }
    bool checkpoint_mem(int mode, const std::set<int>& ids) {
        size_t objects = 0;
        for (auto& [id, object] : of(name_)) {
            if (!chosen(mode, ids, id)) continue;
            std::ostringstream out;
            object.write(out);
            const std::string bytes = out.str();
            if (!out || !good(fermata_veloc_put(client_, id, bytes.data(), bytes.size()))) return false;
            ++objects;
        }
        std::vector<int> raw;  // an object's number is no region's
        for (int id : ids)
            if (mode != VELOC_CKPT_SOME || of(name_).count(id) == 0) raw.push_back(id);
        if (objects > 0 && mode == VELOC_CKPT_SOME && raw.empty()) return true;
        return good(fermata_veloc_checkpoint_mem(client_, mode, raw.data(), static_cast<int>(raw.size())));
    }
    bool checkpoint_end(bool success) {
        const bool ended = good(fermata_veloc_checkpoint_end(client_, success));
        if (ended && observer_) observer_(name_, version_);
        return ended;
    }
    bool checkpoint_wait() { return good(fermata_veloc_wait(client_)); }
    bool checkpoint_finished() { return fermata_veloc_finished(client_) == 1; }

    // Another rank's own state is not to be had: `rank` is -1.
    int restart_test(const std::string& name, int below, int rank = -1) {
        return own(rank) ? fermata_veloc_restart_test(client_, name.c_str(), below) : VELOC_FAILURE;
    }
    bool restart(const std::string& name, int version, int rank = -1) {
        return restart_begin(name, version, rank) && restart_end(recover_mem(VELOC_RECOVER_ALL, {}));
    }
    bool restart_begin(const std::string& name, int version, int rank = -1) {
        name_ = name;
        return own(rank) && good(fermata_veloc_restart_begin(client_, name.c_str(), version));
    }
    size_t recover_size(int id) {
        size_t size = 0;
        return fermata_veloc_get(client_, id, &size) ? size : 0;
    }
    bool recover_mem(int mode, const std::set<int>& ids) {
        std::set<int> raw = ids;
        if (mode == VELOC_RECOVER_ALL) raw.clear();
        for (auto& [id, object] : of(name_)) {
            const bool wanted = chosen(mode, ids, id);
            if (mode == VELOC_RECOVER_SOME)
                raw.erase(id);
            else
                raw.insert(id);
            if (!wanted) continue;
            size_t size = 0;
            const auto* bytes = static_cast<const char*>(fermata_veloc_get(client_, id, &size));
            std::istringstream in(bytes ? std::string(bytes, size) : std::string());
            if (!bytes || !object.read(in)) return false;
        }
        const std::vector<int> list(raw.begin(), raw.end());
        return good(fermata_veloc_recover_mem(client_, mode == VELOC_RECOVER_SOME ? mode : VELOC_RECOVER_REST,
                                              list.data(), static_cast<int>(list.size())));
    }
    bool restart_end(bool success) { return good(fermata_veloc_restart_end(client_, success)); }

  private:
    struct Object {
        serializer_t write;
        deserializer_t read;
    };
    static bool good(int code) { return code == VELOC_SUCCESS; }
    static const char* c_name(const std::string& group) { return group == "default" ? nullptr : group.c_str(); }
    static bool chosen(int mode, const std::set<int>& ids, int id) {
        return mode == VELOC_CKPT_ALL || (ids.count(id) > 0) == (mode == VELOC_CKPT_SOME);
    }
    static bool own(int rank) {
        if (rank >= 0) std::cerr << "fermata: veloc: each rank restarts from what it has saved itself\n";
        return rank < 0;
    }
    // Objects of the checkpoint with this name.
    const std::map<int, Object>& of(const std::string& name) {
        auto found = objects_.find(name);
        return found != objects_.end() ? found->second : objects_["default"];
    }

    fermata_veloc* client_;
    std::map<std::string, std::map<int, Object>> objects_;
    observer_t observer_;
    std::string name_;
    int version_ = 0;
};

// Null: it failed, and why is printed.
inline client_t* get_client(unsigned int id, const std::string& configuration) {
    fermata_veloc* client = fermata_veloc_open(nullptr, id, configuration.c_str());
    return client ? new client_t(client) : nullptr;
}
inline client_t* get_client(MPI_Comm comm, const std::string& configuration) {
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    fermata_mpi mpi = fermata_mpi_of(comm, name);
    fermata_veloc* client = fermata_veloc_open(&mpi, 0, configuration.c_str());
    return client ? new client_t(client) : nullptr;
}

}  // namespace veloc

#endif
