// MPI files: path, mode, view and pointers; opened again at restart without truncation.
#pragma once

#include "front/objects/comm.h"
#include "front/objects/datatype.h"

namespace fermata::front {

struct FileObject : Object {
    FileObject() : Object(Kind::file) {}
    CommObject* comm = nullptr;  // a private communicator of the members, never seen by the application
    Text path;                   // as given, made absolute
    int32_t amode = 0;           // standard ABI values
    // MPI_MODE_SEQUENTIAL is kept from the library: ROMIO would neither tell nor set the shared pointer then.
    // Calls that the library refuses in this mode are refused here; Open MPI, where the program began,
    // refuses nothing.
    bool strictly_sequential = false;
    bool atomic = false;
    InfoPairs info;
    ErrhandlerObject* errhandler = nullptr;
    // The view, null types: the default one (bytes from 0).
    int64_t disp = 0;
    TypeObject* etype = nullptr;
    TypeObject* filetype = nullptr;
    Text datarep;
    // Pointers, in etype units, as asked from the library just before the image is written.
    int64_t position = 0;
    int64_t shared_position = 0;
    bool shared_used = false;  // the shared pointer was moved: asking for it costs files and locks in ROMIO
    // A split collective between its halves: all is done in the first one, as the standard allows (MPI-4.0
    // 14.4.5), so a checkpoint finds nothing of it in the library.
    bool split = false;
    mpi::Status split_status;
    // Non-blocking collectives that are not complete, by RequestObject::after. Threads may ask for
    // different ones at once; taken inside the library's lock, never around it.
    SpinLock order;
    RequestObject* oldest = nullptr;
    FileObject* next = nullptr;
    FileObject* previous = nullptr;
};

inline FileObject* find_file(uint32_t handle) noexcept {
    return static_cast<FileObject*>(find_object(handle, Kind::file));
}

// Is one of them gone by its name? Then why no checkpoint can be taken. Any context.
bool files_refuse(char* why, size_t size) noexcept;

// Called by the wrappers that move the shared file pointer.
void note_shared_pointer(mpi::File fh) noexcept;

// Called by the wrappers of what a sequential file has not: offsets and pointers of one's own. A wrong access
// mode is an error of its own, which the library names.
enum class Access { none, read, write };
bool refused_as_sequential(mpi::File fh, Access access) noexcept;

}  // namespace fermata::front
