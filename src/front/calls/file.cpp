// MPI_File_*: opening, views and questions. Data access passes through (generated wrappers).
#include "front/objects/file.h"

#include "front/core/bridge.h"
#include "front/core/sys.h"
#include "front/objects/api.h"
#include "front/objects/connected.h"
#include "front/objects/internal.h"
#include "front/posix/noted.h"
#include "front/requests/collective.h"
#include "front/requests/logged.h"

namespace fermata::front {
namespace {

// The path from the root: at restart the working directory of the lower half is not the application's. A
// driver prefix of ROMIO ("ufs:", "nfs:") stays in front.
Text absolute(const char* path) {
    const char* name = without_driver(path);
    Text result(path, static_cast<size_t>(name - path));
    if (*name != '/') {
        char here[4096];
        long length = sys(SYS_getcwd, reinterpret_cast<long>(here), sizeof here);
        if (length > 1) {
            result.append(here, static_cast<size_t>(length) - 1);
            result += '/';
        }
    }
    return result += name;
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

extern "C" {

int fm_File_open(Comm comm, const char* filename, int amode, Info info, File* fh) {
    Call call("MPI_File_open");
    if (logged::on()) logged::refuse("MPI_File_open");
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
        if (rc == FM_SUCCESS) rc = file_open_real(file, amode, &real);
        file->real = static_cast<uint64_t>(real);
    }
    if (rc != FM_SUCCESS) {
        file_release(file);
        return call.finish(FM_FILE_NULL, rc);
    }
    if ((amode & FM_MODE_RDONLY) == 0)
        posix::note_file(AT_FDCWD, without_driver(file->path.c_str()), split::kNotedWritten);
    file->errhandler = file_null_errhandler;
    errhandler_ref(file->errhandler);
    *fh = File{give_handle(file)};
    file_link(file);
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
    file_unlink(file);
    take_handle(file);
    file_release(file);
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
    *group = Group{make_group(Members(file->comm->members))};
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
