// Veloc is a client of VeloC's interface (include/veloc.h): each checkpoint's name is a directory in
// `persistent`, saved and restored as a program's own state, each version a step.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "api/handle.h"
#include "api/veloc_blob.h"
#include "api/veloc_words.h"

namespace fermata::api {

class Veloc {
  public:
    // Takes the communicators over. `id`: of a process that is alone. Throws Fault or Error. Collective.
    Veloc(const fermata_mpi& mpi, std::optional<unsigned> id, const std::string& configuration);
    ~Veloc();
    Veloc(const Veloc&) = delete;
    Veloc& operator=(const Veloc&) = delete;

    // Every call throws Fault or Error when it cannot be done. Regions: local.
    void protect(int id, void* data, size_t size, const std::string& group);
    bool unprotect(int id, const std::string& group);  // false: it was not protected
    void clear(const std::string& group) { groups_[group].clear(); }

    void begin(const std::string& name, int version);
    void copy(int mode, const std::set<int>& ids);
    void put(int id, std::string bytes);
    void end(bool success);  // collective
    void wait();             // collective
    bool finished();

    // Gives nothing when there is no version below that (below 0: none at all). Collective.
    std::optional<int> newest(const std::string& name, int below);
    void restart(const std::string& name, int version);  // collective
    void recover(int mode, const std::set<int>& ids);
    const std::string* saved(int id) const;  // null: nothing
    void end_restart(bool success);          // collective
    // The end: what is under way becomes durable. Collective.
    void finish();

    std::string route(const std::string& original);
    // Files in scratch that were routed and not ended. Local.
    void cleanup();

  private:
    struct Region {
        char* data;
        size_t size;
    };
    using Regions = std::map<int, Region>;
    // One name's directory.
    struct Place {
        fermata_handle handle;
        VelocBlob blob;  // to be saved, or just restored
    };
    enum class Phase { none, checkpoint, restart };

    Place& place(const std::string& name);
    const Regions& regions() const;
    Place& current(Phase phase);
    void collect_files();
    static int64_t size_hook(void* place);
    static int pack_hook(void* place, void* bytes, int64_t size);
    static int unpack_hook(void* place, const void* bytes, int64_t size);

    const VelocWords words_;
    const std::string library_;
    fermata_mpi mpi_;
    const std::string folder_;  // in persistent; where the names' directories are
    std::string scratch_;       // of routed files, from the first one on: nobody else may write to it
    const std::string who_;     // in names of files in scratch
    std::map<std::string, Regions> groups_;
    std::map<std::string, std::unique_ptr<Place>> places_;
    Phase phase_ = Phase::none;
    std::string name_;
    int version_ = 0;
    std::map<std::string, std::string> routed_;  // original, and the file's name in scratch
};

}  // namespace fermata::api
