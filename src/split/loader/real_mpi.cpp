#include "split/loader/real_mpi.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/fd.h"
#include "files/place.h"
#include "split/loader/dynamic_symbols.h"
#include "split/loader/mpi_name.h"

namespace fermata::split {
namespace {

bool implements_mpi(const std::vector<DynamicSymbol>& symbols) {
    return std::any_of(symbols.begin(), symbols.end(),
                       [](const DynamicSymbol& one) { return one.defined && one.name == kOnlyInMpi; });
}

// Strings that remain in a stripped program linked with MPICH's kin, or with Open MPI: names of settings
// beside texts of messages.
bool speaks_like_mpi(const std::string& path) {
    const char* const words[][2] = {{"MPIR_CVAR_", "MPI_COMM_WORLD"}, {"OMPI_MCA_", "ompi_mpi_init"}};
    Fd fd = files::open_regular(path, O_RDONLY).fd;
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0 || status.st_size <= 0) return false;
    const auto size = static_cast<size_t>(status.st_size);
    void* text = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (text == MAP_FAILED) return false;
    auto has = [&](const char* word) { return ::memmem(text, size, word, std::strlen(word)) != nullptr; };
    const bool found = std::any_of(std::begin(words), std::end(words),
                                   [&](auto& both) { return has(both[0]) && has(both[1]); });
    ::munmap(text, size);
    return found;
}

bool is_front(const ElfFile& library) {
    return std::find(library.needed.begin(), library.needed.end(), "libfermata-front.so") !=
           library.needed.end();
}

}  // namespace

bool is_real_mpi(const ElfFile& library) {
    return named_like_mpi(library.soname.c_str()) && !is_front(library) &&
           implements_mpi(dynamic_symbols(library));
}

bool has_mpi_inside(const ElfFile& program) {
    const std::vector<DynamicSymbol> all = all_symbols(program);
    return implements_mpi(dynamic_symbols(program)) ||
           (all.empty() ? speaks_like_mpi(program.path) : implements_mpi(all));
}

}  // namespace fermata::split
