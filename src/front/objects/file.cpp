// MPI files: opening them again, and what a restart has to know of them.
#include "front/objects/file.h"

#include "front/core/bridge.h"
#include "front/core/sys.h"
#include "front/objects/api.h"
#include "front/objects/internal.h"

namespace fermata::front {
namespace {

SpinLock list_lock;
FileObject* files;

// As split/process/path_map.h does it; there is no allocator for it in the agent's thread.
void follow_move(Text& path) {
    if (bridge()->moved == nullptr) return;
    const size_t start = static_cast<size_t>(without_driver(path.c_str()) - path.c_str());
    for (const char* at = bridge()->moved; *at != 0;) {
        const char* end = at;
        while (*end != 0 && *end != ':') end++;
        const char* equals = at;
        while (equals != end && *equals != '=') equals++;
        const auto old = static_cast<size_t>(equals - at);
        if (equals != end && path.compare(start, old, at, old) == 0 &&
            (path.size() == start + old || path[start + old] == '/')) {
            path.replace(start, old, equals + 1, static_cast<size_t>(end - equals - 1));
            return;
        }
        at = *end != 0 ? end + 1 : end;
    }
}

}  // namespace

FileObject* first_file() noexcept { return files; }

void file_link(FileObject* file) noexcept {
    SpinGuard guard(list_lock);
    file->next = files;
    if (files != nullptr) files->previous = file;
    files = file;
}

void file_unlink(FileObject* file) noexcept {
    SpinGuard guard(list_lock);
    (file->previous != nullptr ? file->previous->next : files) = file->next;
    if (file->next != nullptr) file->next->previous = file->previous;
}

const char* without_driver(const char* path) noexcept {
    const char* name = path;
    for (const char* at = path; *at != 0 && *at != '/'; at++)
        if (*at == ':' && at - path >= 2) name = at + 1;  // one letter is no driver
    return name;
}

void file_release(FileObject* file) noexcept {
    if (file->etype != nullptr) type_unref(file->etype);
    if (file->filetype != nullptr) type_unref(file->filetype);
    if (file->comm != nullptr) comm_drop_private(file->comm);
    errhandler_unref(file->errhandler);
    fm_delete(file);
}

int file_open_real(const FileObject* file, int amode, mpi::RealFile* real) noexcept {
    RealInfoFor hints(file->info);
    return LOWER(File_open)(RealComm{file->comm->real}, file->path.c_str(), amode & ~FM_MODE_SEQUENTIAL,
                            RealInfo{hints.word()}, real);
}

int file_make_real(FileObject* file) noexcept {
    // The file holds by now what the application wrote: never create, truncate or insist on a new one.
    int amode = file->amode & ~(FM_MODE_CREATE | FM_MODE_EXCL);
    RealFile real{};
    follow_move(file->path);
    if (int rc = file_open_real(file, amode, &real)) return rc;
    file->real = static_cast<uint64_t>(real);
    if (file->etype != nullptr) {
        RealInfoFor hints(file->info);
        int rc = LOWER(File_set_view)(real, file->disp, RealDatatype{file->etype->real},
                                      RealDatatype{file->filetype->real}, file->datarep.c_str(),
                                      RealInfo{hints.word()});
        if (rc != FM_SUCCESS) return rc;
    }
    if (file->atomic)
        if (int rc = LOWER(File_set_atomicity)(real, 1)) return rc;
    if (int rc = LOWER(File_seek)(real, file->position, FM_SEEK_SET)) return rc;
    // Collective; all members agree on whether it was used, because it was asked of all.
    int used = file->shared_used, any = 0;
    int rc = LOWER(Allreduce)(&used, &any, 1, to_real(FM_INT), to_real(FM_MAX), RealComm{file->comm->real});
    if (rc == FM_SUCCESS && any) {
        // The pointer is one: whoever used it knows where it stood.
        int64_t mine = file->shared_used ? file->shared_position : 0, at = 0;
        rc =
            LOWER(Allreduce)(&mine, &at, 1, to_real(FM_INT64_T), to_real(FM_MAX), RealComm{file->comm->real});
        if (rc == FM_SUCCESS) rc = LOWER(File_seek_shared)(real, at, FM_SEEK_SET);
    }
    return rc;
}

int file_before_save(FileObject* file) noexcept {
    RealFile real{file->real};
    if (int rc = LOWER(File_get_position)(real, &file->position)) return rc;
    if (file->shared_used)
        if (int rc = LOWER(File_get_position_shared)(real, &file->shared_position)) return rc;
    return FM_SUCCESS;
}

bool files_refuse(char* why, size_t size) noexcept {
    SpinGuard guard(list_lock);
    for (const FileObject* file = files; file != nullptr; file = file->next) {
        // Others may leave the file to this one, and not even see it from their nodes.
        if (file->comm == nullptr || file->comm->rank != 0) continue;
        const char* path = file->path.c_str();
        const char* slash = __builtin_strchr(path, '/');  // behind the driver's name
        constexpr long kNotThere = -2;                    // -ENOENT
        if (slash == nullptr || sys(SYS_access, reinterpret_cast<long>(slash), 0) != kNotThere) continue;
        __builtin_snprintf(
            why, size,
            "the MPI file %s was removed while it is open, a restart could not open it again: close it, or "
            "use MPI_MODE_DELETE_ON_CLOSE",
            path);
        return true;
    }
    return false;
}

void note_shared_pointer(File fh) noexcept {
    if (FileObject* file = find(fh)) file->shared_used = true;
}

bool refused_as_sequential(File fh, Access access) noexcept {
    const FileObject* file = find(fh);
    if (file == nullptr || !file->strictly_sequential) return false;
    const int wrong = access == Access::read ? FM_MODE_WRONLY : access == Access::write ? FM_MODE_RDONLY : 0;
    return (file->amode & wrong) == 0;
}

}  // namespace fermata::front
