// Making real objects from descriptions, and the lists of those that live: for this room and for the entries
// in src/front/calls that make and free them.
#pragma once

#include "front/objects/comm.h"
#include "front/objects/datatype.h"
#include "front/objects/file.h"
#include "front/objects/op.h"
#include "front/objects/win.h"

namespace fermata::front {

// Real objects from descriptions: used at creation and at restart.
int op_make_real(OpObject* op) noexcept;
void op_publish(OpObject* op) noexcept;  // gives it its handle
int type_make_real(TypeObject* type) noexcept;
// Makes the real type of a new description, learns its layout, gives it a handle. Destroys the description on
// failure.
int type_create(TypeObject* type) noexcept;
void type_destroy(TypeObject* type) noexcept;
// A live type with this description; null: none.
TypeObject* type_like(int combiner, const Vec<int64_t>& ints) noexcept;

int win_make_real(WinObject* win) noexcept;
// Should it have no real one (calls/win_alone.h)? `again`: after a restart, where nothing may be refused.
bool win_stands_alone(const WinObject* win, bool again) noexcept;
// Memory of MPI_Win_allocate: ours instead of the library's, so that it is part of the image.
void win_own_memory(WinObject* win) noexcept;
// Among the live windows; not any more; gone altogether.
void win_link(WinObject* win) noexcept;
void win_unlink(WinObject* win) noexcept;
void win_release(WinObject* win) noexcept;
// Those for the library: it must not take "no locks" at its word, MPI_Win_start takes some.
InfoPairs win_hints(const WinObject* win);
// The real locks of an open MPI_Win_start.
int win_lock_started(const WinObject* win) noexcept;
int file_make_real(FileObject* file) noexcept;
int file_open_real(const FileObject* file, int amode, mpi::RealFile* real) noexcept;
// Among the open files; not any more; gone altogether.
void file_link(FileObject* file) noexcept;
void file_unlink(FileObject* file) noexcept;
void file_release(FileObject* file) noexcept;
const char* without_driver(const char* path) noexcept;  // ROMIO's prefix ("ufs:") cut off
// Agent, all ranks together, all threads stopped.
int win_before_save(WinObject* win) noexcept;
int file_before_save(FileObject* file) noexcept;

OpObject* first_op() noexcept;
int comm_make_real(CommObject* comm) noexcept;
// A private communicator of the same members, for a window or a file: clock, handle and rebuild as any other,
// but no attribute callbacks. Call it inside the scope of `parent`.
int comm_make_private(CommObject* parent, CommObject** made) noexcept;
// Collective over a private communicator: the worst of the members' error classes, for what all or none must
// do.
int agree(CommObject* comm, int rc) noexcept;
// Inside a scope of `comm`, after a real barrier: drops the handle's reference.
void comm_drop_private(CommObject* comm) noexcept;
TypeObject* first_type() noexcept;  // oldest derived type
WinObject* first_win() noexcept;
FileObject* first_file() noexcept;

// The real -> virtual table of datatypes.
void type_note_real(TypeObject* type) noexcept;
void type_forget_real(TypeObject* type) noexcept;
void types_forget_all_real() noexcept;

// Real handles of predefined objects, from the lower half that is there now.
void predefined_refresh(bool first_time) noexcept;

}  // namespace fermata::front
