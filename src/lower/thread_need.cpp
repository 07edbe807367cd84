#include "lower/thread_need.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "files/place.h"
#include "split/loader/program.h"

namespace fermata::lower {
namespace {

// The name stands in the dynamic string table of whoever imports it.
bool mentions_threads(const std::string& path) {
    int fd = files::open_regular(path, O_RDONLY).fd.release();
    if (fd < 0) return true;
    struct stat st {};
    bool found = true;
    if (::fstat(fd, &st) == 0 && st.st_size > 0) {
        auto size = static_cast<size_t>(st.st_size);
        void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data != MAP_FAILED) {
            // A session gets the level that the library has, unless a hint says otherwise.
            for (const char* name :
                 {"MPI_Init_thread", "mpi_init_thread", "MPI_Session_init", "mpi_session_init"})
                if ((found = ::memmem(data, size, name, std::strlen(name)) != nullptr)) break;
            ::munmap(data, size);
        }
    }
    ::close(fd);
    return found;
}

bool is_mpi_itself(const std::string& path) {
    std::string name = path.substr(path.rfind('/') + 1);
    return name.starts_with("libmpi") || name.starts_with("libopen-") || name.starts_with("libfermata");
}

}  // namespace

ThreadNeed thread_need(const std::string& program) {
    if (const char* said = std::getenv("FERMATA_THREADS"))
        return std::strcmp(said, "one") == 0 ? ThreadNeed::one : ThreadNeed::many;
    if (program.empty()) return ThreadNeed::many;
    split::ProgramCheck check = split::inspect_program(program);
    if (!check.error.empty()) return ThreadNeed::one;  // it will be refused anyway
    // Whoever calls MPI then is not known.
    if (std::all_of(check.which.begin(), check.which.end(),
                    [](const split::MpiAsked& one) { return one.by == "LD_PRELOAD"; }))
        return ThreadNeed::many;
    if (mentions_threads(check.binary)) return ThreadNeed::many;
    for (const std::string& library : check.libraries)
        if (!is_mpi_itself(library) && mentions_threads(library)) return ThreadNeed::many;
    return ThreadNeed::one;
}

}  // namespace fermata::lower
