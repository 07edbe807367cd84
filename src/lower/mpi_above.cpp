#include "lower/mpi_above.h"

#include <sys/mman.h>

#include <map>
#include <tuple>

#include "base/error.h"
#include "split/address/maps.h"
#include "split/address/window.h"
#include "split/loader/real_mpi.h"

namespace fermata::lower {
namespace {

using FileId = std::tuple<uint32_t, uint32_t, uint64_t>;

bool is_mpi(const std::string& path) {
    split::ElfFile file;
    return file.read(path).empty() && split::is_real_mpi(file);
}

}  // namespace

std::string mpi_above() try {
    static std::map<FileId, bool> known;  // one thread asks: the agent
    for (const split::Mapping& m : split::read_maps()) {
        // A process that only reads such a file has no MPI.
        if (m.inode == 0 || (m.prot & PROT_EXEC) == 0 || !m.name.starts_with('/') ||
            !split::upper_address(m.range.begin()))
            continue;
        auto [at, fresh] = known.try_emplace({m.device_major, m.device_minor, m.inode}, false);
        if (fresh) at->second = is_mpi(m.name);
        if (at->second) return m.name;
    }
    return "";
} catch (const Error&) {  // /proc cannot be read: said when the image is written
    return "";
}

}  // namespace fermata::lower
