// MPI files: opening, views, and finding them again. Data access passes through (generated wrappers).
#include "front/objects/file.h"

#include "front/core/bridge.h"
#include "front/core/collective.h"
#include "front/core/sys.h"
#include "front/objects/api.h"
#include "front/objects/connected.h"
#include "front/objects/internal.h"
#include "front/posix/noted.h"

namespace fermata::front {
namespace {

SpinLock list_lock;
FileObject* files;

void link_file(FileObject* file) {
    SpinGuard guard(list_lock);
    file->next = files;
    if (files != nullptr) files->previous = file;
    files = file;
}

void unlink_file(FileObject* file) {
    SpinGuard guard(list_lock);
    (file->previous != nullptr ? file->previous->next : files) = file->next;
    if (file->next != nullptr) file->next->previous = file->previous;
}

const char* without_driver(const char* path) {
    const char* name = path;
    for (const char* at = path; *at != 0 && *at != '/'; at++)
        if (*at == ':' && at - path >= 2) name = at + 1;  // one letter is no driver
    return name;
}

// The path from the root: at restart the working directory of the lower half is not the application's. A
// driver prefix of ROMIO ("ufs:", "nfs:") stays in front.
Text absolute(const char* path) {
    const char* name = without_driver(path);
    Text result(path, static_cast<size_t>(name - path));
    if (*name != '/') {
        char here[4096];
        long length = raw_syscall(SYS_getcwd, reinterpret_cast<long>(here), sizeof here);
        if (length > 1) {
            result.append(here, static_cast<size_t>(length) - 1);
            result += '/';
        }
    }
    return result += name;
}

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

void set_view(FileObject* file, int64_t disp, TypeObject* etype, TypeObject* filetype, const char* datarep) {
    TypeObject *old_etype = file->etype, *old_filetype = file->filetype;
    type_ref(etype);
    type_ref(filetype);
    file->disp = disp;
    file->etype = etype;
    file->filetype = filetype;
    file->datarep = datarep;
    if (old_etype != nullptr) type_unref(old_etype);
    if (old_filetype != nullptr) type_unref(old_filetype);
}

void release(FileObject* file) {
    if (file->etype != nullptr) type_unref(file->etype);
    if (file->filetype != nullptr) type_unref(file->filetype);
    if (file->comm != nullptr) comm_drop_private(file->comm);
    errhandler_unref(file->errhandler);
    fm_delete(file);
}

int open_real(const FileObject* file, int amode, RealFile* real) {
    RealInfoFor hints(file->info);
    return LOWER(File_open)(RealComm{file->comm->real}, file->path.c_str(), amode & ~FM_MODE_SEQUENTIAL,
                            RealInfo{hints.word()}, real);
}

// The application gets its own reference, as from MPI_Type_get_contents.
Datatype hand_out(TypeObject* type) {
    if (!type->predefined && !type->permanent) {
        ref(type);
        type->owned++;
    }
    return Datatype{type->handle};
}

bool sequential(const FileObject* file) { return (file->amode & FM_MODE_SEQUENTIAL) != 0; }

// MPI_DISPLACEMENT_CURRENT of both libraries' mpi.h, and of the standard ABI; no displacement is negative.
bool is_current(int64_t displacement) { return displacement == -54278278 || displacement == -1; }

// Where the shared pointer of a sequential file stands, in bytes: MPI_DISPLACEMENT_CURRENT. Collective, as a
// view is: nobody sets his before all have asked.
int current_displacement(const FileObject* file, int64_t* displacement) {
    RealFile real{file->real};
    int64_t position = 0, mine = 0;
    if (int rc = LOWER(File_get_position_shared)(real, &position)) return rc;
    if (int rc = LOWER(File_get_byte_offset)(real, position, &mine)) return rc;
    return LOWER(Allreduce)(&mine, displacement, 1, to_real(FM_INT64_T), to_real(FM_MAX),
                            RealComm{file->comm->real});
}

}  // namespace

FileObject* first_file() noexcept { return files; }

int file_make_real(FileObject* file) noexcept {
    // What the file holds now is what the application wrote: never create, truncate or insist on a new one.
    int amode = file->amode & ~(FM_MODE_CREATE | FM_MODE_EXCL);
    RealFile real{};
    follow_move(file->path);
    if (int rc = open_real(file, amode, &real)) return rc;
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
        if (slash == nullptr || raw_syscall(SYS_access, reinterpret_cast<long>(slash), 0) != kNotThere)
            continue;
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

extern "C" {

int fm_File_open(Comm comm, const char* filename, int amode, Info info, File* fh) {
    Call call("MPI_File_open");
    *fh = FM_FILE_NULL;
    CommObject* parent = find(comm);
    if (parent == nullptr) return call.finish(FM_FILE_NULL, FM_ERR_COMM);
    if (parent->inter) return call.finish(FM_FILE_NULL, FM_ERR_COMM);
    if (parent->stranger) return call.finish(FM_FILE_NULL, refuse_strangers(call.function()));
    if ((amode & FM_MODE_SEQUENTIAL) && (amode & FM_MODE_RDWR))
        return call.finish(FM_FILE_NULL, FM_ERR_AMODE);
    auto* file = fm_new<FileObject>();
    file->path = absolute(filename);
    file->amode = amode;
    file->strictly_sequential = sequential(file) && !on_open_mpi();
    file->shared_used = (amode & FM_MODE_APPEND) != 0;  // opened again later, the file may end elsewhere
    file->datarep = "native";
    if (InfoObject* hints = find(info)) file->info = hints->pairs;
    int rc;
    {
        CollectiveScope scope(call, *parent);
        rc = comm_make_private(parent, &file->comm);
        RealFile real{};
        if (rc == FM_SUCCESS) rc = open_real(file, amode, &real);
        file->real = static_cast<uint64_t>(real);
    }
    if (rc != FM_SUCCESS) {
        release(file);
        return call.finish(FM_FILE_NULL, rc);
    }
    if ((amode & FM_MODE_RDONLY) == 0)
        posix::note_file(AT_FDCWD, without_driver(file->path.c_str()), split::kNotedWritten);
    file->errhandler = file_null_errhandler;
    errhandler_ref(file->errhandler);
    *fh = File{give_handle(file)};
    link_file(file);
    return FM_SUCCESS;
}

int fm_File_close(File* fh) {
    Call call("MPI_File_close");
    FileObject* file = find(*fh);
    if (file == nullptr) return call.finish(*fh, FM_ERR_FILE);
    int rc;
    {
        CollectiveScope scope(call, *file->comm);
        RealFile real{file->real};
        rc = LOWER(File_close)(&real);
        // No library promises that nobody leaves before all have entered.
        if (rc == FM_SUCCESS) rc = LOWER(Barrier)(RealComm{file->comm->real});
    }
    if (rc != FM_SUCCESS) return call.finish(*fh, rc);
    unlink_file(file);
    take_handle(file);
    release(file);
    *fh = FM_FILE_NULL;
    return FM_SUCCESS;
}

int fm_File_get_amode(File fh, int* amode) {
    Call call("MPI_File_get_amode");
    FileObject* file = find(fh);
    if (file == nullptr) return call.finish(fh, FM_ERR_FILE);
    *amode = file->amode;
    return FM_SUCCESS;
}

int fm_File_get_group(File fh, Group* group) {
    Call call("MPI_File_get_group");
    FileObject* file = find(fh);
    if (file == nullptr) return call.finish(fh, FM_ERR_FILE);
    *group = Group{make_group(Ranks(file->comm->members))};
    return FM_SUCCESS;
}

int fm_File_get_info(File fh, Info* info_used) {
    Call call("MPI_File_get_info");
    FileObject* file = find(fh);
    if (file == nullptr) return call.finish(fh, FM_ERR_FILE);
    *info_used = Info{make_info(file->info)};
    return FM_SUCCESS;
}

int fm_File_set_info(File fh, Info info) {
    Call call("MPI_File_set_info");
    FileObject* file = find(fh);
    InfoObject* hints = find(info);
    if (file == nullptr) return call.finish(fh, FM_ERR_FILE);
    if (hints == nullptr) return call.finish(fh, FM_ERR_INFO);
    for (const InfoPair& pair : hints->pairs) info_put(&file->info, pair.key.c_str(), pair.value.c_str());
    CollectiveScope scope(call, *file->comm);
    // All of them, the earlier ones too: without any there is no real object, and Open MPI 4.1 refuses a null
    // one.
    RealInfoFor real(file->info);
    int rc = file->info.empty() ? LOWER(Barrier)(RealComm{file->comm->real})
                                : LOWER(File_set_info)(RealFile{file->real}, RealInfo{real.word()});
    scope.end();
    return call.finish(fh, rc);
}

int fm_File_get_atomicity(File fh, int* flag) {
    Call call("MPI_File_get_atomicity");
    FileObject* file = find(fh);
    if (file == nullptr) return call.finish(fh, FM_ERR_FILE);
    *flag = file->atomic;
    return FM_SUCCESS;
}

int fm_File_set_atomicity(File fh, int flag) {
    Call call("MPI_File_set_atomicity");
    FileObject* file = find(fh);
    if (file == nullptr) return call.finish(fh, FM_ERR_FILE);
    CollectiveScope scope(call, *file->comm);
    int rc = LOWER(File_set_atomicity)(RealFile{file->real}, flag);
    if (rc == FM_SUCCESS) file->atomic = flag != 0;
    scope.end();
    return call.finish(fh, rc);
}

int fm_File_set_view(File fh, Offset disp, Datatype etype, Datatype filetype, const char* datarep,
                     Info info) {
    Call call("MPI_File_set_view");
    FileObject* file = find(fh);
    TypeObject *element = find(etype), *tile = find(filetype);
    if (file == nullptr) return call.finish(fh, FM_ERR_FILE);
    if (element == nullptr || tile == nullptr) return call.finish(fh, FM_ERR_TYPE);
    const bool current = sequential(file) && is_current(disp);
    if (file->strictly_sequential && !current) return call.finish(fh, FM_ERR_ARG);
    CollectiveScope scope(call, *file->comm);
    TempInfo real(info);
    int rc = current ? current_displacement(file, &disp) : FM_SUCCESS;
    if (rc == FM_SUCCESS)
        rc = LOWER(File_set_view)(RealFile{file->real}, disp, RealDatatype{element->real},
                                  RealDatatype{tile->real}, datarep, real);
    if (rc == FM_SUCCESS) set_view(file, disp, element, tile, datarep);
    scope.end();
    return call.finish(fh, rc);
}

int fm_File_get_view(File fh, Offset* disp, Datatype* etype, Datatype* filetype, char* datarep) {
    Call call("MPI_File_get_view");
    FileObject* file = find(fh);
    if (file == nullptr) return call.finish(fh, FM_ERR_FILE);
    *disp = file->disp;
    *etype = file->etype != nullptr ? hand_out(file->etype) : FM_BYTE;
    *filetype = file->filetype != nullptr ? hand_out(file->filetype) : FM_BYTE;
    __builtin_memcpy(datarep, file->datarep.c_str(), file->datarep.size() + 1);
    return FM_SUCCESS;
}

}  // extern "C"
}  // namespace fermata::front
